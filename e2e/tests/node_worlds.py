"""Random small clusters in which placing pods is hard: every condition that kube-scheduler filters by."""

import random
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
APPS = ("web", "db", "cache")
NAMESPACES = ("default", "other")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def cluster(seed: int) -> tuple[list[Body], list[str]]:
    """The objects of a cluster, and the names of the pods to ask about."""
    dice = random.Random(seed)
    nodes = [_node(dice, f"n{index}") for index in range(dice.randint(2, 7))]
    names = [node["metadata"]["name"] for node in nodes]
    running = [
        _pod(dice, f"run-{index}", namespace=dice.choice(NAMESPACES), node=dice.choice(names))
        for index in range(dice.randint(0, 10))
    ]
    waiting = [_pod(dice, f"ask-{index}") for index in range(8)]
    objects = [*_namespaces(), *nodes, *_storage(dice, names), *running, *waiting]
    return objects, [pod["metadata"]["name"] for pod in waiting]


def _maybe(dice: random.Random, chance: float) -> bool:
    return dice.random() < chance


def _namespaces() -> Iterator[Body]:
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name, "team": "red" if name == "other" else "blue"}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _node(dice: random.Random, name: str) -> Body:
    labels = {HOSTNAME: name}
    for key, values in ((ZONE, ("a", "b", "c")), ("disk", ("ssd", "hdd")), ("rank", ("1", "2", "9"))):
        if _maybe(dice, 0.8):
            labels[key] = dice.choice(values)
    taints = [
        {
            "key": dice.choice(("team", "gpu")),
            "value": dice.choice(("red", "")),
            "effect": dice.choice(EFFECTS),
        }
        for _ in range(dice.choice((0, 0, 0, 0, 0, 1, 2)))
    ]
    offered = {
        "cpu": dice.choice(("2", "4", "7500m")),
        "memory": dice.choice(("4Gi", "8G")),
        "pods": dice.choice(("2", "5", "110")),
        "example.com/widget": dice.choice(("0", "2")),
    }
    spec: Body = {"taints": taints, **({"unschedulable": True} if _maybe(dice, 0.1) else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {dice.choice(("allocatable", "capacity")): offered},
    }


def _pod(dice: random.Random, name: str, *, namespace: str = "default", node: str | None = None) -> Body:
    labels = {"app": dice.choice(APPS), "hash": dice.choice(("1", "2"))}
    metadata: Body = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    if node and _maybe(dice, 0.1):
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
    spec: Body = {"containers": [_container(dice, f"c{index}") for index in range(dice.randint(1, 2))]}
    if _maybe(dice, 0.3):
        spec["initContainers"] = [_init_container(dice, f"i{index}") for index in range(dice.randint(1, 3))]
    for chance, part in (
        (0.3, _tolerations),
        (0.3, _selection),
        (0.4, _pod_affinity),
        (0.3, _spread),
        (0.25, _volumes),
        (0.1, _pod_level),
    ):
        if _maybe(dice, chance):
            _merge(spec, part(dice))
    if _maybe(dice, 0.1):
        spec["overhead"] = {"cpu": "250m"}
    if _maybe(dice, 0.05):
        spec["hostNetwork"] = True
    status = {}
    if node:
        spec["nodeName"] = node
        status = _resizing(dice, spec) if _maybe(dice, 0.3) else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _resizing(dice: random.Random, spec: Body) -> Body:
    """What a kubelet says of containers whose requests were changed."""
    status: Body = {}
    for field, containers in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ):
        status[field] = [_container_status(dice, each["name"]) for each in spec.get(containers, ())]
    if _maybe(dice, 0.3):
        reason = dice.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def _container_status(dice: random.Random, name: str) -> Body:
    status: Body = {"name": name, "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
    if _maybe(dice, 0.6):
        status["allocatedResources"] = {"cpu": dice.choice(("500m", "1", "2"))}
    if _maybe(dice, 0.6):
        status["resources"] = {"requests": {"cpu": dice.choice(("250m", "1", "3"))}}
    return status


def _merge(spec: Body, part: Body) -> None:
    for field, value in part.items():
        spec[field] = {**spec.get(field, {}), **value} if isinstance(value, dict) else value


def _container(dice: random.Random, name: str) -> Body:
    requests: Body = {}
    for resource, amounts in (
        ("cpu", ("100m", "1", "1500m", "0")),
        ("memory", ("64Mi", "1G", "3Gi")),
        ("example.com/widget", ("1",)),
    ):
        if _maybe(dice, 0.15 if "/" in resource else 0.5):
            requests[resource] = dice.choice(amounts)
    # An extended resource needs a limit that equals its request; cpu may have a limit alone.
    limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
    if _maybe(dice, 0.2):
        limits["cpu"] = "2"
    body: Body = {"name": name, "image": "x", "resources": {"requests": requests, "limits": limits}}
    if _maybe(dice, 0.2):
        port = {"containerPort": dice.choice((80, 81)), "protocol": dice.choice(("TCP", "UDP"))}
        if _maybe(dice, 0.7):
            port |= {"hostPort": port["containerPort"]}
            port |= {"hostIP": dice.choice(("10.0.0.1", "0.0.0.0"))} if _maybe(dice, 0.5) else {}
        body["ports"] = [port]
    return body


def _init_container(dice: random.Random, name: str) -> Body:
    sidecar = {"restartPolicy": "Always"} if _maybe(dice, 0.5) else {}
    return {**_container(dice, name), **sidecar}


def _tolerations(dice: random.Random) -> Body:
    choices: tuple[Body, ...] = (
        {"operator": "Exists"},
        {"key": "team", "operator": "Exists"},
        {"key": "team", "value": "red"},
        {"key": "gpu", "operator": "Equal", "value": ""},
        {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    )
    return {"tolerations": dice.sample(choices, k=dice.randint(1, 2))}


def _requirement(dice: random.Random) -> Body:
    return dice.choice(
        (
            {"key": ZONE, "operator": "In", "values": dice.sample(["a", "b", "c"], k=2)},
            {"key": ZONE, "operator": "NotIn", "values": ["a"]},
            {"key": "disk", "operator": "Exists"},
            {"key": "disk", "operator": "DoesNotExist"},
            {"key": "rank", "operator": "Gt", "values": ["1"]},
            {"key": "rank", "operator": "Lt", "values": ["9"]},
        )
    )


def _selection(dice: random.Random) -> Body:
    if _maybe(dice, 0.4):
        return {"nodeSelector": {"disk": dice.choice(("ssd", "hdd"))}}
    terms: list[Body] = []
    for _ in range(dice.randint(1, 2)):
        term: Body = {}
        if _maybe(dice, 0.9):
            term["matchExpressions"] = [_requirement(dice) for _ in range(dice.randint(1, 2))]
        if _maybe(dice, 0.2):
            operator = dice.choice(("In", "NotIn"))
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": ["n1"]}]
        terms.append(term)
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    }


def _label_selector(dice: random.Random) -> Body:
    choices: tuple[Body, ...] = (
        {"matchLabels": {"app": dice.choice(APPS)}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": dice.sample(APPS, k=2)}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {},
    )
    return dice.choice(choices)


def _pod_affinity(dice: random.Random) -> Body:
    affinity: Body = {}
    for direction in dice.sample(("podAffinity", "podAntiAffinity"), k=dice.randint(1, 2)):
        terms = [_affinity_term(dice) for _ in range(dice.randint(1, 2))]
        affinity[direction] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": affinity}


def _affinity_term(dice: random.Random) -> Body:
    term: Body = {
        "topologyKey": dice.choice((ZONE, HOSTNAME, "disk")),
        "labelSelector": _label_selector(dice),
    }
    where: tuple[Body, ...] = (
        {},
        {},
        {"namespaces": ["other"]},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"team": "red"}}},
        {"namespaces": ["default"], "namespaceSelector": {"matchLabels": {"team": "red"}}},
    )
    return term | dice.choice(where)


