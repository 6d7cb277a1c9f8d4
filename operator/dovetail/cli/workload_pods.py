"""The pods that a workload of each kind asks for and does not have yet, as its controller would make them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, islice

from dovetail.api.pods import Pod
from dovetail.cli.manifests import Manifest
from dovetail.cli.rollouts import rollout
from dovetail.cli.workload_owners import HASH_LABEL, Batch, Known, label, nothing, phase
from dovetail.cli.workload_parts import (
    Body,
    FieldWrong,
    generated,
    indexes,
    is_true,
    mapping,
    mappings,
    number,
    owned,
    pod_of,
    template_hash,
    template_of,
)
from dovetail.core.footprints import footprint_of
from dovetail.core.judging import refuse_shape
from dovetail.errors import ObjectInvalid

DAEMON_TOLERATIONS = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
"""What the controller adds to every pod of a DaemonSet."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def batch_of(known: Known, workload: Manifest) -> Batch:
    """What the workload lacks; raises `FieldWrong` for a workload that no API server takes."""
    if workload.body["metadata"].get("deletionTimestamp"):
        return nothing("being deleted")
    return _KINDS[workload.kind](known, workload)


def _deployment(known: Known, workload: Manifest) -> Batch:
    """Its ReplicaSets count with it: the pods of all of them are its own."""
    template = template_of(workload.body)
    wanted = number(workload.body, "spec", "replicas", default=1)
    sets = known.owned_by(workload, "ReplicaSet")
    newest = [each for each in sets if _same_template(each.body, template)]
    if not newest and mapping(workload.body, "spec").get("paused") is True:
        return nothing("paused")
    # What is known only by its name counts as made from this template.
    new = len(known.pods_of_absent_sets(workload)) + _count(known, newest)
    made = rollout(workload.body, wanted, new, _count(known, sets) - _count(known, newest))
    hashed = template_hash(template)
    body = owned(
        workload.body,
        "ReplicaSet",
        f"{workload.name}-{hashed}",
        apiVersion="apps/v1",
        spec=workload.body["spec"],
    )
    labels = {} if newest else {HASH_LABEL: hashed}
    batch = _replicas(known, newest[0].body if newest else body, made.now, labels)
    return replace(batch, later=made.later)


def _count(known: Known, sets: Iterable[Manifest]) -> int:
    return sum(len(known.pods_of(each)) for each in sets)


def _same_template(replica_set: Body, template: Body) -> bool:
    mine = mapping(replica_set, "spec", "template")
    labels = {**mapping(mine, "metadata", "labels")}
    labels.pop(HASH_LABEL, None)
    return mapping(mine, "spec") == mapping(template, "spec") and labels == mapping(
        template, "metadata", "labels"
    )


def _replica_set(known: Known, workload: Manifest) -> Batch:
    owner = known.owner_of(workload)
    if owner is not None and owner.kind == "Deployment":
        return nothing()
    template_of(workload.body)
    wanted = number(workload.body, "spec", "replicas", default=1)
    return _replicas(known, workload.body, wanted - len(known.pods_of(workload)), {})


def _replicas(known: Known, owner: Body, missing: int, labels: Mapping[str, str]) -> Batch:
    metadata, template = owner["metadata"], mapping(owner, "spec", "template")
    names = (generated(f"{metadata['name']}-", index) for index in count())
    free = (name for name in names if not known.has("Pod", metadata["namespace"], name))
    pods = (pod_of(owner, name, template, labels) for name in islice(free, max(0, missing)))
    return Batch(max(0, missing), pods)


def _stateful_set(known: Known, workload: Manifest) -> Batch:
    body = workload.body
    template, claims = template_of(body), mappings(body, "spec", "volumeClaimTemplates")
    first = number(body, "spec", "ordinals", "start", default=0)
    wanted = number(body, "spec", "replicas", default=1)
    there = known.ordinals("Pod", workload.namespace, workload.name)
    present = sum(1 for each in there if first <= each < first + wanted)
    ordinals = (ordinal for ordinal in range(first, first + wanted) if ordinal not in there)
    objects = (each for ordinal in ordinals for each in _ordinal(body, template, claims, ordinal))
    return Batch(wanted - present, objects)


