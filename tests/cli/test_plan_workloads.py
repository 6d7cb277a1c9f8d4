"""`dovetail plan` plans the pods that workloads ask for, as their controllers would make them."""

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.manifests import Manifest, Origin
from dovetail.cli.workloads import MOST_IN_ALL, MOST_OF_ONE, Expanded, expand
from dovetail.core.nodes import NodeBook
from tests.cli.commands import names, outcomes, plan, plan_json, write
from tests.planner.worlds import Body, allocated, claim, hardware, node, pod, template, world_of

POD_SPEC: Body = {
    "containers": [{"name": "main", "image": "x"}],
    "schedulingGates": [{"name": "dovetail.dev/allocation"}],
    "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": "template"}],
}
POD_TEMPLATE: Body = {"metadata": {"labels": {"app": "w"}}, "spec": POD_SPEC}
JOB_TEMPLATE: Body = {**POD_TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
GROUPS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def workload(kind: str, name: str = "w", *, metadata: Body | None = None, **spec: Any) -> Body:
    """A workload of a kind, with a pod template that asks for devices."""
    custom = {"JobSet": "jobset.x-k8s.io/v1alpha2", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1"}
    return {
        "apiVersion": {**GROUPS, **custom}.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": spec if kind in (*custom, "CronJob") else {**_complete(kind, spec), **spec},
    }


def _complete(kind: str, spec: Body) -> Body:
    """What a workload of a kind has to have besides, right for its template."""
    if kind == "Job":
        return {"template": JOB_TEMPLATE}
    template: Body = spec.get("template", POD_TEMPLATE) or POD_TEMPLATE
    labels = template.get("metadata", {}).get("labels")
    absent = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    selector = {"matchLabels": labels} if labels else absent
    return {"template": POD_TEMPLATE} | ({} if kind in GROUPS else {"selector": selector})


def owned(body: Body, kind: str, owner: str) -> Body:
    """The object, controlled by another one."""
    reference = {"kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def expanded(*bodies: Body, nodes: NodeBook | None = None) -> Expanded:
    """What is made of these objects."""
    manifests = [Manifest(Origin("file", 1), body["kind"], body) for body in bodies]
    return expand({each.key: each for each in manifests}, nodes or NodeBook(assume=True))


def made(*bodies: Body) -> list[str]:
    """The names of the pods that are not in the input."""
    there = {body["metadata"]["name"] for body in bodies if body["kind"] == "Pod"}
    return [each.name for each in expanded(*bodies).pods if each.name not in there]


JOB: Body = {"spec": {"parallelism": 2, "completions": 3, "template": JOB_TEMPLATE}}
LWS: Body = {"size": 3, "workerTemplate": POD_TEMPLATE}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (workload("Deployment", replicas=3), [r"w-\w{10}-\w{5}"] * 3),
        (workload("Deployment"), [r"w-\w{10}-\w{5}"]),
        (workload("Deployment", replicas=0), []),
        (workload("ReplicaSet", replicas=2), [r"w-\w{5}"] * 2),
        (workload("ReplicationController", replicas=2), [r"w-\w{5}"] * 2),
        (workload("StatefulSet", replicas=2), ["w-0", "w-1"]),
        (workload("StatefulSet", replicas=2, ordinals={"start": 7}), ["w-7", "w-8"]),
        (workload("Job", parallelism=3, completions=2), [r"w-\w{5}"] * 2),
        (workload("Job", parallelism=2), [r"w-\w{5}"] * 2),
        (workload("Job"), [r"w-\w{5}"]),
        (
            workload("Job", parallelism=5, completions=2, completionMode="Indexed"),
            [r"w-0-\w{5}", r"w-1-\w{5}"],
        ),
        (workload("Job", parallelism=2, suspend=True), []),
        (workload("CronJob", schedule="* * * * *", jobTemplate=JOB), [r"w-\d+-\w{5}"] * 2),
        (
            workload("JobSet", replicatedJobs=[{"name": "a", "replicas": 2, "template": JOB}]),
            [r"w-a-0-0-\w{5}", r"w-a-0-1-\w{5}", r"w-a-1-0-\w{5}", r"w-a-1-1-\w{5}"],
        ),
        (
            workload("LeaderWorkerSet", replicas=2, leaderWorkerTemplate=LWS),
            ["w-0", "w-1", *("w-[01]-[12]",) * 4],
        ),
    ],
)
def test_a_workload_gets_as_many_pods_as_it_asks_for(body: Body, expected: list[str]) -> None:
    """Named as its controller would name them, each name once, and the same at every call."""
    found = made(body)
    assert len(found) == len(set(found)) == len(expected)
    for name, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, name)
    assert made(body) == found


