"""Pods that ask for devices by claim and by extended resource, one after the other."""

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    CLASSES,
    Body,
    aligned,
    condition,
    device_class,
    gpus,
    is_gated,
    nics,
    node,
    pod,
    template,
    waits_for,
)

RESOURCE = "nvidia.com/gpu"


def asking(name: str) -> Body:
    """A pod with a NIC by claim and a GPU by resource."""
    body = pod(name, template="one-nic")
    body["spec"]["containers"][0]["resources"]["requests"][RESOURCE] = "1"
    return body


async def test_a_second_pod_waits_for_the_gpu_that_the_first_is_about_to_get(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The first is ungated and has no GPU yet: the second is not sent to a node that has none left."""
    backing = device_class("backing", "gpu.nvidia.com")
    backing["spec"]["extendedResourceName"] = RESOURCE
    bare.load(node(), gpus(0), nics(0, 0), *CLASSES, backing, template("one-nic", aligned("nic")))
    await operator()
    bare.create(asking("first"))
    await bare.wait_for("Pod", lambda body: body["metadata"]["name"] == "first" and not is_gated(body))

    bare.create(asking("second"))

    waiting = await bare.wait_for("Pod", waits_for("NothingFits"))
    assert waiting["metadata"]["name"] == "second"
    assert "gpu.nvidia.com" in condition(waiting)["message"]
    bare.delete("Pod", "first")
    await bare.wait_for("Pod", lambda body: body["metadata"]["name"] == "second" and not is_gated(body))
