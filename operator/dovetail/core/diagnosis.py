"""Why claims fit on no node, as data: what stands in the way on each, and what would help."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dovetail.api.claims import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from dovetail.core.attempt import Attempt
from dovetail.core.blame import Trial, blame
from dovetail.core.board import Board, named
from dovetail.core.boards import BoardMaker
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.helping import release_on
from dovetail.core.inventory import Inventory
from dovetail.core.offers import NodeOffer
from dovetail.core.outcome import DoesNotFit
from dovetail.core.refusals import (
    Blame,
    DropConstraint,
    Help,
    NodeStory,
    PoolCause,
    PoolRefusal,
    PoolStory,
    Release,
    ShareClaim,
    WithoutPlugin,
)
from dovetail.core.requests import Asked, label_of
from dovetail.core.search import Found
from dovetail.core.solving import Answer, NotFound, Wrong, solve
from dovetail.core.stories import Failure, Label, Scene, gather, nearness, tell
from dovetail.core.usage import Usage

HELPED_STORIES = 3
"""So many stories, the nearest misses, are looked into for what would help."""

BLAMED_STATES = 64
"""So many states of nodes, the nearest misses, are looked into for what is to blame."""

BLAME_STEPS = 5_000
"""So many steps are spent on what is to blame, over all nodes; then no more is said."""

HELP_STEPS = 20_000
"""So many steps are spent on what would help; then no more is said."""

KEPT_STORIES = 20_000
"""So many stories are remembered for one set of claims."""


@dataclass(slots=True, eq=False)
class Told:
    """What was said about a set of claims before, by state and node."""

    stories: dict[object, tuple[NodeOffer, NodeStory]] = field(default_factory=dict)
    blames: dict[object, tuple[NodeOffer, Blame | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """One set of claims that fit nowhere; `answer_on` and `board_of` know what was found out."""

    inventory: Inventory
    claims: Sequence[ResourceClaim]
    asked: Asked
    maker: BoardMaker
    told: Told
    is_over: Callable[[], bool]
    """Whether the time of the decision is up."""
    answer_on: Callable[[str], Answer]
    board_of: Callable[[NodeOffer], Board]

    def refused(self, groups: Sequence[tuple[str, ...]]) -> DoesNotFit:
        """The refusal of all nodes; those of a group are in the same state."""
        stories = list(self._stories(groups))
        stories.sort(key=lambda story: -nearness(story[0]))
        gathered = gather(self._blamed(stories))
        return DoesNotFit(gathered, tuple(self._help(gathered[:HELPED_STORIES])))

    # -- what stands in the way ------------------------------------------------------------------

    def _stories(self, groups: Sequence[tuple[str, ...]]) -> Iterator[tuple[NodeStory, tuple[str, ...]]]:
        """What stands in the way on each node; where there is no time, only that something does."""
        budget, is_spent = replace(Budget.unlimited(), is_over=self.is_over), False
        for nodes in groups:
            try:
                story = self._briefly(nodes[0]) if is_spent else self._story(nodes[0], budget)
            except BudgetSpent:
                is_spent, story = True, self._briefly(nodes[0])
            yield story, nodes

    def _briefly(self, node: str) -> NodeStory:
        offer, answer = self._offer(node), self.answer_on(node)
        failure = _failure(answer, answer, offer)
        return NodeStory((node,), (), (), error=failure.error, is_error=failure.is_error)

    def _story(self, node: str, budget: Budget) -> NodeStory:
        offer, stories = self._offer(node), self.told.stories
        told_of, story = stories.get(self._key(node), (None, None))
        # Another offer of the same state may call its pools and devices by other names.
        if story is None or told_of is not offer:
            pools = tuple(self._pools(offer))
            board, answer = self._own(offer, self.answer_on(node), pools)
            failure = _failure(self.answer_on(node), answer, offer)
            scene = Scene(Attempt(board, self._usages(offer), offer.starts), offer, self._labels(), budget)
            story = tell(scene, failure, pools)
            if len(stories) >= KEPT_STORIES:
                stories.clear()
            stories[self._key(node)] = (offer, story)
        return story

    def _pools(self, offer: NodeOffer) -> Iterator[PoolStory]:
        """The pools that cannot be used, and could serve a request."""
        budget = Budget(HELP_STEPS, self.is_over)
        for refused in offer.refused:
            pool = self.inventory.offers.pools.get(refused.pool)
            if pool is None or refused.cause is PoolCause.OBSOLETE:
                continue
            try:
                concerned = tuple(
                    alternative.number
                    for alternative in self.asked.alternatives
                    if self.maker.may_serve(alternative, pool, refused.cause, budget)
                )
            except BudgetSpent:
                return
            if concerned:
                yield PoolStory(refused, concerned)

    def _own(self, offer: NodeOffer, answer: Answer, pools: Sequence[PoolStory]) -> tuple[Board, Answer]:
        """Board and answer; as if all pools were whole where only one that serves no request is at fault.

        kube-scheduler gives "all" devices of a node only while each of its pools is whole.
        """
        board = self.board_of(offer)
        if not isinstance(answer, Wrong) or answer.pool is None:
            return board, answer
        if any(story.refused is offer.refused[answer.pool] for story in pools):
            return board, answer
        budget = Budget(HELP_STEPS, self.is_over)
        try:
            whole = self.maker.make(self.asked, replace(offer, refused=_refused_of(pools)), budget)
            own = solve(whole, self._usages(offer), offer.starts, budget)
        except BudgetSpent:
            return board, answer
        return (board, answer) if isinstance(own, Found) else (whole, own)

    def _blamed(
        self, stories: Sequence[tuple[NodeStory, tuple[str, ...]]]
    ) -> Iterator[tuple[NodeStory, tuple[str, ...]]]:
        budget, rest = Budget(BLAME_STEPS, self.is_over), BLAMED_STATES
        for story, nodes in stories:
            if story.needs_blame and rest:
                rest -= 1
                yield replace(story, blame=self._blame(nodes[0], budget)), nodes
            else:
                yield story, nodes

    def _blame(self, node: str, budget: Budget) -> Blame | None:
        offer, blames = self._offer(node), self.told.blames
        told_of, known = blames.get(self._key(node), (None, None))
        if told_of is not offer or known is None:
            board = self.board_of(offer)
            if board.upfront is not None:
                board, _ = self._own(offer, self.answer_on(node), tuple(self._pools(offer)))
            known = blame(Trial(board, self._usages(offer), offer, budget))
            if len(blames) >= KEPT_STORIES:
                blames.clear()
            blames[self._key(node)] = (offer, known)
        return known

    # -- what would help -------------------------------------------------------------------------

    def _help(self, stories: Sequence[NodeStory]) -> Iterator[Help]:
        """What would help on the first nodes of these; silent about what cannot be told cheaply."""
        budget = Budget(HELP_STEPS, self.is_over)
        try:
            yield from self._plugin_help([story.nodes[0] for story in stories], budget)
            yield from self._constraint_help(stories)
            for story in stories:
                offer = self._offer(story.nodes[0])
                release = release_on(self.inventory, offer, self.board_of(offer), budget)
                if release is not None:
                    yield release
                    yield from self._share_help(release)
                    return
        except BudgetSpent:
            return

    def _plugin_help(self, nodes: Sequence[str], budget: Budget) -> Iterator[Help]:
        """The first node that would do, were it not for its device plugin."""
        for node in nodes:
            offer = self._offer(node)
            if not offer.withheld:
                continue
            everything = self.maker.make(self.asked, replace(offer, withheld=()), budget)
            if isinstance(solve(everything, self._usages(offer), offer.starts, budget), Found):
                selected = [board.selected for board in everything.alternatives]
                concerned = {
                    each.resource for each in offer.withheld if any(each.mask & mask for mask in selected)
                }
                yield WithoutPlugin(tuple(sorted(concerned)), node)
                return

    def _constraint_help(self, stories: Sequence[NodeStory]) -> Iterator[Help]:
        """Each constraint without which alone the claims fit, with the first node where they do."""
        told: set[tuple[str, str]] = set()
        for story in stories:
            for number in story.blame.constraints if story.blame and story.blame.any_of else ():
                constraint = story.constraints[number]
                if (constraint.claim, constraint.attribute) not in told:
                    told.add((constraint.claim, constraint.attribute))
                    yield DropConstraint(constraint.claim, constraint.attribute, story.nodes[0])

    def _share_help(self, release: Release) -> Iterator[Help]:
        for holder in release.holders:
            for claim in self.claims:
                if self.inventory.asks_alike(*holder, claim):
                    yield ShareClaim(holder, label_of(claim))
                    return

    # -- names -----------------------------------------------------------------------------------

    def _key(self, node: str) -> object:
        # What a pool that cannot be used would offer is no part of a node's state, and bears on the story.
        offers = self.inventory.offers
        stamp = offers.offered_stamp if self._offer(node).refused else 0
        return (offers.state(node), node, self._labels(), stamp)

    def _labels(self) -> tuple[Label, ...]:
        return tuple(
            Label(label_of(claim), EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations)
            for claim in self.claims
        )

    def _offer(self, node: str) -> NodeOffer:
        return self.inventory.offers.offer(node)

    def _usages(self, offer: NodeOffer) -> tuple[Usage, ...]:
        return self.inventory.offers.usages(offer)


def _refused_of(pools: Sequence[PoolStory]) -> tuple[PoolRefusal, ...]:
    return tuple(story.refused for story in pools)


def _failure(answer: Answer, own: Answer, offer: NodeOffer) -> Failure:
    """What went wrong before devices were tried; `own` is the answer without what concerns no request."""
    is_error = isinstance(answer, Wrong) or any(
        refused.cause is PoolCause.INVALID for refused in offer.refused
    )
    if isinstance(own, NotFound | Found):
        return Failure(is_error=is_error)
    reason = named(own.reason, offer, own.device, own.pool)
    if own.constraint is not None:
        return Failure(left_out=reason, is_error=is_error)
    return Failure(error=reason, is_error=is_error)
