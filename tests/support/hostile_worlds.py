"""Claims, slices and pods as a tenant or a driver would write them who wants a decision to take for ever.

Everything is within what the API server accepts: 32 requests, 8 alternatives each, 32 constraints, 128
devices per slice, 64 values per attribute.
"""

import argparse
import gc
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from threading import get_ident
from time import clock_gettime, process_time, pthread_getcpuclockid
from typing import Any

from dovetail.api.mappings import GATE
from dovetail.core.budget import Budget
from dovetail.core.decisions import Cut, Decision
from dovetail.core.features import GATES, Features
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.world import World
from dovetail.errors import TooCostly
from dovetail.services.costs import GRACE_SECONDS
from dovetail.services.watchdog import Watchdog

Body = dict[str, Any]

DRIVER = "hostile.example.com"
SECONDS = 0.2
STEPS = 2_000_000
MEBIBYTES = 128
MOST_SECONDS, MOST_MEBIBYTES = 0.5, 200
"""The bars: what one decision, or taking in one object, may cost at most."""

MOST_DEVICES = 128


@dataclass(frozen=True, slots=True)
class Measured:
    """What one world cost: the dearest object taken in, the decision, and by how much the process grew."""

    seed: int
    shape: str
    put_seconds: float
    decision_seconds: float
    mebibytes: float
    unwatched_seconds: float
    """The longest that the decision went on without a look at the clock."""
    decision: str

    @property
    def holds(self) -> bool:
        """Whether it stayed within the bars."""
        seconds = max(self.put_seconds, self.decision_seconds)
        return seconds <= MOST_SECONDS and self.mebibytes <= MOST_MEBIBYTES


def main() -> int:
    """Try so many worlds, and print those that cost too much; 0 where there are none."""
    options = argparse.ArgumentParser()
    options.add_argument("--worlds", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    measured = [measure(given.seed + number) for number in range(given.worlds)]
    for each in (each for each in measured if not each.holds):
        print(each)
    print("the dearest:", max(measured, key=lambda each: each.decision_seconds))
    return 0 if all(each.holds for each in measured) else 1


def measure(seed: int, shape: str = "") -> Measured:
    """Make the world of a seed and decide in it, within the limits that the operator has."""
    random = Random(seed)
    name = shape or random.choice(sorted(SHAPES))
    world, dearest = World(Features.none().with_gates(dict.fromkeys(GATES, True))), 0.0
    bodies = list(SHAPES[name](random))
    for body in bodies:
        began = process_time()
        world.put(body["kind"], body)
        dearest = max(dearest, process_time() - began)
    for node_name in {body["metadata"]["name"] for body in bodies if body["kind"] == "Node"}:
        # What nodes offer is worked out once, for whoever asks first.
        world.inventory.offers.state(node_name)
    # What earlier worlds left is not collected at the cost of this decision.
    gc.collect()
    before, began, clock = _resident(), process_time(), _Clock()
    budget = Budget(STEPS, is_over=clock.is_over)
    # CPU time, so that what else the machine does counts for nothing.
    watchdog = Watchdog(clock=clock.seconds)

    def decide() -> Decision:
        return plan_pod(world, world.pods["default", "p"], settings=PlanSettings(), budget=budget)

    try:
        decision = watchdog.guard(decide, seconds=SECONDS + GRACE_SECONDS, mebibytes=MEBIBYTES)
        told = str(decision.reason) if isinstance(decision, Cut) else type(decision).__name__
    except TooCostly:
        told = "CostsTooMuch"
    finally:
        watchdog.close()
    clock.is_over()
    took = process_time() - began
    grown = max(_resident() - before, 0.0)
    return Measured(seed, name, dearest, took, grown, clock.longest, told)


class _Clock:
    """The CPU time of the thread that makes it, and the longest pause between two looks at it."""

    def __init__(self) -> None:
        self._id = pthread_getcpuclockid(get_ident())
        self._began = self._seen = self.seconds()
        self.longest = 0.0

    def seconds(self) -> float:
        """What the thread has used, whoever asks."""
        return clock_gettime(self._id)

    def is_over(self) -> bool:
        """Whether the time of a decision is up."""
        now = self.seconds()
        self.longest, self._seen = max(self.longest, now - self._seen), now
        return now - self._began > SECONDS


def _resident() -> float:
    """The most memory this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- pieces ----------------------------------------------------------------------------------------


def node(name: str, **labels: str) -> Body:
    """A node with room for everything."""
    amounts = {"cpu": "1000", "memory": "10Ti", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def slice_of(node_name: str, devices: list[Body], **spec: Any) -> Body:
    """A slice of a node."""
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node_name}"},
        "spec": {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": devices, **spec},
    }


def device_class() -> Body:
    """All devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "any"},
        "spec": {"selectors": [selector]},
    }


