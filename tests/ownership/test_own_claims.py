"""Claims of ours pass our own fence; claims of others, and every other taint, are treated as before."""

from typing import Any

import pytest

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.mappings import DerivedAttribute
from dovetail.api.ownership import DeviceOwnership
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.allocator import allocate
from dovetail.core.attributes import Mappings
from dovetail.core.budget import Budget
from dovetail.core.features import Features
from dovetail.core.inventory import Inventory
from dovetail.core.outcome import DoesNotFit, Fits
from dovetail.core.ownership import fence_of
from tests.audit.cluster import DRIVER, claim, ownership, published

Body = dict[str, Any]
ATTRIBUTE = "dovetail.example/numa"
NUMA = f'device.attributes["{DRIVER}"].numa'
DEVICE = {"name": "d0", "attributes": {"numa": {"int": 0}}}
PARAMETERS = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"}


def fenced(*rules: Body) -> Inventory:
    """One device of one node behind a fence, with a mapping, and further taint rules."""
    mapping = DerivedAttribute.parse(
        {
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": "DerivedAttribute",
            "metadata": {"name": "numa"},
            "spec": {"attribute": ATTRIBUTE, "rules": [{"driver": DRIVER, "expression": NUMA}]},
        }
    )
    inventory = Inventory(Features(), Mappings.of([mapping], shipped=False))
    inventory.put_class(DeviceClass.parse({"metadata": {"name": "gpu"}, "spec": {}}))
    inventory.put_slice(ResourceSlice.parse(published(DEVICE)))
    fence = fence_of(DeviceOwnership.parse(ownership({"driver": DRIVER})), {})
    for rule in (*fence.rules, *rules):
        inventory.put_taint_rule(DeviceTaintRule.parse(rule))
    return inventory


def asking(*, match: str = "", config: list[Body] | None = None) -> ResourceClaim:
    """A claim for one device."""
    body = claim("a")
    body["spec"]["devices"]["constraints"] = [{"matchAttribute": match}] if match else []
    body["spec"]["devices"]["config"] = config or []
    return ResourceClaim.parse(body)


def answer(inventory: Inventory, wanted: ResourceClaim) -> Fits | DoesNotFit:
    """What the allocator says."""
    found = allocate(inventory, [wanted], "n1", budget=Budget.unlimited())
    assert isinstance(found, Fits | DoesNotFit)
    return found


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(asking(match=ATTRIBUTE), id="by constraint"),
        pytest.param(
            asking(config=[{"opaque": {"driver": "dovetail.dev", "parameters": PARAMETERS}}]),
            id="by configuration",
        ),
    ],
)
def test_a_claim_of_ours_passes_the_fence(wanted: ResourceClaim) -> None:
    """An owned device is there for claims of ours, and the result does not pretend to a toleration."""
    found = answer(fenced(), wanted)
    assert isinstance(found, Fits)
    (result,) = found.allocations[0].body["devices"]["results"]
    assert (result["device"], "tolerations" in result) == ("d0", False)


def test_a_claim_of_others_does_not_pass_the_fence() -> None:
    """A claim that is planned for kube-scheduler gets what kube-scheduler would give it."""
    assert isinstance(answer(fenced(), asking()), DoesNotFit)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_other_taints_count_for_claims_of_ours(effect: str) -> None:
    """An administrator's taint keeps the device from everybody who does not tolerate it."""
    rule = {
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": "example.com/broken", "effect": effect},
        },
    }
    assert isinstance(answer(fenced(rule), asking(match=ATTRIBUTE)), DoesNotFit)