def test_the_pods_of_a_workload_are_planned_like_any_other(tmp_path: Path) -> None:
    """Each with a claim of its own, in the order of the input; the first take what the last miss."""
    write(
        tmp_path, *hardware("n1"), template(), workload("StatefulSet", replicas=3), pod(template="template")
    )
    answer = plan_json(tmp_path, status=1)
    assert names(answer) == ["w-0", "w-1", "w-2", "pod"]
    assert list(outcomes(answer).values()) == ["fits", "fits", "doesNotFit", "doesNotFit"]


def test_a_pod_of_a_workload_has_what_its_controller_gives_it() -> None:
    """Namespace, labels of the template and of the controller, owner, and all that the template says."""
    (planned,) = expanded(workload("Job", completionMode="Indexed", completions=1)).pods
    metadata = planned.body["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["labels"].items() >= {"app": "w", "batch.kubernetes.io/job-name": "w"}.items()
    assert metadata["annotations"] == {"batch.kubernetes.io/job-completion-index": "0"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "w", True)
    assert planned.body["spec"] == JOB_TEMPLATE["spec"]


def test_pods_that_are_there_count() -> None:
    """Those of the same owner that are neither done nor going."""
    replica_set = workload("ReplicaSet", replicas=4, metadata={"uid": "uid-w"})
    there = owned(pod("a"), "ReplicaSet", "w")
    done = owned(pod("b", status={"phase": "Failed"}), "ReplicaSet", "w")
    going = owned(pod("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "ReplicaSet", "w")
    of_an_older_one = owned(pod("d"), "ReplicaSet", "w")
    of_an_older_one["metadata"]["ownerReferences"][0]["uid"] = "another"
    assert len(made(replica_set, there, done, going, of_an_older_one, pod("e"))) == 3


def test_a_deployment_counts_once_with_its_replica_sets() -> None:
    """In a dump it comes with them, and with the pods of the old one while it is rolled out."""
    deployment = workload("Deployment", replicas=3, metadata={"uid": "uid-w"})
    sets = [owned(workload("ReplicaSet", name, replicas=2), "Deployment", "w") for name in ("w-old", "w-new")]
    for each in sets:
        each["metadata"]["uid"] = f"uid-{each['metadata']['name']}"
    pods = [owned(pod("w-old-1"), "ReplicaSet", "w-old"), owned(pod("w-new-1"), "ReplicaSet", "w-new")]
    (name,) = made(deployment, *sets, *pods)
    assert re.fullmatch(r"w-(old|new)-\w{5}", name)
    hashed = {"labels": {"pod-template-hash": "abc"}}
    alone = owned(pod("w-abc-1", metadata=hashed), "ReplicaSet", "w-abc")
    assert len(made(deployment, alone)) == 2


@pytest.mark.parametrize(
    ("replicas", "old", "strategy", "now", "later"),
    [
        (1, 1, {}, 1, 0),
        (4, 4, {}, 1, 3),
        (5, 5, {}, 2, 3),
        (4, 3, {}, 2, 2),
        (4, 4, {"rollingUpdate": {"maxSurge": 3}}, 3, 1),
        (4, 4, {"rollingUpdate": {"maxSurge": "100%"}}, 4, 0),
        (4, 4, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 0, 4),
        (2, 2, {"type": "Recreate"}, 0, 2),
        (2, 0, {"type": "Recreate"}, 2, 0),
        (1, 4, {}, 0, 1),
    ],
)
def test_a_changed_template_is_rolled_out(
    replicas: int, old: int, strategy: Body, now: int, later: int
) -> None:
    """New pods come beside the old ones as far as the strategy lets them; of the others a note tells."""
    deployment = workload("Deployment", replicas=replicas, strategy=strategy, metadata={"uid": "uid-w"})
    before = owned(workload("ReplicaSet", "w-old", metadata={"uid": "uid-w-old"}), "Deployment", "w")
    before["spec"]["template"] = {**POD_TEMPLATE, "spec": {**POD_SPEC, "priority": 1}}
    pods = [owned(pod(f"w-old-{number}"), "ReplicaSet", "w-old") for number in range(old)]

    assert len(made(deployment, before, *pods)) == now
    notes = expanded(deployment, before, *pods).notes
    assert any(f"w ({later})" in note for note in notes) is bool(later)


def test_the_pod_of_a_rollout_is_refused_for_what_the_old_pod_holds(tmp_path: Path) -> None:
    """The old pod keeps its devices until the new one is ready, which it never gets."""
    deployment = workload(
        "Deployment", metadata={"uid": "uid-w"}, replicas=1, selector={"matchLabels": {"app": "w"}}
    )
    before = owned(workload("ReplicaSet", "w-old", metadata={"uid": "uid-w-old"}), "Deployment", "w")
    before["spec"]["template"] = {**POD_TEMPLATE, "spec": {**POD_SPEC, "priority": 1}}
    running = owned(
        pod("w-old-1", claims=[{"name": "devices", "resourceClaimName": "held"}]), "ReplicaSet", "w-old"
    )
    running["spec"]["nodeName"] = "n1"
    held = claim("held", status=allocated("n1", "dev-0", reserved=["w-old-1"]))

    answer = plan_json(
        write(tmp_path, *hardware("n1", numa=(0,)), template(), deployment, before, running, held), status=1
    )
    assert list(outcomes(answer).values()) == ["doesNotFit"]


def test_a_paused_deployment_without_pods_makes_none() -> None:
    """Its controller only scales what is there."""
    found = expanded(workload("Deployment", paused=True))
    assert not found.pods
    assert "paused" in found.notes[0]


def test_the_jobs_of_a_set_and_of_a_schedule_count_once() -> None:
    """A Job that is in the input is planned by itself; a schedule has one run at a time."""
    job_set = workload("JobSet", replicatedJobs=[{"name": "a", "replicas": 2, "template": JOB}])
    there = owned(workload("Job", "w-a-0", parallelism=1), "JobSet", "w")
    assert len(made(job_set, there)) == 1 + 2
    schedule = workload("CronJob", jobTemplate=JOB)
    run = owned(workload("Job", "w-1", parallelism=1), "CronJob", "w")
    assert len(made(schedule, run)) == 1
    over = {**run, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert len(made(schedule, over)) == 2


def test_a_job_asks_only_for_what_is_left() -> None:
    """What is completed is not run again, by count or by index."""
    job = workload("Job", parallelism=4, completions=5)
    assert len(made({**job, "status": {"succeeded": 3}})) == 2
    finished = [owned(pod(f"p{n}", status={"phase": "Succeeded"}), "Job", "w") for n in range(4)]
    assert len(made(job, *finished)) == 1
    indexed = workload("Job", parallelism=2, completions=6, completionMode="Indexed")
    found = made({**indexed, "status": {"completedIndexes": "0-1,3"}})
    assert [name.split("-")[1] for name in found] == ["2", "4"]


def test_a_daemon_set_has_a_pod_on_each_node_that_it_could_run_on() -> None:
    """Cordoned nodes too; not where a selector, an affinity or a taint keeps it away, or a pod is already."""
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = world_of(
        node("a", labels={"gpu": "yes"}),
        node("b", labels={"gpu": "yes"}, unschedulable=True),
        node("c"),
        node("d", labels={"gpu": "yes"}, taints=[taint]),
        node("e", labels={"gpu": "yes"}),
    ).nodes
    spec = {**POD_SPEC, "nodeSelector": {"gpu": "yes"}}
    daemon = workload("DaemonSet", template={"metadata": {}, "spec": spec})
    there = owned(pod("w-here", gated=False, nodeName="e"), "DaemonSet", "w")
    planned = expanded(daemon, there, nodes=nodes).pods[:-1]
    terms = [
        each.body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for each in planned
    ]
    where = [term["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] for term in terms]
    assert where == ["a", "b"]


def test_the_pods_of_a_daemon_set_are_planned_on_their_nodes(tmp_path: Path) -> None:
    """Nodes that only slices name count too."""
    bodies = [body for body in hardware("n1", "n2") if body["metadata"]["name"] != "n2"]
    answer = plan_json(write(tmp_path, *bodies, template(), workload("DaemonSet")))
    assert sorted(each["node"] for each in answer["pods"]) == ["n1", "n2"]


def test_a_stateful_set_brings_the_claims_for_its_volumes(tmp_path: Path) -> None:
    """Each pod uses those of its own ordinal; one that is in the input stays as it is."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volume = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}},
    }
    stateful = workload("StatefulSet", replicas=2, volumeClaimTemplates=[volume])
    answer = plan_json(write(tmp_path, *hardware("n1"), template(), storage, stateful))
    assert outcomes(answer) == {"w-0": "fits", "w-1": "fits"}
    claims = [each.key[1] for each in expanded(stateful).volume_claims]
    assert claims == [("default", "data-w-0"), ("default", "data-w-1")]


def test_a_million_replicas_cost_no_memory(tmp_path: Path) -> None:
    """So many are planned as one workload, and all of them together, may have; the rest is told."""
    bodies = [workload("Deployment", f"w{index}", replicas=1_000_000) for index in range(10)]
    bodies.append(
        workload("JobSet", "js", replicatedJobs=[{"name": "a", "replicas": 1_000_000, "template": JOB}])
    )
    tracemalloc.start()
    found = expanded(*bodies)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000_000
    assert len(found.pods) == MOST_IN_ALL
    assert f"Deployment default/w0 ({MOST_OF_ONE} of 1000000)" in found.notes[0]
    assert "JobSet default/js (0 of 2000000)" in found.notes[0]
    write(tmp_path, node("n1"), workload("Deployment", replicas=MOST_OF_ONE + 1))
    answer = plan_json(tmp_path, status=1)
    assert len(answer["pods"]) == MOST_OF_ONE
    assert str(MOST_OF_ONE + 1) in " ".join(answer["notes"])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (workload("Deployment", replicas=-1), "spec.replicas"),
        (workload("Deployment", replicas="3"), "spec.replicas"),
        (workload("Deployment", replicas=True), "spec.replicas"),
        (workload("StatefulSet", template=None), "spec.template.spec"),
        (workload("Deployment", selector={"matchLabels": {"app": "v"}}), "spec.template.metadata.labels"),
        (workload("Deployment", selector=None), "spec.selector"),
        (workload("StatefulSet", selector={"matchLabels": {}}), "spec.selector"),
        (workload("Deployment", template=JOB_TEMPLATE), "spec.template.spec.restartPolicy"),
        (workload("Job", template=POD_TEMPLATE), "spec.template.spec.restartPolicy"),
        (
            workload("CronJob", jobTemplate={"spec": {"template": POD_TEMPLATE}}),
            "spec.jobTemplate.spec.template.spec.restartPolicy",
        ),
        (workload("Job", completions=1.5), "spec.completions"),
        (workload("JobSet"), "spec.replicatedJobs"),
        (workload("JobSet", replicatedJobs="x"), "spec.replicatedJobs"),
        (workload("DaemonSet", template={"spec": {"containers": 5}}), "containers"),
        (workload("ReplicaSet", template={"spec": {"containers": 5}}), "containers"),
    ],
)
def test_a_workload_that_no_api_server_takes_is_a_problem(tmp_path: Path, body: Body, path: str) -> None:
    """One problem for all of its pods, with the path."""
    (problem,) = plan_json(write(tmp_path, node("n1"), body), status=2)["problems"]
    assert path in problem["message"]


@pytest.mark.parametrize("kind", ["Job", "JobSet", "CronJob"])
def test_a_suspended_workload_is_said_to_be_so(tmp_path: Path, kind: str) -> None:
    """It gets no pods, which is not silently so."""
    body = workload(kind, suspend=True)
    result = plan(str(write(tmp_path, node("n1"), body)))
    assert result.exit_code == 0
    assert f"no pods are planned for {kind} default/w (suspended)." in result.stdout


def test_a_claim_that_all_replicas_share_is_given_once(tmp_path: Path) -> None:
    """The template names the claim itself."""
    spec = {**POD_SPEC, "resourceClaims": [{"name": "devices", "resourceClaimName": "claim"}]}
    body = workload("Deployment", replicas=3, template={"spec": spec})
    answer = plan_json(write(tmp_path, *hardware("n1"), claim(), body))
    assert [each["outcome"] for each in answer["pods"]] == ["fits"] * 3
    assert len({str(each["claims"][0]["allocation"]) for each in answer["pods"]}) == 1