def lists(random: Random, values: int, of: int) -> Body:
    """A list of so many strings out of so many."""
    return {"strings": [f"v{value}" for value in random.sample(range(of), min(values, of))]}


def exactly(count: int = 1, **more: Any) -> Body:
    """A plain wish."""
    return {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count, **more}


def claim(requests: list[Body], constraints: list[Body], config: list[Body] | None = None) -> Body:
    """The claim of the pod."""
    devices = {"requests": requests, "constraints": constraints, "config": config or []}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "c"},
        "spec": {"devices": devices},
    }


def pod(**spec: Any) -> Body:
    """The pod that wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "p", "labels": {"app": "p"}},
        "spec": {
            "schedulingGates": [{"name": GATE}],
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
            "containers": [{"name": "main", "resources": {"claims": [{"name": "c"}]}}],
            **spec,
        },
    }


OURS: Body = {
    "opaque": {
        "driver": "dovetail.dev",
        "parameters": {
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": "ClaimParameters",
            "derivedAttributes": [
                {"name": "own/name", "expression": "device.name.substring(0, 1)"},
            ],
        },
    }
}
"""Makes the claim Dovetail's."""


def _wishes(random: Random, count: int, *, alternatives: bool) -> list[Body]:
    if not alternatives:
        return [{"name": f"r{i}", "exactly": exactly()} for i in range(count)]
    return [
        {
            "name": f"r{i}",
            "firstAvailable": [
                {"name": f"a{j}", **exactly(random.choice((1, 1, 2, 4)))} for j in range(random.randint(2, 8))
            ],
        }
        for i in range(count)
    ]


def _constraints(random: Random, count: int, names: list[str], attributes: int) -> list[Body]:
    made = []
    for _ in range(count):
        kind = random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        some = random.sample(names, random.randint(1, len(names)))
        made.append({kind: f"{DRIVER}/a{random.randrange(attributes)}", "requests": some})
    return made


# -- shapes ----------------------------------------------------------------------------------------


def listed(random: Random) -> Iterator[Body]:
    """32 requests under constraints over attributes with 64 values each, of 128 devices."""
    attributes, of = random.randint(1, 8), random.choice((64, 100, 1000, 8192))
    devices = [
        {
            "name": f"d{i}",
            "attributes": {f"a{a}": lists(random, random.choice((8, 64)), of) for a in range(attributes)},
        }
        for i in range(MOST_DEVICES)
    ]
    wishes = _wishes(random, random.randint(2, 32), alternatives=random.random() < 0.5)
    names = [wish["name"] for wish in wishes]
    yield from (node("n"), device_class(), slice_of("n", devices))
    yield claim(wishes, _constraints(random, random.randint(1, 32), names, attributes), [OURS])
    yield pod()


def scalar(random: Random) -> Iterator[Body]:
    """The same over single values, few or many, on several nodes that all differ."""
    attributes = random.randint(1, 8)
    wishes = _wishes(random, random.randint(2, 32), alternatives=random.random() < 0.5)
    names = [wish["name"] for wish in wishes]
    yield device_class()
    for n in range(random.choice((1, 3, 20))):
        devices = [
            {
                "name": f"d{i}",
                "attributes": {
                    f"a{a}": {"int": random.randrange(random.choice((2, 5, 64)))} for a in range(attributes)
                },
            }
            for i in range(random.choice((16, 32, 64, 128)))
        ]
        yield from (node(f"n{n}"), slice_of(f"n{n}", devices))
    yield claim(wishes, _constraints(random, random.randint(1, 32), names, attributes), [OURS])
    yield pod()


def everything(random: Random) -> Iterator[Body]:
    """All devices, beside others that want some, under constraints that admit few."""
    devices = [
        {"name": f"d{i}", "attributes": {"a0": lists(random, 64, 70), "a1": {"int": i % 7}}}
        for i in range(random.choice((16, 32, 128)))
    ]
    wishes = _wishes(random, random.randint(1, 16), alternatives=True)
    wishes += [{"name": "all", "exactly": {"deviceClassName": "any", "allocationMode": "All"}}]
    random.shuffle(wishes)
    names = [wish["name"] for wish in wishes]
    yield from (node("n"), device_class(), slice_of("n", devices))
    yield claim(wishes, _constraints(random, random.randint(0, 32), names, 2), [OURS])
    yield pod()


