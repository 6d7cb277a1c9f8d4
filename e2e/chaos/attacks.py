"""What a hostile tenant asks for, in a namespace of its own: none of it may be felt by anybody else."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from itertools import combinations
from random import Random

from e2e.harness import Object, objects
from e2e.tests.claims import GPU, NUMA

HARD = "hard.example.com"
"""A driver with which a search never ends in time; only the tenant asks for its devices."""

HARD_NODE = "n3"
HARD_DEVICES, HARD_ATTRIBUTES, HARD_VALUES, HARD_REQUESTS = 80, 28, 6, 12
MOST_REQUESTS = 32
"""As many as the API server takes."""


class Attack(enum.StrEnum):
    """What the tenant's claim is made to do."""

    COMPILE_BOMB = "expression that doubles with every link"
    RUN_BOMB = "expression that visits a tree without end"
    COMPARE_BOMB = "expression that compares a tree without end"
    FIND_BOMB = "expression that searches a long text"
    TOO_DEAR = "expression that costs too much"
    CUT = "search without end"
    MANY_REQUESTS = "as many requests as there can be"
    MALFORMED = "parameters that are none"
    DEEP = "parameters that are lists in lists"


def _tower(last: str) -> str:
    """`last`, where `v40` names a list of two lists of two lists, forty deep."""
    binds = "".join(f"cel.bind(v{each},[v{each - 1},v{each - 1}]," for each in range(1, 41))
    return f"cel.bind(v0,[],{binds}{last}{')' * 41}"


_EXPRESSIONS: Mapping[Attack, str] = {
    Attack.COMPILE_BOMB: f"optional.of(1){'.optMap(x,x)' * 40}.orValue(1)",
    Attack.RUN_BOMB: _tower("v40.flatten(60).size()"),
    Attack.COMPARE_BOMB: _tower("lists.range(1000).all(x, v40==v40) ? 1 : 2"),
    Attack.FIND_BOMB: "cel.bind(s, lists.range(65536).map(x, 'a').join(), s.findAll('a').size())",
    Attack.TOO_DEAR: "lists.range(3000).map(x, lists.range(3000).filter(y, y > x).size()).size()",
}


def hardware() -> tuple[Object, ...]:
    """The devices among which no search ends, and their class."""
    chance = Random(4)
    found = [
        objects.device(
            f"dev-{index}",
            numaNode=0,
            **{f"x{number}": chance.randrange(HARD_VALUES) for number in range(HARD_ATTRIBUTES)},
        )
        for index in range(HARD_DEVICES)
    ]
    return (objects.device_class(HARD), objects.resource_slice(HARD_NODE, HARD, found))


def claim(name: str, attack: Attack) -> Object:
    """The claim of an attack; nothing that it asks for can be given."""
    build: Mapping[Attack, Callable[[], Object]] = {
        Attack.CUT: _hard_spec,
        Attack.MANY_REQUESTS: lambda: objects.claim_spec(
            {f"r{index}": GPU for index in range(MOST_REQUESTS)}, match=NUMA
        ),
        Attack.MALFORMED: lambda: _with_parameters({"derivedAttributes": "none"}),
        Attack.DEEP: lambda: _with_parameters({"derivedAttributes": _nested(60)}),
    }
    spec = build[attack]() if attack in build else _with_expression(_EXPRESSIONS[attack])
    return objects.claim(name, spec)


def pod(name: str, *, is_gated: bool) -> Object:
    """A pod for the claim of its name."""
    return objects.pod(name, claims={"devices": name}, gates=(objects.GATE,) if is_gated else ())


def _with_expression(expression: str) -> Object:
    return _with_parameters({"derivedAttributes": [{"name": "derived/k", "expression": expression}]})


def _with_parameters(fields: Object) -> Object:
    """More GPUs than there are on any NUMA node, with a mapping of the claim's own besides."""
    parameters = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"} | fields
    return objects.claim_spec(
        {"gpu": {"deviceClassName": GPU, "count": 3}},
        match=(NUMA, "derived/k"),
        config=[{"opaque": {"driver": "dovetail.dev", "parameters": parameters}}],
    )


def _nested(depth: int) -> object:
    inner: object = "x"
    for _ in range(depth):
        inner = [inner]
    return inner


def _hard_spec() -> Object:
    """Twelve devices on one NUMA node, pairs of which have to share something."""
    pairs = list(combinations(range(HARD_REQUESTS), 2))
    Random(1).shuffle(pairs)
    constraints = [
        {"matchAttribute": f"{HARD}/x{index}", "requests": [f"r{one}", f"r{other}"]}
        for index, (one, other) in enumerate(pairs[:HARD_ATTRIBUTES])
    ]
    requests = {f"r{index}": HARD for index in range(HARD_REQUESTS)}
    return objects.claim_spec(requests, match=NUMA, constraints=constraints)