def _ordinal(owner: Body, template: Body, claims: Sequence[Body], ordinal: int) -> Iterator[Body]:
    """One pod of a StatefulSet, behind the claims for its volumes."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    labels = {"apps.kubernetes.io/pod-index": str(ordinal), "statefulset.kubernetes.io/pod-name": name}
    pod = pod_of(owner, name, template, labels)
    volumes = {}
    for claim in claims:
        of_template = str(mapping(claim, "metadata").get("name"))
        volumes[of_template] = f"{of_template}-{name}"
        metadata = {"name": volumes[of_template], "namespace": owner["metadata"]["namespace"]}
        yield {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": mapping(claim, "spec")}
    if volumes:
        kept = [each for each in mappings(pod, "spec", "volumes") if each.get("name") not in volumes]
        made = [{"name": each, "persistentVolumeClaim": {"claimName": of}} for each, of in volumes.items()]
        pod["spec"]["volumes"] = [*kept, *made]
    yield pod


def _daemon_set(known: Known, workload: Manifest) -> Batch:
    """One pod for each node that it could run on."""
    template = template_of(workload.body)
    served = {_node_of(pod.body) for pod in known.pods_of(workload)}
    probe = _daemon(workload, template, "")
    try:
        shape = footprint_of(Pod.parse(probe)).shape
    except (ObjectInvalid, ValueError) as error:
        reason = error.reason if isinstance(error, ObjectInvalid) else str(error)
        raise FieldWrong(("spec", "template"), reason) from error
    nodes = [
        state.name for state in known.nodes if state.name not in served and refuse_shape(state, shape) is None
    ]
    return Batch(len(nodes), (_daemon(workload, template, node) for node in nodes))


def _daemon(workload: Manifest, template: Body, node: str) -> Body:
    """The pod for a node, or without one what all of them have in common."""
    pod = pod_of(workload.body, generated(f"{workload.name}-", node), template, {})
    spec = pod["spec"]
    spec["tolerations"] = [*mappings(spec, "tolerations"), *DAEMON_TOLERATIONS]
    if node:
        here = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        affinity = mapping(spec, "affinity")
        of_nodes = mapping(affinity, "nodeAffinity")
        terms = mappings(of_nodes, _REQUIRED, "nodeSelectorTerms") or [{}]
        required = {"nodeSelectorTerms": [{**term, "matchFields": here} for term in terms]}
        spec["affinity"] = {**affinity, "nodeAffinity": {**of_nodes, _REQUIRED: required}}
    return pod


def _job(known: Known, workload: Manifest) -> Batch:
    """As many pods as may run at a time, of what is not completed yet."""
    body = workload.body
    template = template_of(body)
    if mapping(body, "spec").get("suspend") is True:
        return nothing("suspended")
    if is_true(body, "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"):
        return nothing()
    wanted = number(body, "spec", "parallelism", default=1)
    completions = mapping(body, "spec").get("completions")
    active = known.pods_of(workload)
    if completions is None:
        return _unindexed(known, body, template, wanted - len(active))
    total = number(body, "spec", "completions", default=1)
    if mapping(body, "spec").get("completionMode") == "Indexed":
        return _indexed(known, workload, template, min(wanted, total), total)
    succeeded = [pod for pod in known.owned_by(workload, "Pod") if phase(pod.body) == "Succeeded"]
    done = max(number(body, "status", "succeeded", default=0), len(succeeded))
    return _unindexed(known, body, template, min(wanted, total - done) - len(active))


def _unindexed(known: Known, job: Body, template: Body, missing: int) -> Batch:
    return _replicas(known, {**job, "spec": {"template": template}}, missing, _job_labels(job))


def _indexed(known: Known, workload: Manifest, template: Body, most: int, total: int) -> Batch:
    """The lowest indexes that are neither done nor running, as many as may run at a time."""
    body, status = workload.body, mapping(workload.body, "status")
    active = {_index_of(pod.body) for pod in known.pods_of(workload)}
    over = indexes(status.get("completedIndexes")) | indexes(status.get("failedIndexes"))
    over |= {_index_of(pod.body) for pod in known.owned_by(workload, "Pod") if phase(pod.body) == "Succeeded"}
    left = total - sum(1 for index in over | active if 0 <= index < total)
    missing = max(0, min(most - len(active), left))
    todo = (index for index in range(total) if index not in over and index not in active)
    return Batch(missing, (_indexed_pod(body, template, index) for index in islice(todo, missing)))


def _indexed_pod(job: Body, template: Body, index: int) -> Body:
    name = generated(f"{job['metadata']['name']}-{index}-", index)
    at = {"batch.kubernetes.io/job-completion-index": str(index)}
    return pod_of(job, name, template, {**_job_labels(job), **at}, at)


def _index_of(pod: Body) -> int:
    name = "batch.kubernetes.io/job-completion-index"
    found = label(pod, name, "annotations") or label(pod, name)
    return int(found) if isinstance(found, str) and found.isdecimal() and len(found) < 12 else -1


def _job_labels(job: Body) -> Mapping[str, str]:
    name = job["metadata"]["name"]
    return {"batch.kubernetes.io/job-name": name, "job-name": name}


def _cron_job(known: Known, workload: Manifest) -> Batch:
    """The pods of one run, unless one is going on: that is a Job of its own."""
    job = mapping(workload.body, "spec", "jobTemplate")
    made = _made_job(workload.body, f"{workload.name}-00000000", job)
    if mapping(workload.body, "spec").get("suspend") is True:
        return nothing("suspended")
    if any(not is_true(each.body, "Complete", "Failed") for each in known.owned_by(workload, "Job")):
        return nothing()
    return _job(known, Manifest(workload.origin, "Job", made))


def _made_job(owner: Body, name: str, template: Body, **spec: str) -> Body:
    return owned(owner, "Job", name, apiVersion="batch/v1", spec={**spec, **mapping(template, "spec")})


def _job_set(known: Known, workload: Manifest) -> Batch:
    """The pods of all its Jobs; a Job that is in the input is planned by itself."""
    body = workload.body
    if mapping(body, "spec").get("suspend") is True:
        return nothing("suspended")
    if is_true(body, "Completed", "Failed"):
        return nothing()
    batches = [_replicated_job(known, workload, each) for each in mappings(body, "spec", "replicatedJobs")]
    if not batches:
        raise FieldWrong(("spec", "replicatedJobs"), "there is none")
    return Batch(sum(each.total for each in batches), chain.from_iterable(each.objects for each in batches))


def _replicated_job(known: Known, workload: Manifest, job: Body) -> Batch:
    prefix = f"{workload.name}-{job.get('name')}-"
    replicas = number(job, "replicas", default=1)
    there = {
        index
        for index in known.ordinals("Job", workload.namespace, prefix.removesuffix("-"))
        if index < replicas
    }

    def make(index: int) -> Batch:
        template = mapping(job, "template")
        made = _made_job(workload.body, f"{prefix}{index}", template, completionMode="Indexed")
        return _job(known, Manifest(workload.origin, "Job", made))

    absent = (index for index in range(replicas) if index not in there)
    objects = (each for index in absent for each in make(index).objects)
    return Batch((replicas - len(there)) * make(0).total, objects)


def _leader_worker_set(known: Known, workload: Manifest) -> Batch:
    """Groups of one leader and its workers; a StatefulSet of theirs in the input is planned by itself."""
    body = workload.body
    groups, size = number(body, "spec", "replicas", default=1), max(1, _size(body))
    within = mapping(body, "spec", "leaderWorkerTemplate")
    worker = mapping(within, "workerTemplate")
    leader = mapping(within, "leaderTemplate") or worker
    batches = []
    if not known.has("StatefulSet", workload.namespace, workload.name):
        batches.append(_stateful_set(known, _group(workload, workload.name, leader, groups)))
    there = {
        index for index in known.ordinals("StatefulSet", workload.namespace, workload.name) if index < groups
    }
    absent = (f"{workload.name}-{index}" for index in range(groups) if index not in there)
    workers = (
        each
        for name in absent
        for each in _stateful_set(known, _group(workload, name, worker, size - 1, first=1)).objects
    )
    if size > 1:
        template_of({"spec": {"template": worker}})
        batches.append(Batch((groups - len(there)) * (size - 1), workers))
    return Batch(sum(each.total for each in batches), chain.from_iterable(each.objects for each in batches))


def _size(body: Body) -> int:
    return number(body, "spec", "leaderWorkerTemplate", "size", default=1)


def _group(workload: Manifest, name: str, template: Body, replicas: int, first: int = 0) -> Manifest:
    """The StatefulSet of all leaders, or of the workers of one group."""
    labels = {"leaderworkerset.sigs.k8s.io/name": workload.name}
    metadata = mapping(template, "metadata")
    labelled = {**metadata, "labels": {**mapping(metadata, "labels"), **labels}}
    spec = {
        "replicas": replicas,
        "ordinals": {"start": first},
        "template": {**template, "metadata": labelled},
    }
    made = owned(workload.body, "StatefulSet", name, apiVersion="apps/v1", spec=spec)
    return Manifest(workload.origin, "StatefulSet", made)


def _node_of(pod: Body) -> str:
    """The node that a pod of a DaemonSet is for."""
    spec = mapping(pod, "spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    for term in mappings(spec, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms"):
        for field in mappings(term, "matchFields"):
            return str(next(iter(field.get("values") or ()), ""))
    return ""


_KINDS: Mapping[str, Callable[[Known, Manifest], Batch]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
}