def counted(random: Random) -> Iterator[Body]:
    """Devices that draw from counters of many sets."""
    sets = [
        {"name": f"s{s}", "counters": {f"c{c}": {"value": str(random.randint(1, 99))} for c in range(32)}}
        for s in range(8)
    ]
    devices = [
        {
            "name": f"d{i}",
            "attributes": {"a0": {"int": i % 5}, "a1": lists(random, 32, 64)},
            "consumesCounters": [
                {
                    "counterSet": f"s{s}",
                    "counters": {f"c{c}": {"value": str(random.randint(0, 40))} for c in range(32)},
                }
                for s in random.sample(range(8), random.randint(1, 2))
            ],
        }
        for i in range(64)
    ]
    wishes = _wishes(random, random.randint(8, 32), alternatives=random.random() < 0.5)
    names = [wish["name"] for wish in wishes]
    counters, offer = slice_of("n", []), slice_of("n", devices)
    counters["metadata"] = {"name": "counters"}
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = sets
    for each in (counters, offer):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    yield from (node("n"), device_class(), counters, offer)
    yield claim(wishes, _constraints(random, random.randint(0, 32), names, 2), [OURS])
    yield pod()


def shared(random: Random) -> Iterator[Body]:
    """Devices that are shared, with policies for every capacity."""

    def policy() -> Body:
        if random.random() < 0.5:
            return {"default": "1", "validRange": {"min": "1", "max": "10k", "step": "1"}}
        return {"default": "1", "validValues": [str(value) for value in range(1, 11)]}

    devices = [
        {
            "name": f"d{i}",
            "attributes": {"a0": {"int": i % 3}, "a1": lists(random, 64, 80)},
            "allowMultipleAllocations": True,
            "capacity": {f"m{c}": {"value": "10k", "requestPolicy": policy()} for c in range(16)},
        }
        for i in range(64)
    ]
    wishes: list[Body] = [
        {
            "name": f"r{i}",
            "exactly": exactly(
                random.choice((1, 1, 3)),
                capacity={"requests": {f"m{c}": str(random.randint(1, 9_000)) for c in range(16)}},
            ),
        }
        for i in range(random.choice((8, 16, 32)))
    ]
    names = [wish["name"] for wish in wishes]
    yield from (node("n"), device_class(), slice_of("n", devices))
    yield claim(wishes, _constraints(random, random.randint(0, 32), names, 2), [OURS])
    yield pod()


def tainted(random: Random) -> Iterator[Body]:
    """Every device with taints, every request with tolerations of its own."""
    taints = [{"key": f"k{t}", "value": "v", "effect": "NoSchedule"} for t in range(16)]
    devices = [{"name": f"d{i}", "attributes": {"a0": {"int": i % 2}}, "taints": taints} for i in range(64)]
    tolerations = [
        {"key": f"k{t}", "operator": "Equal", "value": f"v{t % 3}", "effect": "NoSchedule"} for t in range(16)
    ]
    wishes = [
        {
            "name": f"r{i}",
            "firstAvailable": [
                {"name": f"a{j}", **exactly(tolerations=random.sample(tolerations, 16))} for j in range(8)
            ],
        }
        for i in range(32)
    ]
    yield device_class()
    for n in range(random.choice((1, 30))):
        yield from (node(f"n{n}"), slice_of(f"n{n}", devices[n:]))
    yield claim(wishes, [{"matchAttribute": f"{DRIVER}/a0"}], [OURS])
    yield pod()


def selective(random: Random) -> Iterator[Body]:
    """32 requests of 8 alternatives with 32 selectors each, all different, on devices that all differ."""
    devices = [
        {"name": f"d{i}", "attributes": {f"a{a}": {"int": i * 31 + a} for a in range(16)}} for i in range(128)
    ]
    number = random.randrange(10**6)

    def selectors(seed: int) -> list[Body]:
        return [
            {"cel": {"expression": f'device.attributes["{DRIVER}"].a{s % 16} >= -{number + seed * 40 + s}'}}
            for s in range(32)
        ]

    wishes = [
        {
            "name": f"r{i}",
            "firstAvailable": [
                {"name": f"a{j}", **exactly(selectors=selectors(i * 8 + j))} for j in range(8)
            ],
        }
        for i in range(32)
    ]
    yield from (node("n"), device_class(), slice_of("n", devices))
    yield claim(wishes, [{"distinctAttribute": f"{DRIVER}/a0"}], [OURS])
    yield pod()


