"""Devices for the claims of one pod: on one node, or on the best of several."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dovetail.api.claims import ResourceClaim
from dovetail.core.board import Board, named
from dovetail.core.boards import BoardMaker
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.diagnosis import Diagnosis, Told
from dovetail.core.holdings import Hold
from dovetail.core.inventory import Inventory
from dovetail.core.offers import NodeOffer
from dovetail.core.outcome import Cut, DoesNotFit, Fits, Placement, RequestInvalid
from dovetail.core.ranking import State, best, keep
from dovetail.core.requests import Asked, label_of, read_requests
from dovetail.core.results import fits
from dovetail.core.search import Found, most_points
from dovetail.core.solving import Answer, Wrong, solve
from dovetail.core.sources import Expressions, reads_pool
from dovetail.core.strictness import first_failing, is_strict
from dovetail.core.usage import usage_supposing

KEPT_REQUESTS = 256
"""So many different sets of claims are remembered, with what was found out about each."""

KEPT_ANSWERS = 20_000
"""So many answers are remembered for one set of claims."""


def allocate(
    inventory: Inventory, claims: Sequence[ResourceClaim], node: str, *, budget: Budget
) -> Fits | DoesNotFit | Cut:
    """Devices for these claims together on one node, as kube-scheduler's allocator would choose them.

    `claims` are the unallocated claims of one pod, in the pod's order.
    A node that was never put into the inventory exists, with no labels but its name.
    Neither the inventory nor the claims are changed: put the claim back, allocated, to take its devices.
    Raises `RequestInvalid` where a claim or its class is wrong as it is written.
    """
    try:
        question = _Question(inventory, claims, budget)
        question.refuse_failing((node,))
        question.answer(node, inventory.offers.state(node))
        return question.told(node)
    except BudgetSpent:
        return Cut(node, budget.spent)


def place(
    inventory: Inventory, claims: Sequence[ResourceClaim], nodes: Sequence[str], *, budget: Budget
) -> Placement | DoesNotFit | Cut:
    """The best of several nodes: by the score of allocation-rules 2.6, then in the order given.

    Nodes that offer the same, with the same in use, are searched once.
    Pass the same tuple again where the candidates have not changed: what was found out about it is kept.
    Raises `RequestInvalid` as `allocate` does.
    """
    try:
        question = _Question(inventory, claims, budget)
    except BudgetSpent:
        return Cut(nodes[0] if nodes else "", budget.spent)
    candidates = keep(inventory.orders, nodes, inventory.offers)
    groups = candidates.alone() if question.known.reads_pools else candidates.groups()
    try:
        question.refuse_failing(nodes)
        chosen = best(groups, question.score, most_points(question.asked))
        return question.refused(candidates.names(groups)) if chosen is None else question.told(chosen)
    except BudgetSpent:
        return Cut(question.node, budget.spent)


def suppose(
    inventory: Inventory,
    claims: Sequence[ResourceClaim],
    node: str,
    *,
    taken: Sequence[Hold],
    released: Sequence[Hold],
    budget: Budget,
) -> Fits | None:
    """Devices for the claims on a node if some holdings were given back, then others taken.

    The inventory stays as it is. Raises `RequestInvalid` and `BudgetSpent`.
    """
    return _Question(inventory, claims, budget).supposed(node, taken, released)


def most_free(inventory: Inventory, nodes: Iterable[str], limit: int) -> list[str]:
    """Nodes in different states, those with most free devices first."""
    offers = inventory.offers
    by_state = {offers.state(node): node for node in sorted(nodes, reverse=True)}

    def free(node: str) -> int:
        return sum(usage.free.bit_count() for usage in offers.usages(offers.offer(node)))

    return sorted(by_state.values(), key=lambda node: (-free(node), node))[:limit]


class _Question:
    """One set of claims put to an inventory, with what was found out about equal claims before."""

    def __init__(self, inventory: Inventory, claims: Sequence[ResourceClaim], budget: Budget) -> None:
        self._inventory = inventory
        self._claims = claims
        self._budget = budget
        self._maker = _maker(inventory, budget)
        self.node = ""
        """The node that was asked last."""
        self.known = _known(inventory, claims, budget)
        self.asked = self.known.asked

    def refuse_failing(self, nodes: Sequence[str]) -> None:
        """Raise `RequestInvalid` for the first node with a device on which a strict source fails.

        Nodes that passed pass again as long as what is offered stays the same.
        """
        if not self.known.is_strict:
            return
        offers, passed = self._inventory.offers, self.known.passed
        if self.known.passed_at != offers.offered_stamp:
            passed.clear()
            self.known.passed_at = offers.offered_stamp
        for node in nodes:
            if node not in passed:
                self.node = node
                self._budget.spend()
                offer = offers.offer(node)
                failing = first_failing(self._maker, self.asked, offer, self._budget)
                if failing is not None:
                    wrong = Wrong(failing.claim, failing.reason, failing.of_node, failing.device)
                    raise self._invalid(wrong, node)
                passed.add(node)

    def score(self, node: str, state: State) -> int | None:
        """The score of the claims on the node, None where they do not fit there. Raises `RequestInvalid`."""
        answer = self.answer(node, state)
        if isinstance(answer, Wrong) and not answer.of_node:
            raise self._invalid(answer, node)
        return answer.score if isinstance(answer, Found) else None

    def answer(self, node: str, state: State) -> Answer:
        """What holds for the node, and for every other in the same state. Raises `BudgetSpent`."""
        answers = self.known.answers
        key = self._key(node, state)
        answer = answers.get(key)
        if answer is None:
            self.node = node
            offer = self._inventory.offers.offer(node)
            usages = self._inventory.offers.usages(offer)
            answer = solve(self._board(offer), usages, offer.starts, self._budget)
            if len(answers) >= KEPT_ANSWERS:
                answers.clear()
            answers[key] = answer
        return answer

    def told(self, node: str) -> Fits | DoesNotFit:
        """The answer for a node that was asked, in the words of the outside."""
        offers = self._inventory.offers
        answer = self.answer(node, offers.state(node))
        offer = offers.offer(node)
        match answer:
            case Found():
                return fits(self._board(offer), answer, offer, self._claims, self._inventory.features)
            case Wrong(of_node=False):
                raise self._invalid(answer, node)
            case _:
                return self.refused([(node,)])

    def supposed(self, node: str, taken: Sequence[Hold], released: Sequence[Hold]) -> Fits | None:
        """The answer for a node in another state than the present one."""
        offer, features = self._inventory.offers.offer(node), self._inventory.features
        usages = tuple(
            usage_supposing(pool, features, taken=taken, released=released) for pool in offer.pools
        )
        answer = solve(self._board(offer), usages, offer.starts, self._budget)
        if not isinstance(answer, Found):
            return None
        return fits(self._board(offer), answer, offer, self._claims, features)

    def refused(self, groups: Sequence[tuple[str, ...]]) -> DoesNotFit:
        """The refusal of all nodes; those of a group are in the same state."""
        offers = self._inventory.offers
        return Diagnosis(
            self._inventory,
            self._claims,
            self.asked,
            self._maker,
            self.known.told,
            is_over=self._budget.is_over,
            answer_on=lambda node: self.answer(node, offers.state(node)),
            board_of=self._board,
        ).refused(groups)

    def _board(self, offer: NodeOffer) -> Board:
        boards = self.known.boards
        shape = self._inventory.offers.shape(offer)
        key = (shape, self._pool_names(offer.node)) if self.known.reads_pools else shape
        board = boards.get(key)
        if board is None:
            if len(boards) >= KEPT_ANSWERS:
                boards.clear()
            board = boards[key] = self._maker.make(self.asked, offer, self._budget)
        return board

    def _key(self, node: str, state: State) -> object:
        return (state, self._pool_names(node)) if self.known.reads_pools else state

    def _pool_names(self, node: str) -> tuple[str, ...]:
        return tuple(pool.key.pool for pool in self._inventory.offers.offer(node).pools)

    def _invalid(self, wrong: Wrong, node: str) -> RequestInvalid:
        offer = self._inventory.offers.offer(node)
        return RequestInvalid(label_of(self._claims[wrong.claim]), named(wrong.reason, offer, wrong.device))


@dataclass(slots=True, eq=False)
class _Known:
    """What was found out about a set of claims."""

    asked: Asked
    reads_pools: bool
    is_strict: bool
    """Whether a device on which an expression fails speaks against the claims as a whole."""
    passed: set[str] = field(default_factory=set)
    """Nodes without such a device, as of the stamp `passed_at` of what is offered."""
    passed_at: int = -1
    boards: dict[object, Board] = field(default_factory=dict)
    answers: dict[object, Answer] = field(default_factory=dict)
    told: Told = field(default_factory=Told)


def _known(inventory: Inventory, claims: Sequence[ResourceClaim], budget: Budget) -> _Known:
    """What is known about claims with these specifications. Raises `BudgetSpent`."""
    key = tuple(claim.spec.model_dump_json() for claim in claims)
    known = inventory.memo.get(key)
    if isinstance(known, _Known):
        return known
    expressions = Expressions(inventory.features, inventory.mappings, budget)
    asked = read_requests(claims, inventory.classes, inventory.features, expressions)
    while len(inventory.memo) >= KEPT_REQUESTS:
        del inventory.memo[next(iter(inventory.memo))]
    maker = _maker(inventory, budget)
    inventory.offers.states.notice(maker.reads(asked))
    fresh = _Known(asked, any(map(reads_pool, maker.sources(asked))), is_strict(maker, asked))
    inventory.memo[key] = fresh
    return fresh


def _maker(inventory: Inventory, budget: Budget) -> BoardMaker:
    expressions = Expressions(inventory.features, inventory.mappings, budget)
    return BoardMaker(inventory.features, expressions, inventory.memory)
