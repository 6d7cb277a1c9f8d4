"""The randomised run with a fixed seed, and that its script and its judges are what they claim to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from dovetail.core.findings import Fault, Finding
from e2e.chaos import judge, world
from e2e.chaos.attacks import Attack
from e2e.chaos.ledger import MOST_WRITES_A_MINUTE, allowance, busiest_minute
from e2e.chaos.run import Run
from e2e.chaos.script import NODES, SHARED_CLAIMS, Action, Shape, write_script
from e2e.harness import OPERATOR_USER, Cluster, Object, Write
from e2e.tests.claims import GPU, NIC

SEED = 20_261_129
DURATION = 120.0
ENDS = {
    Action.KILL_OPERATOR: Action.START_OPERATOR,
    Action.FREEZE_OPERATOR: Action.WAKE_OPERATOR,
    Action.CORDON: Action.UNCORDON,
    Action.TAKE_NODE: Action.RETURN_NODE,
    Action.WIPE_DRIVER: Action.PUBLISH_DRIVER,
    Action.SILENCE: Action.TALK,
}


@pytest.mark.timeout(900)
async def test_nothing_is_wrong_while_everything_comes_goes_and_dies(cluster: Cluster) -> None:
    """Two minutes by a fixed seed: clean audits, who can run runs, all is free at the end, writes are few."""
    said: list[str] = []

    verdict = await Run(cluster, seed=SEED, duration=DURATION, say=said.append)()

    assert verdict.holds, "\n".join([*said, str(verdict)])
    assert verdict.ran > verdict.pods / 4
    assert verdict.audits > DURATION / 10


@pytest.mark.parametrize("seed", range(20))
def test_the_seed_alone_decides(seed: int) -> None:
    """The same seed gives the same script, another one another; whatever is taken away is brought back."""
    script = write_script(seed, DURATION)

    assert script == write_script(seed, DURATION)
    assert script != write_script(seed + 1, DURATION)
    assert [step.at for step in script] == sorted(step.at for step in script)
    happened = Counter((step.action, step.subject) for step in script)
    for (action, subject), times in happened.items():
        if action in ENDS:
            assert happened[ENDS[action], subject] == times


def test_every_kind_of_disturbance_happens_within_two_minutes() -> None:
    """The script of the fixed seed leaves nothing out, and its pods are of every shape."""
    script = write_script(SEED, DURATION)

    assert {step.action for step in script} == set(Action)
    assert {step.shape for step in script} - {None} == set(Shape)
    assert {step.attack for step in script} - {None} == set(Attack)
    assert {step.is_gated for step in script if step.attack} == {True, False}


def claim(name: str, driver: str, node: str, device: str) -> Object:
    """A claim that holds a device."""
    result = {"request": "one", "driver": driver, "pool": node, "device": device}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "namespace": "t", "uid": name, "finalizers": [PROTECTED]},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": driver}}]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


PROTECTED = "resource.kubernetes.io/delete-protection"


def test_a_planted_clash_is_found() -> None:
    """A device in two claims is a finding, in one claim it is none."""
    found: dict[str, tuple[Object, ...]] = dict.fromkeys(judge.KINDS, ())
    found["ResourceSlice"] = world.slices("n0", GPU, 1)
    once = found | {"ResourceClaim": (claim("a", GPU, "n0", "gpu-0"), claim("b", GPU, "n0", "gpu-1"))}
    twice = found | {"ResourceClaim": (claim("a", GPU, "n0", "gpu-0"), claim("b", GPU, "n0", "gpu-0"))}

    assert judge.audit(once) == ()
    assert [finding.fault for finding in judge.audit(twice)] == [Fault.DEVICE_HELD_TWICE]


def test_only_a_pod_that_holds_another_claim_for_the_same_entry_is_excused() -> None:
    """Bound without devices is wrong, unless kube-controller-manager made the claim twice (G22)."""
    named = made_for("pod-uid", claim("named", GPU, "n0", "gpu-0")) | {"status": {}}
    twin = made_for("pod-uid", claim("twin", GPU, "n0", "gpu-0"))
    stranger = made_for("other-uid", claim("stranger", GPU, "n0", "gpu-0"))
    finding = Finding(Fault.BOUND_WITHOUT_DEVICES, (("t", "named"),), consumer="t/p")

    assert judge.was_made_twice(finding, {"ResourceClaim": (named, twin)})
    assert not judge.was_made_twice(finding, {"ResourceClaim": (named, stranger)})
    assert not judge.was_made_twice(finding, {"ResourceClaim": (named, twin | {"status": {}})})
    clash = Finding(Fault.DEVICE_HELD_TWICE, (("t", "named"), ("t", "twin")))
    assert not judge.was_made_twice(clash, {"ResourceClaim": (named, twin)})


def made_for(uid: str, body: Object) -> Object:
    """The claim as it is made for a pod's entry."""
    owner = {"kind": "Pod", "uid": uid, "controller": True}
    entry = {"resource.kubernetes.io/pod-claim-name": "devices"}
    return body | {"metadata": body["metadata"] | {"ownerReferences": [owner], "annotations": entry}}


def test_a_pod_that_could_run_is_noticed() -> None:
    """With all GPUs and NICs taken only a plain pod could; with one free pair on one NUMA node most could."""
    pods = [world.pod(shape.name, shape, SHARED_CLAIMS[0] * (shape is Shape.SHARED)) for shape in Shape]
    waiting = [body | {"status": {}} for body in pods]
    taken = [
        (driver, node, f"{prefix}-{index}")
        for driver, prefix in ((GPU, "gpu"), (NIC, "nic"))
        for node in NODES
        for index in range(len(world.PLACES))
    ]
    pair = {(GPU, "n3", "gpu-0"), (NIC, "n3", "nic-1")}

    assert could_run(waiting, taken) == {"PLAIN"}
    assert could_run(waiting, set(taken) - pair) == {"PLAIN", "PAIR", "BESIDE", "SHARED", "UNGATED"}


def could_run(pods: list[Object], taken: Iterable[tuple[str, str, str]]) -> set[str]:
    """The pods that could run while claims hold these devices."""
    return set(world.could_run(pods, [claim("-".join(each), *each) for each in taken]))


def test_writes_are_counted_per_claim_and_minute() -> None:
    """A hot loop on one claim shows, the same number of writes spread over claims or time does not."""
    rng = Random(1)
    times = [rng.uniform(0, 50) for _ in range(MOST_WRITES_A_MINUTE + 1)]

    assert busiest_minute([write("a", at) for at in times], {}) == len(times)
    assert busiest_minute([write("a", at) for at in times], {"a": 5}) == len(times) - 5
    assert busiest_minute([write(f"c{index}", at) for index, at in enumerate(times)], {}) == 1
    assert busiest_minute([write("a", 61.0 * index) for index in range(20)], {}) == 1


def test_an_attempt_allows_what_the_design_says() -> None:
    """Two writes for each claim, the gate and the condition; an unknown event allows nothing."""
    assert allowance([{"event": "pod_allocated", "claims": 2}], 0) == 6
    assert allowance([{"event": "operator_ready"}], 0) == 0


def write(name: str, at: float) -> Write:
    """A write of the operator to a claim's status."""
    return Write(OPERATOR_USER, "update", "resourceclaims", "status", "t", name, 200, dry_run=False, at=at)