def many_nodes(random: Random) -> Iterator[Body]:
    """Nodes by the hundred that all offer something else, and a claim that fits on none of them."""
    yield device_class()
    for n in range(random.choice((300, 1000))):
        devices = [
            {"name": f"d{i}", "attributes": {"a0": {"int": n * 8 + i}, "a1": {"int": i % 2}}}
            for i in range(8)
        ]
        yield from (node(f"n{n}"), slice_of(f"n{n}", devices))
    wishes = _wishes(random, random.choice((4, 8)), alternatives=random.random() < 0.5)
    names = [wish["name"] for wish in wishes]
    unequal = {"matchAttribute": f"{DRIVER}/a0", "requests": names}
    yield claim(wishes, [unequal, *_constraints(random, 6, names, 2)], [OURS])
    yield pod()


def huge_pod(random: Random) -> Iterator[Body]:
    """A pod with as many terms of affinity, spread and tolerations as fit into an object of 1.5 MB."""
    for n in range(random.choice((100, 500))):
        yield node(f"n{n}", zone=f"z{n % 7}", rack=f"r{n}")
    yield from (device_class(), slice_of("n0", [{"name": "d", "attributes": {"a0": {"int": 1}}}]))
    for other in range(200):
        body = pod(nodeName=f"n{other % 100}")
        body["metadata"] = {"name": f"o{other}", "namespace": "default", "labels": {"app": f"o{other % 9}"}}
        del body["spec"]["schedulingGates"], body["spec"]["resourceClaims"]
        yield body
    terms = random.choice((50, 200, 700))

    def term(number: int, app: str) -> Body:
        values = [f"{app}{value}" for value in range(number % 20 + 1)]
        expression = {"key": "app", "operator": "NotIn", "values": values}
        return {
            "topologyKey": random.choice(("zone", "rack", "kubernetes.io/hostname")),
            "labelSelector": {"matchExpressions": [expression] * random.choice((1, 10))},
        }

    nodes = {
        "matchExpressions": [
            {"key": "rack", "operator": "NotIn", "values": [f"x{value}" for value in range(50)]}
        ]
    }
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [nodes] * terms}
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(i, "o") for i in range(terms)]
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(i, "x") for i in range(terms)]
        },
    }
    spread = [
        {
            "maxSkew": i % 5 + 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": f"o{i}"}},
        }
        for i in range(terms)
    ]
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(terms)]
    which = random.choice(("affinity", "spread", "both"))
    spec: Body = {"tolerations": tolerations}
    if which != "spread":
        spec["affinity"] = affinity
    if which != "affinity":
        spec["topologySpreadConstraints"] = spread
    yield claim(_wishes(random, 1, alternatives=False), [], [OURS])
    yield pod(**spec)


def held(random: Random) -> Iterator[Body]:
    """Everything is in use by many claims, so that there is much to say about what would help."""
    count = random.choice((32, 128))
    devices = [
        {"name": f"d{i}", "attributes": {"a0": lists(random, 8, 40), "a1": {"int": i % 4}}}
        for i in range(count)
    ]
    yield from (node("n"), device_class(), slice_of("n", devices))
    for i in range(count):
        body = claim([{"name": "r", "exactly": exactly()}], [])
        body["metadata"] = {"name": f"h{i}", "namespace": f"ns{i % 5}", "uid": f"h{i}"}
        result = {"request": "r", "driver": DRIVER, "pool": "n", "device": f"d{i}"}
        body["status"] = {"allocation": {"devices": {"results": [result]}}}
        yield body
    wishes = _wishes(random, random.choice((4, 16, 32)), alternatives=random.random() < 0.5)
    names = [wish["name"] for wish in wishes]
    yield claim(wishes, _constraints(random, random.choice((1, 8, 32)), names, 2), [OURS])
    yield pod()


SHAPES: dict[str, Callable[[Random], Iterator[Body]]] = {
    shape.__name__: shape
    for shape in (
        listed,
        scalar,
        everything,
        counted,
        shared,
        tainted,
        selective,
        many_nodes,
        huge_pod,
        held,
    )
}


if __name__ == "__main__":
    raise SystemExit(main())
