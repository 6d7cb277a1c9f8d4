"""The fence names whom it keeps waiting, and who may pass."""

from typing import Any

import pytest

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.pods import Pod
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.fence_effects import Stopped, Waiting, stopped_by
from dovetail.core.values import DeviceKey
from tests.audit.cluster import DRIVER, claim

Body = dict[str, Any]
OWNED = DeviceView(DeviceKey(DRIVER, "n1", "d0"))
KEY = ("default", "a")


def device_class(name: str, driver: str = DRIVER, extended: str | None = None) -> DeviceClass:
    """A class of all devices of a driver."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    spec = {"selectors": [selector], "extendedResourceName": extended}
    return DeviceClass.parse({"metadata": {"name": name}, "spec": spec})


CLASSES = {
    "gpu": device_class("gpu", extended="example.com/gpu"),
    "nic": device_class("nic", driver="nic.example.com", extended="example.com/nic"),
}


def asking(**exactly: Any) -> Body:
    """A waiting claim."""
    return claim("a", **exactly)


def stopped(*claims: Body, pods: tuple[Body, ...] = ()) -> tuple[Waiting, ...]:
    """Whom the fence around the one GPU keeps off."""
    return stopped_by(
        [OWNED],
        classes=CLASSES,
        claims=[ResourceClaim.parse(body) for body in claims],
        pods=[Pod.parse(body) for body in pods],
        memory=Memory(),
    )


@pytest.mark.parametrize(
    ("exactly", "kind"),
    [
        ({}, Stopped.PLAIN),
        ({"allocationMode": "All"}, Stopped.ALL_DEVICES),
        ({"adminAccess": True}, Stopped.ADMIN_ACCESS),
        ({"adminAccess": True, "allocationMode": "All"}, Stopped.ADMIN_ACCESS),
    ],
)
def test_a_waiting_claim_for_an_owned_device_counts(exactly: Body, kind: Stopped) -> None:
    """A claim of others that asks for a class with owned devices is named by its kind."""
    assert stopped(asking(**exactly)) == (Waiting(kind, 1, KEY),)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(asking(deviceClassName="nic"), id="another driver's class"),
        pytest.param(asking(deviceClassName="none"), id="no class of that name"),
        pytest.param(claim("a", "d0"), id="allocated"),
        pytest.param(
            asking(tolerations=[{"key": "dovetail.dev/owned", "operator": "Exists"}]), id="names the fence"
        ),
        pytest.param(asking(tolerations=[{"operator": "Exists"}]), id="tolerates everything"),
    ],
)
def test_a_claim_that_the_fence_does_not_hold_off_is_not_counted(body: Body) -> None:
    """Who wants other devices, has them, or tolerates the taint does not wait because of the fence."""
    assert stopped(body) == ()


@pytest.mark.parametrize(
    ("resource", "waiting"),
    [
        ("example.com/gpu", (Waiting(Stopped.EXTENDED_RESOURCE, 1, ("default", "p")),)),
        (
            "deviceclass.resource.kubernetes.io/gpu",
            (Waiting(Stopped.EXTENDED_RESOURCE, 1, ("default", "p")),),
        ),
        ("example.com/nic", ()),
        ("cpu", ()),
    ],
)
def test_a_pod_that_asks_by_extended_resource_counts(resource: str, waiting: tuple[Waiting, ...]) -> None:
    """A pod can ask for devices without a claim, by the name that a class gives itself or has by default."""
    container = {"name": "c", "resources": {"requests": {resource: "1"}}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [container]},
    }
    assert stopped(pods=(pod,)) == waiting
