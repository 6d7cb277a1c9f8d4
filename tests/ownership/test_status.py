"""The status of a DeviceOwnership says how far its fence stands, whom it stops and what is wrong inside."""

from typing import Any

from dovetail.api.ownership import DeviceOwnership
from dovetail.api.slices import ResourceSlice
from dovetail.core.fence_effects import Stopped, Waiting
from dovetail.core.findings import Fault, Finding
from dovetail.core.ownership import fence_of
from dovetail.core.ownership_status import Inspection, state_of, status_of
from dovetail.core.pool_records import read_pools
from dovetail.core.values import DeviceKey
from tests.audit.cluster import DRIVER, ownership, published

EARLY, LATE = "2026-11-29T10:00:00Z", "2026-11-29T11:00:00Z"
TWICE = Finding(
    Fault.DEVICE_HELD_TWICE, (("default", "a"), ("default", "b")), DeviceKey(DRIVER, "n1", "d0"), wanted="2"
)
ELSEWHERE = Finding(Fault.NO_SUCH_DEVICE, (("default", "a"),), DeviceKey("other.example.com", "n1", "d0"))


def status(
    *findings: Finding,
    served: bool = True,
    audited: bool = True,
    stops: tuple[Waiting, ...] = (),
    before: dict[str, Any] | None = None,
    now: str = EARLY,
) -> dict[str, Any]:
    """The status of an object that owns all devices of the driver."""
    owner = DeviceOwnership.parse(ownership({"driver": DRIVER}))
    fence = fence_of(owner, read_pools([ResourceSlice.parse(published("d0", "d1"))]))
    return status_of(
        owner,
        fence,
        state_of(fence, served=served),
        inspection=Inspection(findings, {"gpus": stops}) if audited else None,
        before=before or {},
        now=now,
    )


def condition(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """One condition of a status."""
    found: dict[str, Any] = next(entry for entry in body["conditions"] if entry["type"] == kind)
    return found


def test_the_status_names_rules_devices_and_toleration() -> None:
    """Who reads the object learns what is fenced, by which rules, and how to pass."""
    body = status()
    assert body["fenced"] == {"devices": 2, "pools": 1}
    assert len(body["rules"]) == 1
    assert body["toleration"] == {"key": "dovetail.dev/owned", "operator": "Exists", "effect": "NoSchedule"}
    assert condition(body, "Fenced")["status"] == "True"


def test_nothing_is_claimed_where_rules_are_not_served() -> None:
    """Without DeviceTaintRule no device counts as fenced."""
    body = status(served=False)
    assert (body["fenced"], body["rules"]) == ({"devices": 0, "pools": 0}, [])
    assert condition(body, "Fenced")["reason"] == "NotServed"


def test_a_finding_about_an_owned_device_makes_the_object_unclean() -> None:
    """The condition carries the fault and its sentence."""
    clean = condition(status(TWICE, ELSEWHERE), "Clean")
    assert (clean["status"], clean["reason"]) == ("False", "DeviceHeldTwice")
    assert clean["message"] == "device gpu.example.com/n1/d0 is held 2 times, by default/a and default/b"


def test_a_finding_about_another_device_does_not_concern_the_object() -> None:
    """Each object answers for its own devices."""
    assert condition(status(ELSEWHERE), "Clean")["status"] == "True"


def test_before_the_first_audit_nothing_is_said_of_it() -> None:
    """An object is not called clean before anybody looked."""
    assert "Clean" not in [entry["type"] for entry in status(audited=False)["conditions"]]


def test_whom_the_fence_stops_is_named_with_an_example() -> None:
    """Each kind of waiting consumer comes with a count and one of them."""
    body = status(stops=(Waiting(Stopped.ALL_DEVICES, 2, ("default", "monitor")),))
    assert body["stops"] == [{"kind": "AllDevices", "count": 2, "example": "default/monitor"}]


def test_an_unchanged_status_is_equal_to_the_one_before() -> None:
    """Time alone changes nothing, so that nothing is written."""
    before = status(TWICE)
    assert status(TWICE, before=before, now=LATE) == before


def test_a_condition_is_dated_by_its_last_change() -> None:
    """Only the condition whose status changed gets a new time; conditions of others stay."""
    foreign = {"type": "Other", "status": "True", "reason": "x", "message": "", "lastTransitionTime": EARLY}
    before = status()
    before["conditions"].append(foreign)
    after = status(TWICE, before=before, now=LATE)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in after["conditions"]}
    assert times == {"Fenced": EARLY, "Clean": LATE, "Permitted": EARLY, "Other": EARLY}