def _spread(dice: random.Random) -> Body:
    constraints: list[Body] = []
    for key in dice.sample((ZONE, HOSTNAME, "disk"), k=dice.randint(1, 2)):
        constraint: Body = {
            "maxSkew": dice.randint(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": dice.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": _label_selector(dice),
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and _maybe(dice, 0.3):
            constraint["minDomains"] = dice.randint(1, 4)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if _maybe(dice, 0.4):
                constraint[field] = dice.choice(("Honor", "Ignore"))
        if _maybe(dice, 0.2):
            constraint["matchLabelKeys"] = ["hash"]
        constraints.append(constraint)
    return {"topologySpreadConstraints": constraints}


def _pod_level(dice: random.Random) -> Body:
    return {"resources": {"requests": {"cpu": dice.choice(("3", "5"))}}}


VOLUME_CLAIMS = (
    *("bound-a", "bound-zone", "csi-1", "csi-2", "late", "late-b", "local", "one-pod"),
    *("unbound", "missing"),
)
"""The last two keep a pod from every node."""


def _volumes(dice: random.Random) -> Body:
    names = dice.sample(VOLUME_CLAIMS if _maybe(dice, 0.2) else VOLUME_CLAIMS[:-2], k=dice.randint(1, 2))
    return {
        "volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]
    }


def _storage(dice: random.Random, nodes: list[str]) -> Iterator[Body]:
    only_b = {"key": ZONE, "values": ["b"]}
    yield from (
        _storage_class("late"),
        _storage_class("late-b", allowedTopologies=[{"matchLabelExpressions": [only_b]}]),
        _storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        _storage_class("now", volumeBindingMode="Immediate"),
    )
    yield _volume("bound-a", nodeAffinity=_reach(ZONE, "a"))
    yield _volume("bound-zone", labels={ZONE: dice.choice(("a", "b", "a__b"))})
    yield _volume("one-pod", accessModes=["ReadWriteOncePod"])
    yield _volume("csi-1", csi={"driver": "csi.example.com", "volumeHandle": "h1"})
    yield _volume("csi-2", csi={"driver": "csi.example.com", "volumeHandle": "h2"})
    yield _volume(
        "free",
        claimRef=None,
        storageClassName="local",
        nodeAffinity=_reach(HOSTNAME, dice.choice(nodes)),
        capacity={"storage": dice.choice(("1Gi", "20Gi"))},
    )
    for name in ("bound-a", "bound-zone", "csi-1", "csi-2", "one-pod"):
        modes = ["ReadWriteOncePod"] if name == "one-pod" else ["ReadWriteOnce"]
        yield _volume_claim(name, bound=True, accessModes=modes)
    for name, storage in (("late", "late"), ("late-b", "late-b"), ("local", "local"), ("unbound", "now")):
        yield _volume_claim(name, bound=False, storageClassName=storage)
    for node in nodes:
        if _maybe(dice, 0.7):
            count = {"allocatable": {"count": 1}} if _maybe(dice, 0.7) else {}
            driver = {"name": "csi.example.com", "nodeID": node, "topologyKeys": [], **count}
            yield {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": node},
                "spec": {"drivers": [driver]},
            }


def _reach(key: str, value: str) -> Body:
    requirement = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


def _storage_class(name: str, **more: Any) -> Body:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example.org",
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def _volume(name: str, *, labels: Body | None = None, **spec: Any) -> Body:
    whole = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "kind": "PersistentVolumeClaim",
        },
        **({} if "csi" in spec else {"csi": {"driver": "csi.example.net", "volumeHandle": name}}),
        **spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {field: value for field, value in whole.items() if value is not None},
        "status": {"phase": "Bound" if whole["claimRef"] else "Available"},
    }


def _volume_claim(name: str, *, bound: bool, **spec: Any) -> Body:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            **({"volumeName": name, "storageClassName": ""} if bound else {}),
            **spec,
        },
        "status": {"phase": "Bound" if bound else "Pending"},
    }
