"""The operator keeps the fences of DeviceOwnerships and tells what its audit finds."""

from typing import Any

from dovetail.embedded import EmbeddedCluster
from tests.audit.cluster import DRIVER, claim, ownership, published
from tests.operator.conftest import OperatorStarter

Body = dict[str, Any]


def manifest(body: Body) -> Body:
    """The object as it is sent: its UID is the server's business."""
    version = "dovetail.dev/v1alpha1" if body["kind"] == "DeviceOwnership" else "resource.k8s.io/v1"
    metadata = {name: value for name, value in body["metadata"].items() if name != "uid"}
    return {"apiVersion": version, **body, "metadata": metadata}


def condition(body: Body, kind: str) -> Body:
    """One condition of a status, or nothing."""
    conditions = body.get("status", {}).get("conditions", ())
    return next((entry for entry in conditions if entry["type"] == kind), {})


def is_fenced(body: Body) -> bool:
    """Whether the object says that its fence stands."""
    return condition(body, "Fenced").get("status") == "True"


def selector(rule: Body) -> Body:
    """What a rule selects."""
    found: Body = rule["spec"]["deviceSelector"]
    return found


async def test_an_ownership_gets_its_rules(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """Each entry becomes a DeviceTaintRule that belongs to the object, and the status counts devices."""
    cluster.load(manifest(published("d0", "d1")))
    cluster.create(manifest(ownership({"driver": DRIVER}, {"driver": "b.example.com", "pool": "p"})))
    await operator()

    owner = await cluster.wait_for("DeviceOwnership", is_fenced)

    rules = cluster.objects("DeviceTaintRule")
    assert sorted(map(str, map(selector, rules))) == sorted(
        map(str, ({"driver": DRIVER}, {"driver": "b.example.com", "pool": "p"}))
    )
    assert {rule["metadata"]["ownerReferences"][0]["uid"] for rule in rules} == {owner["metadata"]["uid"]}
    assert owner["status"]["fenced"] == {"devices": 2, "pools": 1}


async def test_the_rules_go_with_the_object(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """When the object is deleted, the garbage collector takes its rules."""
    cluster.create(manifest(ownership({"driver": DRIVER})))
    await operator()
    rule = await cluster.wait_for("DeviceTaintRule", selector)
    cluster.delete("DeviceOwnership", "gpus")
    await cluster.wait_gone("DeviceTaintRule", rule["metadata"]["name"])


async def test_a_rule_that_somebody_deletes_comes_back(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The fence is kept, whatever happens to its rules."""
    cluster.create(manifest(ownership({"driver": DRIVER})))
    await operator()
    rule = await cluster.wait_for("DeviceTaintRule", selector)
    cluster.delete("DeviceTaintRule", rule["metadata"]["name"])
    again = await cluster.wait_for(
        "DeviceTaintRule", lambda body: body["metadata"]["uid"] != rule["metadata"]["uid"]
    )
    assert selector(again) == selector(rule)


async def test_an_entry_that_goes_takes_its_rule_along(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """An object that owns less afterwards fences less."""
    cluster.create(manifest(ownership({"driver": DRIVER}, {"driver": "b.example.com"})))
    await operator()
    await cluster.wait_for("DeviceOwnership", is_fenced)
    cluster.patch("DeviceOwnership", "gpus", {"spec": {"devices": [{"driver": "b.example.com"}]}})
    await cluster.wait_for("DeviceOwnership", lambda body: len(body["status"]["rules"]) == 1)
    assert [selector(rule) for rule in cluster.objects("DeviceTaintRule")] == [{"driver": "b.example.com"}]


async def test_a_settled_ownership_is_not_written_again(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """New slices that change nothing for the object cause no write."""
    cluster.create(manifest(ownership({"driver": DRIVER})))
    await operator()
    await cluster.wait_for("DeviceOwnership", is_fenced)
    written = len(cluster.writes("deviceownerships/status"))
    cluster.load(manifest(published("d0")))
    await cluster.wait_for("DeviceOwnership", lambda body: body["status"]["fenced"]["devices"] == 1)
    assert len(cluster.writes("deviceownerships/status")) == written + 1


async def test_a_device_held_twice_is_told(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The owner of a device that two claims hold is not clean, and the metric counts the finding."""
    cluster.load(*map(manifest, (published("d0"), claim("a", "d0"), claim("b", "d0"))))
    cluster.create(manifest(ownership({"driver": DRIVER})))
    context = await operator(audit_seconds=1.0)

    owner = await cluster.wait_for(
        "DeviceOwnership", lambda body: condition(body, "Clean").get("status") == "False"
    )

    assert condition(owner, "Clean")["reason"] == "DeviceHeldTwice"
    assert context.operation is not None
    registry = context.operation.metrics.registry
    assert registry.get_sample_value("dovetail_audit_findings", {"fault": "DeviceHeldTwice"}) == 1.0


async def test_a_cluster_put_right_is_clean_again(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """When the cause is gone, the condition and the metric say so."""
    cluster.load(*map(manifest, (published("d0"), claim("a", "d0"), claim("b", "d0"))))
    cluster.create(manifest(ownership({"driver": DRIVER})))
    context = await operator(audit_seconds=1.0)
    await cluster.wait_for("DeviceOwnership", lambda body: condition(body, "Clean").get("status") == "False")
    cluster.patch("ResourceClaim", "b", {"status": {"allocation": None}}, status=True)
    await cluster.wait_for("DeviceOwnership", lambda body: condition(body, "Clean").get("status") == "True")
    assert context.operation is not None
    registry = context.operation.metrics.registry
    assert registry.get_sample_value("dovetail_audit_findings", {"fault": "DeviceHeldTwice"}) == 0.0
