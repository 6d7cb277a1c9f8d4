"""Claims from templates (G1-G34, T-1 to T-7): who makes them, and what happens when that goes wrong."""

import asyncio
from functools import partial

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    claim,
    is_running,
    our_writes,
    pairs,
    plain,
    pod,
    running_pod,
    template,
)

OWN = {"apiVersion": "v1", "kind": "Pod", "controller": True}


def creations(cluster: EmbeddedCluster) -> int:
    """How many claims the operator asked for."""
    return our_writes(cluster).count(("POST", "resourceclaims"))


async def test_auto_leaves_claims_to_a_controller_that_makes_them(
    controlled: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Within the grace time the controller made the claim, and Dovetail made none."""
    controlled.load(*pairs())
    await operator(claim_generation="auto", claim_generation_grace_seconds=5)

    controlled.create(pod())

    await controlled.wait_for("Pod", running_pod("p"))
    assert creations(controlled) == 0
    assert len(controlled.objects("ResourceClaim")) == 1


async def test_auto_makes_what_is_missing_after_the_grace_time(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Without a controller the pod runs, a little later."""
    cluster.load(*pairs())
    await operator(claim_generation="auto", claim_generation_grace_seconds=0.3)

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    assert creations(cluster) == 1


async def test_auto_is_patient_while_a_controller_works_off_a_burst(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """As long as others make claims from templates nothing is made; when they stop, the rest is."""
    cluster.load(*pairs())
    await operator(claim_generation="auto", claim_generation_grace_seconds=1.5)
    cluster.create(pod())

    for number in range(6):
        foreign = claim(f"other-{number}")
        foreign["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "devices"}
        cluster.create(foreign)
        await asyncio.sleep(0.4)
    meanwhile = creations(cluster)

    await cluster.wait_for("Pod", running_pod("p"))
    assert (meanwhile, creations(cluster)) == (0, 1)


async def test_never_makes_none(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """With the setting `never` no claim is made, for another pod is served meanwhile."""
    cluster.load(*pairs())
    await operator(claim_generation="never")
    cluster.create(pod("first"))
    cluster.create(claim("named"))

    cluster.create(pod("second", claim="named"))

    await cluster.wait_for("Pod", running_pod("second"))
    assert creations(cluster) == 0


async def test_claims_are_made_for_every_pod(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """Gates of others, another scheduler and a claim of kube-scheduler's make no difference (G3)."""
    cluster.load(*pairs(), template("plain", plain("gpu")))
    await operator()

    cluster.create(pod("gated", template="plain", gates=("example.com/other",)))
    cluster.create(pod("elsewhere", template="plain", gates=(), schedulerName="volcano"))

    for name in ("gated", "elsewhere"):
        await cluster.wait_for("ResourceClaim", partial(belongs_to, name))


async def test_a_claim_that_exists_already_is_adopted(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """An orphan with owner and annotation is recorded in the pod's status, and none is made (G20)."""
    cluster.load(*pairs())
    made = cluster.create(pod())
    orphan = claim("orphan")
    orphan["metadata"] |= {
        "ownerReferences": [OWN | {"name": "p", "uid": made["metadata"]["uid"]}],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"},
    }
    cluster.create(orphan)

    await operator()

    running = await cluster.wait_for("Pod", running_pod("p"))
    assert running["status"]["resourceClaimStatuses"] == [{"name": "devices", "resourceClaimName": "orphan"}]
    assert creations(cluster) == 0


async def test_a_recorded_claim_that_is_missing_is_made_anew(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Under another name, which replaces the one in the pod's status (G5, T-3)."""
    cluster.load(*pairs())
    cluster.create(pod())
    entry = {"name": "devices", "resourceClaimName": "vanished"}
    cluster.patch("Pod", "p", {"status": {"resourceClaimStatuses": [entry]}}, status=True)

    await operator()

    running = await cluster.wait_for("Pod", running_pod("p"))
    (made,) = cluster.objects("ResourceClaim")
    (recorded,) = running["status"]["resourceClaimStatuses"]
    assert recorded["resourceClaimName"] == made["metadata"]["name"] != "vanished"


async def test_a_missing_template_is_named_on_the_pod(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """One Warning names the entry and the template; when the template appears, the pod runs (T-4)."""
    cluster.load(*pairs())
    await operator()
    cluster.create(pod(template="later"))
    event = await cluster.wait_for("Event", lambda body: body["reason"] == "FailedResourceClaimCreation")
    assert event["type"] == "Warning"
    assert event["message"].startswith('PodResourceClaim devices: resource claim template "later"')

    cluster.create(template("later"))

    await cluster.wait_for("Pod", running_pod("p"))


async def test_a_create_without_an_answer_makes_one_claim(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The same name is used again, and the claim that is there already serves (R-B1)."""
    cluster.load(*pairs())
    await operator()
    cluster.faults.drop_answer("POST", "resourceclaims")

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    assert len(cluster.objects("ResourceClaim")) == 1


async def test_one_claim_for_two_pods_that_name_it_and_two_for_two_that_name_a_template(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """T-5, seen in the claims that there are in the end."""
    cluster.load(*pairs(3))
    await operator()
    cluster.create(claim("shared"))

    for name in ("a", "b"):
        cluster.create(pod(name, claim="shared"))
        cluster.create(pod(f"own-{name}"))

    for name in ("a", "b", "own-a", "own-b"):
        await cluster.wait_for("Pod", running_pod(name))
    assert len(cluster.objects("ResourceClaim")) == 3


async def test_a_second_operator_that_starts_later_makes_nothing_twice(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """What one operator made serves the next one as well: claims of running pods are left alone."""
    cluster.load(*pairs(2))
    first = await operator()
    cluster.create(pod("a"))
    await cluster.wait_for("Pod", running_pod("a"))
    first.request_stop()

    await operator()
    cluster.create(pod("b"))

    await cluster.wait_for("Pod", running_pod("b"))
    assert all(is_running(body) for body in cluster.objects("Pod"))
    assert creations(cluster) == 2


def belongs_to(name: str, body: Body) -> bool:
    """The claim belongs to the pod of this name."""
    return any(owner["name"] == name for owner in body["metadata"].get("ownerReferences") or ())


async def test_a_claim_of_the_same_name_that_is_not_the_pods_is_left_alone(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Somebody made it just before ours: the pod gets one of another name."""
    cluster.load(*pairs())
    await operator()
    taken: list[Body] = []

    def take_the_name() -> None:
        body = cluster.journal[-1].body
        assert isinstance(body, dict)
        taken.append(cluster.create(claim(body["metadata"]["name"])))

    cluster.faults.before("POST", "resourceclaims", take_the_name)

    cluster.create(pod())

    running = await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=20)
    (theirs,) = taken
    (status,) = running["status"]["resourceClaimStatuses"]
    assert status["resourceClaimName"] != theirs["metadata"]["name"]
    assert cluster.get("ResourceClaim", theirs["metadata"]["name"]) == theirs
    assert theirs["metadata"]["name"] not in str([write.body for write in cluster.writes("pods/status")])
