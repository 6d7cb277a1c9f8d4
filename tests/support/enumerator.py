"""A slow judge of small worlds: every assignment in kube-scheduler's order, judged as a whole, rule by rule.

It reads the JSON of a world and knows nothing of the allocator's code.
Rules are those of allocation-rules section 2; `violations` names those that an assignment breaks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from tests.support.meanings import amount, elements, rounded, tolerates
from tests.support.picture import Json, Key, Picture
from tests.support.worlds import DERIVED, SELECTORS

LIMIT = 32


@dataclass(frozen=True, slots=True)
class Seat:
    """One device for one request."""

    claim: int
    request: str
    key: Key


@dataclass(frozen=True, slots=True)
class Wish:
    """A request, or one alternative of it, with its full name."""

    claim: int
    main: str
    name: str
    body: Json


class TooLarge(Exception):
    """There are too many assignments to try."""


class Judge(Picture):
    """One world, seen from one node. `most_tries` bounds the assignments that are tried."""

    def __init__(self, world: Json, node: Json, *, most_tries: int = 2_000) -> None:
        super().__init__(world, node)
        self.tries, self.most_tries = 0, most_tries

    # -- candidates ------------------------------------------------------------------------------

    def shareable(self, key: Key) -> bool:
        """Whether the device may be taken more than once."""
        return self.sharing_on and bool(self.devices[key].get("allowMultipleAllocations"))

    def selected(self, wish: Wish, key: Key) -> bool:
        """Whether the selectors take the device and the node reaches it."""
        device = self.devices[key]
        if device.get("bindingConditions") and "DRADeviceBindingConditions" not in self.gates:
            return False
        selectors = [
            *self.classes[wish.body["deviceClassName"]]["spec"]["selectors"],
            *wish.body.get("selectors", ()),
        ]
        meanings = [_meaning(selector["cel"]["expression"]) for selector in selectors]
        if not all(meaning(device) for meaning in meanings):
            return False
        return not self.home[key]["spec"].get("perDeviceNodeSelection") or self.reached(device)

    def wanted(self, wish: Wish) -> int | None:
        """How many devices; None for all."""
        return None if wish.body.get("allocationMode") == "All" else int(wish.body.get("count", 1))

    def members(self, wish: Wish) -> list[Key]:
        """The devices that make up "all"."""
        return [
            key
            for key in self.devices
            if self.selected(wish, key) and (not self.sharing_on or self.takes(wish, key) is not None)
        ]

    def takes(self, wish: Wish, key: Key) -> dict[str, Fraction] | None:
        """What the request takes of each capacity; None where the device can never give it."""
        asked = (wish.body.get("capacity") or {}).get("requests", {})
        capacities = self.devices[key].get("capacity", {})
        if not asked.keys() <= capacities.keys():
            return None
        taken = {name: rounded(body, asked.get(name)) for name, body in capacities.items()}
        if any(value is None or value > amount(capacities[name]["value"]) for name, value in taken.items()):
            return None
        return {name: value for name, value in taken.items() if value is not None}

    # -- judging ---------------------------------------------------------------------------------

    def violations(self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]) -> list[str]:
        """The rules that these seats break, complete or not."""
        return [
            *self._broken_alone(seats, wishes),
            *self._broken_use(seats, wishes),
            *self._broken_counters(seats, wishes),
            *self._broken_capacity(seats, wishes),
            *self._broken_constraints(seats, wishes),
        ]

    def _broken_alone(self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]) -> Iterator[str]:
        for seat in seats:
            wish, device = wishes[seat.claim, seat.request], self.devices[seat.key]
            if not self.selected(wish, seat.key):
                yield f"{seat.key} is not selected"
            if self.sharing_on and self.takes(wish, seat.key) is None:
                yield f"{seat.key} lacks capacity"
            if "DRADeviceTaints" in self.gates and not _tolerated(device, wish):
                yield f"{seat.key} is tainted"
            if device.get("consumesCounters") and "DRAPartitionableDevices" not in self.gates:
                yield f"{seat.key} needs partitions"
            declared = self.node.get("status", {}).get("declaredFeatures", ())
            if (
                self.home[seat.key]["spec"].get("skipNodeOperations")
                and "DRAOptionalNodeOperations" in self.gates
                and "DRAOptionalNodeOperations" not in declared
            ):
                yield f"{seat.key} needs a node that leaves operations out"

    def _broken_use(self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]) -> Iterator[str]:
        requests = Counter((seat.claim, seat.request, seat.key) for seat in seats)
        yield from (f"{key} twice in {name}" for (_, name, key), times in requests.items() if times > 1)
        before: list[Seat] = []
        for seat in seats:
            if not self.shareable(seat.key):
                admin = _admin(wishes[seat.claim, seat.request])
                if not admin and (seat.key in self.held or self.shared[seat.key]):
                    yield f"{seat.key} is in use"
                if any(b.key == seat.key and (not admin or b.claim == seat.claim) for b in before):
                    yield f"{seat.key} is taken twice"
            elif seat.key in self.held and not _admin(wishes[seat.claim, seat.request]):
                yield f"{seat.key} is held exclusively"
            before.append(seat)

    def _payers(self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]) -> list[Key]:
        """The devices that pay for counters now: each once, and only if it was not in use before."""
        taken = {seat.key for seat in seats if not _admin(wishes[seat.claim, seat.request])}
        return [key for key in taken if key not in self.held and not self.shared[key]]

    def _broken_counters(
        self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]
    ) -> Iterator[str]:
        if "DRAPartitionableDevices" not in self.gates:
            return
        payers = self._payers(seats, wishes)
        for pool, sets in self.sets.items():
            used: Counter[tuple[str, str]] = Counter()
            touched: set[tuple[str, str]] = set()
            for key in self.all_devices(pool):
                is_new = key in payers
                if not (is_new or key in self.held or self.shared[key]):
                    continue
                for part in self.body_of(key).get("consumesCounters", ()):
                    for name, counter in part["counters"].items():
                        used[part["counterSet"], name] += amount(counter["value"])  # type: ignore[assignment]
                        if is_new:
                            touched.add((part["counterSet"], name))
            for counter_set, name in touched:
                if used[counter_set, name] > sets[counter_set][name]:
                    yield f"counter {counter_set}/{name} of {pool} is overdrawn"
            if "DRADeviceCompatibilityGroups" in self.gates:
                yield from self._broken_groups(pool, payers)

    def _broken_groups(self, pool: tuple[str, str], payers: Sequence[Key]) -> Iterator[str]:
        members: dict[str, list[tuple[frozenset[str], bool]]] = defaultdict(list)
        for key in self.all_devices(pool):
            if key in payers or key in self.held or self.shared[key]:
                for part in self.body_of(key).get("consumesCounters", ()):
                    groups = frozenset(part.get("compatibilityGroups", ()))
                    members[part["counterSet"]].append((groups, key in payers))
        for name, drawing in members.items():
            if not any(is_new for _, is_new in drawing):
                continue
            each = [groups for groups, _ in drawing]
            if any(each) and not (all(each) and frozenset.intersection(*each)):
                yield f"counter set {name} of {pool} has incompatible devices"

    def _broken_capacity(
        self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]
    ) -> Iterator[str]:
        for key in {seat.key for seat in seats if self.shareable(seat.key)}:
            used = Counter(self.consumed.get(key, {}))
            for seat in seats:
                wish = wishes[seat.claim, seat.request]
                if seat.key == key and not _admin(wish):
                    used.update(self.takes(wish, key) or {})
            for name, capacity in self.devices[key].get("capacity", {}).items():
                if used[name] > amount(capacity["value"]):
                    yield f"capacity {name} of {key} is overdrawn"

    def _broken_constraints(
        self, seats: Sequence[Seat], wishes: Mapping[tuple[int, str], Wish]
    ) -> Iterator[str]:
        for index, claim in enumerate(self.claims):
            for constraint in claim["spec"]["devices"].get("constraints", ()):
                names = constraint.get("requests", ())
                values = [
                    self._value(wishes[seat.claim, seat.request], seat.key, constraint)
                    for seat in seats
                    if seat.claim == index
                    and (not names or seat.request in names or seat.request.split("/")[0] in names)
                ]
                if not self._satisfied(values, distinct="distinctAttribute" in constraint):
                    yield f"constraint {constraint} of claim {index}"

    def _value(self, wish: Wish, key: Key, constraint: Json) -> Json | None:
        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        device = self.devices[key]
        for derived in wish.body.get("derivedAttributes", ()):
            if derived["name"] == name:
                found: Json = DERIVED[derived["expression"]](device)
                return found
        domain, _, bare = name.partition("/")
        attributes = device["attributes"]
        return attributes.get(name) or (attributes.get(bare) if domain == device["driver"] else None)

    def _satisfied(self, values: Sequence[Json | None], *, distinct: bool) -> bool:
        if any(value is None for value in values):
            return False
        sets = [elements(value) for value in values if value is not None]
        is_list = [any(name.endswith("s") and name != "s" for name in value) for value in values if value]
        if "DRAListTypeAttributes" not in self.gates and any(is_list):
            if distinct:
                return not any(is_list[1:]) and self._disjoint(sets[1:])
            return len(values) == 1
        return self._disjoint(sets) if distinct else not sets or bool(frozenset.intersection(*sets))

    def _disjoint(self, sets: Sequence[frozenset[object]]) -> bool:
        return all(one.isdisjoint(other) for one, other in combinations(sets, 2))

    # -- enumerating -----------------------------------------------------------------------------

    def solutions(self) -> Iterator[tuple[list[Seat], dict[tuple[int, str], Wish]]]:
        """Every complete assignment that breaks no rule, in the order of trying. Raises `TooLarge`."""
        requests = [
            (index, request)
            for index, claim in enumerate(self.claims)
            for request in claim["spec"]["devices"]["requests"]
        ]
        yield from self._extend([], {}, requests)

    def _extend(
        self,
        seats: list[Seat],
        wishes: dict[tuple[int, str], Wish],
        requests: Sequence[tuple[int, Json]],
    ) -> Iterator[tuple[list[Seat], dict[tuple[int, str], Wish]]]:
        if not requests:
            yield seats, wishes
            return
        (claim, request), rest = requests[0], requests[1:]
        for wish in wishes_of(claim, request):
            chosen = {**wishes, (claim, wish.name): wish}
            for devices in self._choices(wish):
                more = [*seats, *(Seat(claim, wish.name, key) for key in devices)]
                self.tries += 1
                if self.tries > self.most_tries:
                    raise TooLarge
                if sum(seat.claim == claim for seat in more) > LIMIT or self.violations(more, chosen):
                    continue
                yield from self._extend(more, chosen, rest)

    def _choices(self, wish: Wish) -> Iterator[tuple[Key, ...]]:
        wanted = self.wanted(wish)
        if wanted is None:
            members = tuple(self.members(wish))
            if members:
                yield members
            return
        yield from combinations([key for key in self.devices if self._alone(wish, key)], wanted)

    def _alone(self, wish: Wish, key: Key) -> bool:
        """Whether the device could serve the request if nothing else were asked for."""
        return not self.violations([Seat(wish.claim, wish.name, key)], {(wish.claim, wish.name): wish})


def wishes_of(claim: int, request: Json) -> list[Wish]:
    """The ways to serve a request, best first."""
    if "firstAvailable" in request:
        main = request["name"]
        return [Wish(claim, main, f"{main}/{sub['name']}", sub) for sub in request["firstAvailable"]]
    return [Wish(claim, request["name"], request["name"], request["exactly"])]


def _tolerated(device: Json, wish: Wish) -> bool:
    return all(
        taint["effect"] not in ("NoSchedule", "NoExecute")
        or any(tolerates(toleration, taint) for toleration in wish.body.get("tolerations", ()))
        for taint in device.get("taints", ())
    )


def _meaning(expression: str) -> Any:
    return SELECTORS[expression]


def _admin(wish: Wish) -> bool:
    return bool(wish.body.get("adminAccess"))
