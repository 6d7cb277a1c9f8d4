"""Devices whose attribute cannot be told although it must be: while there is one, nothing is allocated.

A mapping with `onError: Fail` and the expressions that a claim brings along are strict:
the answer must not depend on whether the device is tried before or after one that serves.
"""

from dovetail.core.board import Upfront
from dovetail.core.boards import BoardMaker, covered
from dovetail.core.budget import Budget
from dovetail.core.offers import NodeOffer
from dovetail.core.requests import Asked
from dovetail.core.sources import Broken


def is_strict(maker: BoardMaker, asked: Asked) -> bool:
    """Whether any attribute that these claims constrain comes from a strict source."""
    return any(source.strict for source in maker.sources(asked))


def first_failing(maker: BoardMaker, asked: Asked, offer: NodeOffer, budget: Budget) -> Upfront | None:
    """The first device of a node that a request could take and on which a strict source fails.

    What is in use counts too, so that the answer does not change with it. Raises `BudgetSpent`.
    """
    for constraint, alternative in covered(asked):
        source = maker.source(asked, constraint, alternative)
        if not source.strict:
            continue
        for pool, start in zip(offer.pools, offer.starts, strict=True):
            selected, _ = maker.selected_in(alternative, pool, budget)
            selected &= pool.here
            for position, finding in enumerate(maker.findings(source, pool, budget)):
                if isinstance(finding, Broken) and finding.strict and selected >> position & 1:
                    reason = f"{constraint.attribute} of {{device}}: {finding.reason}"
                    return Upfront(alternative.claim, reason, of_node=False, device=start + position)
    return None
