"""The audit finds what is wrong across all claims, and nothing where all is well."""

import random
from dataclasses import replace
from typing import Any

import pytest

from dovetail.core.audit import audit, lasting
from dovetail.core.findings import TRANSIENT, Fault, Finding
from dovetail.core.values import DeviceKey
from tests.audit.cluster import (
    DRIVER,
    claim,
    consumer,
    evidence,
    fence,
    owner,
    pod,
    published,
    result,
)

Body = dict[str, Any]
EVERYTHING = {"operator": "Exists"}
NVIDIA = "gpu.nvidia.com"
ONE_GPU = {"nvidia.com/gpu": "1"}


def share(device: str, share_id: str, **consumed: str) -> Body:
    """A share of a device."""
    return result(device, shareID=share_id, consumedCapacity=consumed)


def takes(name: str, amount: str) -> Body:
    """A device that takes from a shared counter."""
    counters = {"memory": {"value": amount}}
    return {"name": name, "consumesCounters": [{"counterSet": "card", "counters": counters}]}


CARD = {"name": "card", "counters": {"memory": {"value": "80Gi"}}}
SHARED = {"name": "d0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}


SOUND: dict[str, list[Body]] = {
    "two claims on two devices": [published("d0", "d1"), claim("a", "d0"), claim("b", "d1")],
    "equal names in two pools": [
        published("d0"),
        published("d0", pool="n2"),
        claim("a", "d0"),
        claim("b", result("d0", pool="n2")),
    ],
    "admin access beside the holder": [
        published("d0"),
        claim("a", "d0"),
        claim("b", result("d0", adminAccess=True)),
    ],
    "two shares of one device": [
        published(SHARED),
        claim("a", share("d0", "1")),
        claim("b", share("d0", "2")),
    ],
    "shares that fill a device": [
        published(SHARED),
        claim("a", share("d0", "1", memory="6Gi")),
        claim("b", share("d0", "2", memory="4Gi")),
    ],
    "counters used up": [
        published(counters=[CARD], slices=2),
        published(takes("d0", "40Gi"), takes("d1", "40Gi"), slices=2),
        claim("a", "d0"),
        claim("b", "d1"),
    ],
    "a device of a pool whose slices are on their way": [
        published("d0", slices=2),
        claim("a", "d9"),
    ],
    "reserved for a running pod": [
        published("d0"),
        pod("p", "a", node="n1"),
        claim("a", "d0", reserved_for=[consumer("p")], owner=owner("p"), generated=True),
    ],
    "reserved for something that is no pod": [
        published("d0"),
        claim("a", "d0", reserved_for=[{"apiGroup": "x.io", "resource": "jobs", "name": "j", "uid": "u"}]),
    ],
    "a claim of a user": [claim("a")],
    "a claim that tolerates everything where no fence stands": [claim("a", tolerations=[EVERYTHING])],
    "a claim with admin access that tolerates everything": [
        fence(),
        claim("a", tolerations=[EVERYTHING], adminAccess=True),
    ],
    "a claim that tolerates every eviction": [
        fence(),
        claim("a", tolerations=[{**EVERYTHING, "effect": "NoExecute"}]),
    ],
    "a claim that names the fence": [
        fence(),
        claim("a", tolerations=[{"key": "dovetail.dev/owned", "operator": "Exists"}]),
    ],
}


@pytest.mark.parametrize("bodies", SOUND.values(), ids=SOUND.keys())
def test_a_sound_cluster_has_no_findings(bodies: list[Body]) -> None:
    """What Kubernetes allows is no finding."""
    assert audit(evidence(*bodies)) == ()


A, B = ("default", "a"), ("default", "b")
D0 = DeviceKey(DRIVER, "n1", "d0")
POOL = DeviceKey(DRIVER, "n1", "")

PLANTED: dict[str, tuple[list[Body], Finding]] = {
    "a device in two claims": (
        [published("d0"), claim("a", "d0"), claim("b", "d0")],
        Finding(Fault.DEVICE_HELD_TWICE, (A, B), D0, wanted="2"),
    ),
    "a device twice in one claim": (
        [published("d0"), claim("a", "d0", "d0")],
        Finding(Fault.DEVICE_HELD_TWICE, (A,), D0, wanted="2"),
    ),
    "a share beside an exclusive holder": (
        [published(SHARED), claim("a", "d0"), claim("b", share("d0", "1"))],
        Finding(Fault.DEVICE_HELD_TWICE, (A, B), D0, wanted="2"),
    ),
    "the same share twice": (
        [published(SHARED), claim("a", share("d0", "1")), claim("b", share("d0", "1"))],
        Finding(Fault.DEVICE_HELD_TWICE, (A, B), D0, wanted="2"),
    ),
    "counters beyond what there is": (
        [
            published(counters=[CARD], slices=2),
            published(takes("d0", "40Gi"), takes("d1", "41Gi"), slices=2),
            claim("a", "d0"),
            claim("b", "d1"),
        ],
        Finding(Fault.COUNTER_OVERCOMMITTED, (A, B), POOL, "card/memory", wanted="81Gi", available="80Gi"),
    ),
    "a counter that the pool does not have": (
        [published(takes("d0", "1Gi")), claim("a", "d0")],
        Finding(
            Fault.COUNTER_OVERCOMMITTED, (A,), POOL, "card/memory", wanted="1Gi", available="no such counter"
        ),
    ),
    "capacity beyond what there is": (
        [
            published(SHARED),
            claim("a", share("d0", "1", memory="6Gi")),
            claim("b", share("d0", "2", memory="5Gi")),
        ],
        Finding(
            Fault.CAPACITY_OVERCOMMITTED, (A, B), D0, f"{DRIVER}/memory", wanted="11Gi", available="10Gi"
        ),
    ),
    "a device that no driver publishes": (
        [published("d1"), claim("a", "d0")],
        Finding(Fault.NO_SUCH_DEVICE, (A,), D0),
    ),
    "a device of a pool that is gone": ([claim("a", "d0")], Finding(Fault.NO_SUCH_DEVICE, (A,), D0)),
    "a device of an older generation": (
        [published("d0"), published("d1", generation=2), claim("a", "d0")],
        Finding(Fault.NO_SUCH_DEVICE, (A,), D0),
    ),
    "reserved for a pod that is gone": (
        [published("d0"), claim("a", "d0", reserved_for=[consumer("p")])],
        Finding(Fault.RESERVED_FOR_GONE_POD, (A,), consumer="default/p", reason="is gone"),
    ),
    "reserved for a pod that is done": (
        [published("d0"), pod("p", "a", phase="Succeeded"), claim("a", "d0", reserved_for=[consumer("p")])],
        Finding(Fault.RESERVED_FOR_GONE_POD, (A,), consumer="default/p", reason="is done"),
    ),
    "reserved for an earlier pod of the same name": (
        [published("d0"), pod("p", uid="new"), claim("a", "d0", reserved_for=[consumer("p", "old")])],
        Finding(
            Fault.RESERVED_FOR_GONE_POD,
            (A,),
            consumer="default/p",
            reason="was replaced by another pod of that name",
        ),
    ),
    "made for a pod that is gone": (
        [claim("a", owner=owner("p"), generated=True)],
        Finding(Fault.CLAIM_WITHOUT_OWNER, (A,), reason="pod default/p, its owner, is gone"),
    ),
    "made for a pod, without owner": (
        [claim("a", generated=True)],
        Finding(Fault.CLAIM_WITHOUT_OWNER, (A,), reason="no pod owns it"),
    ),
    "allocated without finalizer": (
        [published("d0"), claim("a", "d0", finalizers=())],
        Finding(Fault.ALLOCATED_UNPROTECTED, (A,)),
    ),
    "a bound pod without allocation": (
        [pod("p", "a", node="n1"), claim("a")],
        Finding(Fault.BOUND_WITHOUT_DEVICES, (A,), consumer="default/p", reason="not allocated"),
    ),
    "a bound pod without reservation": (
        [published("d0"), pod("p", "a", node="n1"), claim("a", "d0")],
        Finding(Fault.BOUND_WITHOUT_DEVICES, (A,), consumer="default/p", reason="not reserved for it"),
    ),
    "a bound pod on another node than its devices": (
        [
            published("d0"),
            {"kind": "Node", "metadata": {"name": "n2"}},
            pod("p", "a", node="n2"),
            claim("a", "d0", reserved_for=[consumer("p")]),
        ],
        Finding(Fault.BOUND_ELSEWHERE, (A,), consumer="default/p", reason="node n2"),
    ),
    "a claim of others that tolerates everything": (
        [fence(), claim("a", tolerations=[EVERYTHING])],
        Finding(Fault.TOLERATES_EVERYTHING, (A,), reason="gpu"),
    ),
    "a GPU that a pod may have from a device plugin (T-18, R-G4)": (
        [
            published("d0", driver=NVIDIA),
            claim("a", result("d0", driver=NVIDIA)),
            pod("p", node="n1", takes=ONE_GPU),
        ],
        Finding(
            Fault.GIVEN_BY_PLUGIN_TOO,
            (A,),
            counter="nvidia.com/gpu",
            consumer="default/p",
            reason="devices of gpu.nvidia.com on node n1",
        ),
    ),
}


@pytest.mark.parametrize(("bodies", "finding"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_fault_is_found(bodies: list[Body], finding: Finding) -> None:
    """Each fault is found with its claims, and nothing else is reported beside it."""
    assert audit(evidence(*bodies)) == (finding,)


def test_every_fault_is_planted_somewhere() -> None:
    """No fault can be reported that the tests above do not plant, but for malformed objects."""
    planted = {finding.fault for _, finding in PLANTED.values()}
    assert planted | {Fault.UNREADABLE} == set(Fault)


def test_the_order_of_objects_does_not_matter() -> None:
    """The same objects in any order give the same findings."""
    bodies = [
        published(SHARED, "d1", takes("d2", "1Gi")),
        *(claim(name, "d0", "d1", "d2", generated=True, tolerations=[EVERYTHING]) for name in "abc"),
        fence(),
        pod("p", "a", "b", node="n1"),
    ]
    expected = audit(evidence(*bodies))
    assert len(expected) > len(bodies)
    shuffler = random.Random(1)
    for _ in range(20):
        shuffler.shuffle(bodies)
        assert audit(evidence(*bodies)) == expected


def test_a_claim_of_ours_may_tolerate_everything() -> None:
    """The fence is there for claims of others."""
    seen = evidence(fence(), claim("a", tolerations=[EVERYTHING]))
    assert audit(replace(seen, ours=frozenset({A}))) == ()


def test_what_cannot_be_read_is_reported() -> None:
    """A malformed object is a finding: what it holds is not known."""
    seen = replace(evidence(), malformed=("ResourceClaim 'x' is malformed: spec: not a map",))
    assert [finding.sentence for finding in audit(seen)] == [
        "ResourceClaim 'x' is malformed: spec: not a map."
    ]


def test_a_transient_fault_counts_when_it_lasts() -> None:
    """What controllers repair within seconds is reported when it is there twice; a double holding at once."""
    twice = Finding(Fault.DEVICE_HELD_TWICE, (A, B), D0, wanted="2")
    gone = Finding(Fault.RESERVED_FOR_GONE_POD, (A,), consumer="default/p", reason="is gone")
    assert gone.fault in TRANSIENT
    assert lasting([twice, gone], []) == (twice,)
    assert lasting([twice, gone], [gone]) == (twice, gone)


SENTENCES = {
    "a device in two claims": ("device gpu.example.com/n1/d0 is held 2 times, by default/a and default/b."),
    "counters beyond what there is": (
        "the devices of pool gpu.example.com/n1 that default/a and default/b hold take 81Gi of counter "
        "card/memory, which has 80Gi."
    ),
    "capacity beyond what there is": (
        "the shares of device gpu.example.com/n1/d0 that default/a and default/b hold take 11Gi of "
        "gpu.example.com/memory, which has 10Gi."
    ),
    "a device that no driver publishes": (
        "claim default/a holds device gpu.example.com/n1/d0, which no driver publishes."
    ),
    "reserved for an earlier pod of the same name": (
        "claim default/a is reserved for pod default/p, which was replaced by another pod of that name."
    ),
    "made for a pod that is gone": (
        "claim default/a was made for a pod, but pod default/p, its owner, is gone."
    ),
    "allocated without finalizer": (
        "claim default/a is allocated without the finalizer that lets kube-controller-manager free it."
    ),
    "a bound pod without allocation": "pod default/p is bound, but its claim default/a is not allocated.",
    "a bound pod on another node than its devices": (
        "pod default/p is bound to node n2, which the allocation of its claim default/a does not cover."
    ),
    "a claim of others that tolerates everything": (
        "claim default/a tolerates every taint in request gpu, "
        "so that the fence around Dovetail's devices does not hold it off."
    ),
    "a GPU that a pod may have from a device plugin (T-18, R-G4)": (
        "pod default/p has nvidia.com/gpu from a device plugin, which may be devices of gpu.nvidia.com "
        "on node n1 that default/a got as well."
    ),
}


@pytest.mark.parametrize(("case", "sentence"), SENTENCES.items(), ids=SENTENCES.keys())
def test_each_finding_is_one_sentence(case: str, sentence: str) -> None:
    """A finding says what is wrong and names every object concerned."""
    assert PLANTED[case][1].sentence == sentence


def test_a_finding_as_json_leaves_out_what_it_does_not_have() -> None:
    """The JSON carries the same data as the sentence."""
    assert PLANTED["a device that no driver publishes"][1].as_json() == {
        "fault": "NoSuchDevice",
        "sentence": "claim default/a holds device gpu.example.com/n1/d0, which no driver publishes.",
        "claims": [{"namespace": "default", "name": "a"}],
        "device": {"driver": DRIVER, "pool": "n1", "device": "d0"},
    }
