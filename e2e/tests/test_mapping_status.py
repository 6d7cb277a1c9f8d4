"""The operator tells on each DerivedAttribute whether it holds and which devices it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from e2e.harness import objects
from e2e.harness.cluster import Cluster
from e2e.harness.kube import Object, condition

GPU = "gpu.example.com"
READ_NUMA = f'device.attributes["{GPU}"].numa'


def mapping(name: str = "numa", expression: str = READ_NUMA, **spec: Any) -> Object:
    """A mapping of the GPUs of the test."""
    rules = [{"driver": GPU, "expression": expression}]
    return objects.mapping(name, f"example.com/{spec.pop('attribute', 'numa')}", rules, **spec)


def says(kind: str, status: str, reason: str) -> Callable[[Object], bool]:
    """Whether an object has this condition."""

    def check(item: Object) -> bool:
        found = condition(item, kind) or {}
        return (found.get("status"), found.get("reason")) == (status, reason)

    return check


async def status_when(
    cluster: Cluster, predicate: Callable[[Object], bool], name: str = "numa"
) -> dict[str, Any]:
    """The status as soon as it says so."""
    item = await cluster.kube.wait_for("DerivedAttribute", name, predicate)
    status: dict[str, Any] = item["status"]
    return status


async def gpus(cluster: Cluster, *devices: Object) -> None:
    """A node with these GPUs."""
    await cluster.add_node("n1")
    await cluster.apply(objects.resource_slice("n1", GPU, devices), objects.device_class(GPU))


async def test_a_mapping_counts_the_devices_that_it_serves(cluster: Cluster) -> None:
    """A device that lacks the attribute is named, and the status follows when its driver mends it."""
    await gpus(cluster, objects.device("gpu-0", numa=0), objects.device("gpu-1"))
    await cluster.operator()
    await cluster.kube.create(mapping())

    lacking = await status_when(cluster, says("Covered", "False", "Failed"))
    await cluster.apply(
        objects.resource_slice(
            "n1", GPU, [objects.device("gpu-0", numa=0), objects.device("gpu-1", numa=1)], generation=2
        )
    )
    covered = await status_when(cluster, says("Covered", "True", "AllDerived"))

    (driver,) = lacking["drivers"]
    assert (driver["devices"], driver["derived"], driver["failed"]) == (2, 1, 1)
    assert "gpu-1" in driver["example"]
    assert "numa" in driver["example"]
    assert covered["drivers"][0]["derived"] == 2


async def test_a_broken_mapping_tells_where_and_is_mended_by_an_edit(cluster: Cluster) -> None:
    """Rule, line and column are in the condition; another mapping is not harmed."""
    await gpus(cluster, objects.device("gpu-0", numa=0))
    await cluster.operator()
    await cluster.kube.create(mapping("broken", "1 +\n  )", attribute="broken"))
    await cluster.kube.create(mapping())

    await status_when(cluster, says("Ready", "True", "Compiled"))
    broken = await status_when(cluster, says("Ready", "False", "ExpressionInvalid"), "broken")
    await cluster.kube.patch(
        "DerivedAttribute", "broken", {"spec": mapping("broken", attribute="broken")["spec"]}
    )
    await status_when(cluster, says("Ready", "True", "Compiled"), "broken")

    (ready,) = [found for found in broken["conditions"] if found["type"] == "Ready"]
    assert f"rule 1 ({GPU}), expression: expression does not compile at line 2" in ready["message"]


async def test_the_younger_of_two_mappings_takes_over_when_the_older_goes(cluster: Cluster) -> None:
    """Until then it is a duplicate and names the other."""
    await gpus(cluster, objects.device("gpu-0", numa=0))
    await cluster.operator()
    await cluster.kube.create(mapping("a-first"))
    await status_when(cluster, says("Ready", "True", "Compiled"), "a-first")
    await cluster.kube.create(mapping("b-second"))

    await status_when(cluster, says("Ready", "False", "Duplicate"), "b-second")
    await cluster.kube.delete("DerivedAttribute", "a-first")

    await status_when(cluster, says("Ready", "True", "Compiled"), "b-second")


async def test_what_the_schema_cannot_refuse_is_reported(cluster: Cluster) -> None:
    """The schema lets an empty object through as an unknown value; the status says that it is none."""
    await cluster.operator()
    await cluster.kube.create(mapping(unknown=[{}]))

    invalid = await status_when(cluster, says("Ready", "False", "Invalid"))
    await cluster.kube.patch("DerivedAttribute", "numa", {"spec": {"unknown": [-1]}})

    await status_when(cluster, says("Ready", "True", "Compiled"))
    (ready,) = [found for found in invalid["conditions"] if found["type"] == "Ready"]
    assert "unknown" in ready["message"]
