"""The chart on a real API server: it applies whole, grants what is needed alone, and its policies hold."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from dovetail.services.rights import rights_needed
from dovetail.services.settings import Settings
from e2e import build
from e2e.harness import (
    OPERATOR_ACCOUNT,
    OPERATOR_NAMESPACE,
    ApiError,
    Cluster,
    ControlPlane,
    Kube,
    Object,
    Options,
    charts,
    objects,
)
from e2e.harness.kube import established
from e2e.tests.test_ownership import ownership

GATE = objects.GATE
FOREIGN = "example.com/quota"
EVERYTHING = {
    "replicas": 2,
    "tolerationPolicy": {"enabled": True, "exemptNamespaces": ["monitoring"]},
    "settings": {"claimGeneration": "always", "decisionSteps": 3_000_000, "decisionSeconds": 1.5},
    "image": {"digest": f"sha256:{'0' * 64}"},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    ],
}
OPTIONAL = frozenset({"derivedattributes", "devicetaintrules", "deviceownerships"})
Granted = tuple[str, str, str, str]
"""Group, resource, verb and namespace (empty for the whole cluster)."""


@pytest_asyncio.fixture(loop_scope="session")
async def account(cluster: Cluster) -> AsyncIterator[Kube]:
    """A client that acts as the operator's account."""
    client = cluster.plane.client(await cluster.plane.account_token(OPERATOR_NAMESPACE, OPERATOR_ACCOUNT))
    yield client
    await client.close()


async def dry_run(cluster: Cluster, manifest: Object) -> Object:
    """What the API server would store."""
    meta = manifest["metadata"]
    kind = f"{manifest['apiVersion']}/{manifest['kind']}"
    params = {"fieldManager": "e2e", "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
    return await cluster.kube.patch(
        kind, meta["name"], manifest, meta.get("namespace"), how="apply", **params
    )


def using_claims(name: str, **labels: str) -> Object:
    """A pod with a claim and without gates."""
    return objects.pod(name, claims={"devices": "devices"}, gates=(), labels=labels)


def gates(pod: Object) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]


async def refusal(call: Any) -> str:
    """The API server's words where it refuses a call."""
    with pytest.raises(ApiError) as refused:
        await call
    return str(refused.value)


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
async def test_the_api_server_takes_every_manifest(cluster: Cluster, values: dict[str, Any]) -> None:
    """What Helm renders is valid to the last field."""
    for manifest in await charts.render(values):
        await dry_run(cluster, manifest)


async def test_the_pod_obeys_the_restricted_standard(cluster: Cluster) -> None:
    """The operator's pod is let into a namespace that enforces the strictest Pod Security Standard."""
    namespace = await cluster.namespace(**{"pod-security.kubernetes.io/enforce": "restricted"})
    (deployment,) = [item for item in await charts.render() if item["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"] | {"serviceAccountName": "default"}
    spec.pop("priorityClassName")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": spec}

    stored = await dry_run(cluster, pod | {"metadata": {"name": "operator", "namespace": namespace}})

    (container,) = stored["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert stored["spec"]["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": "two"},
        {"settings": {"claimGeneration": "sometimes"}},
        {"settings": {"noSuchSetting": 1}},
        {"gatePolicy": {"enable": True}},
        {"image": {"digest": "sha256:abc"}},
    ],
)
async def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    """A value that the chart does not know, or of the wrong kind, is named before anything is installed."""
    with pytest.raises(charts.RenderFailed, match=next(iter(values))):
        await charts.render(values)


async def test_an_image_has_to_be_named() -> None:
    """There is no public one; the sentence says how to build one."""
    with pytest.raises(charts.RenderFailed, match=r"image\.repository is not set: .*make image"):
        await charts.render({"image": {"repository": ""}})


def granted(manifests: Iterable[Object]) -> set[Granted]:
    """What the roles of the chart grant on resources."""
    found: set[Granted] = set()
    for role in manifests:
        if role["kind"] not in ("ClusterRole", "Role"):
            continue
        namespace = role["metadata"].get("namespace", "")
        for rule in role["rules"]:
            parts = itertools.product(rule.get("apiGroups", ()), rule.get("resources", ()), rule["verbs"])
            found |= {(group, resource, verb, namespace) for group, resource, verb in parts}
    return found


def needed(**settings: Any) -> set[Granted]:
    """What the operator asks for at its start."""
    rights = rights_needed(Settings(**settings), lease_namespace=OPERATOR_NAMESPACE, optional=OPTIONAL)
    return {(right.group, right.resource, right.verb, right.namespace) for right in rights}


async def test_the_roles_grant_exactly_what_the_operator_needs() -> None:
    """No right is missing and none is left over, with and without the generation of claims."""
    assert granted(await charts.render()) == needed()
    without = await charts.render({"rbac": {"generateClaims": False}})
    assert granted(without) == needed(claim_generation="never", release="never")


async def test_the_account_may_do_what_the_operator_needs(account: Kube) -> None:
    """The API server answers yes to every right, asked as the operator asks."""
    for group, resource, verb, namespace in sorted(needed()):
        plural, _, subresource = resource.partition("/")
        attributes = {"group": group, "resource": plural, "verb": verb, "namespace": namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": attributes | {"subresource": subresource}},
        }
        assert (await account.create(review))["status"]["allowed"], (group, resource, verb)


@pytest.mark.parametrize("place", ["namespace", "pod"])
async def test_the_policy_gates_pods_that_opted_in(cluster: Cluster, place: str) -> None:
    """A pod with claims gets the gate by its own label or by its namespace's; a foreign gate stays."""
    label = {"dovetail.dev/gate": "enabled"}
    namespace = await cluster.namespace(**(label if place == "namespace" else {}))
    labels = label if place == "pod" else {}
    plain = await cluster.kube.create(using_claims("plain", **labels), namespace)
    held = objects.pod("held", claims={"devices": "devices"}, gates=(FOREIGN,), labels=labels)
    assert gates(plain) == [GATE]
    assert sorted(gates(await cluster.kube.create(held, namespace))) == sorted([FOREIGN, GATE])


async def test_the_policy_leaves_other_pods_alone(cluster: Cluster) -> None:
    """No gate without claims, without opting in, after opting out, or where the pod has a node already."""
    opted_in = await cluster.namespace(**{"dovetail.dev/gate": "enabled"})
    elsewhere = await cluster.namespace()
    bound = objects.pod("bound", claims={"devices": "devices"}, gates=(), nodeName="n1")
    pods = [
        await cluster.kube.create(objects.pod("claimless", gates=()), opted_in),
        await cluster.kube.create(using_claims("out", **{"dovetail.dev/gate": "disabled"}), opted_in),
        await cluster.kube.create(bound, opted_in),
        await cluster.kube.create(using_claims("stranger"), elsewhere),
    ]
    assert [gates(pod) for pod in pods] == [[], [], [], []]


async def test_a_gate_is_not_doubled(cluster: Cluster) -> None:
    """A pod that brings the gate, and opted in twice over, has it once."""
    namespace = await cluster.namespace(**{"dovetail.dev/gate": "enabled"})
    labels = {"dovetail.dev/gate": "enabled"}
    pod = objects.pod("gated", claims={"devices": "devices"}, labels=labels)
    assert gates(await cluster.kube.create(pod, namespace)) == [GATE]


FORBIDDEN_SPEC: dict[str, Object] = {
    "containers": {"spec": {"containers": [{"name": "main", "image": "registry.invalid/other"}]}},
    "nodeSelector": {"spec": {"nodeSelector": {"zone": "a"}}},
    "activeDeadlineSeconds": {"spec": {"activeDeadlineSeconds": 1}},
    "labels": {"metadata": {"labels": {"app": "other"}}},
    "annotations": {"metadata": {"annotations": {"app": "other"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/hold"]}},
    "tolerations": {"spec": {"tolerations": [{"key": "example.com/t", "operator": "Exists"}]}},
    "gate": {"spec": {"schedulingGates": [{"$patch": "delete", "name": FOREIGN}]}},
}
FORBIDDEN_STATUS: dict[str, Object] = {
    "condition": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "phase": {"status": {"phase": "Failed"}},
    "nominatedNodeName": {"status": {"nominatedNodeName": "n1"}},
    "podIP": {"status": {"podIP": "10.0.0.1"}},
    "labels": {"metadata": {"labels": {"app": "other"}}},
}


@pytest.mark.parametrize("case", FORBIDDEN_SPEC)
async def test_the_account_may_not_change_a_pod(cluster: Cluster, account: Kube, case: str) -> None:
    """Whatever the role allows, the policy keeps the operator from everything but its own gate."""
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.pod("p", claims={"d": "d"}, gates=(GATE, FOREIGN)), namespace)
    words = await refusal(account.patch("Pod", "p", FORBIDDEN_SPEC[case], namespace, how="strategic"))
    assert "dovetail-account-spec" in words
    assert case in words


@pytest.mark.parametrize("case", FORBIDDEN_STATUS)
async def test_the_account_may_not_change_a_pods_status(cluster: Cluster, account: Kube, case: str) -> None:
    """The operator says nothing about a pod but its own condition and the claims that it made."""
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.pod("p", claims={"d": "d"}), namespace)
    patch = FORBIDDEN_STATUS[case]
    words = await refusal(account.patch("Pod", "p", patch, namespace, how="strategic", subresource="status"))
    assert "dovetail-account-status" in words
    assert case in words


async def test_the_account_may_do_its_work_on_pods(cluster: Cluster, account: Kube) -> None:
    """Its condition, the record of a generated claim, and the removal of its gate pass the policy."""
    namespace = await cluster.namespace()
    pod = objects.pod("p", templates={"d": "d"}, gates=(GATE, FOREIGN))
    await cluster.kube.create(pod, namespace)
    condition = {"type": "dovetail.dev/Allocated", "status": "False", "reason": "Waits", "message": "x"}
    status = {"conditions": [condition], "resourceClaimStatuses": [{"name": "d", "resourceClaimName": "p-d"}]}
    removal = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}

    await account.patch("Pod", "p", {"status": status}, namespace, how="strategic", subresource="status")
    assert gates(await account.patch("Pod", "p", removal, namespace, how="strategic")) == [FOREIGN]


async def test_others_may_change_pods_as_before(cluster: Cluster) -> None:
    """The policy concerns the operator's account alone."""
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.pod("p", claims={"d": "d"}), namespace)
    changed = await cluster.kube.patch("Pod", "p", FORBIDDEN_SPEC["labels"], namespace)
    assert changed["metadata"]["labels"] == {"app": "other"}


@pytest_asyncio.fixture(loop_scope="session")
async def toleration_policy(cluster: Cluster) -> AsyncIterator[str]:
    """The policy against claims that tolerate everything, with one namespace exempt."""
    exempt = await cluster.namespace()
    await cluster.install({"tolerationPolicy": {"enabled": True, "exemptNamespaces": [exempt]}})
    yield exempt
    name = f"{OPERATOR_NAMESPACE}-dovetail-tolerations"
    await cluster.kube.delete("ValidatingAdmissionPolicyBinding", name)
    await cluster.kube.delete("ValidatingAdmissionPolicy", name)


def tolerating(toleration: Object, *, alternative: bool = False) -> Object:
    """The spec of a claim with one toleration."""
    wish = {"deviceClassName": "gpu", "tolerations": [toleration]}
    request = {"firstAvailable": [{"name": "a", **wish}]} if alternative else {"exactly": wish}
    return {"devices": {"requests": [{"name": "gpu", **request}]}}


async def test_a_claim_that_tolerates_everything_can_be_refused(
    cluster: Cluster, toleration_policy: str
) -> None:
    """The optional policy refuses it in claims, templates and alternatives, but for exempt namespaces."""
    namespace = await cluster.namespace()
    everything = {"operator": "Exists"}
    refused = [
        objects.claim("claim", tolerating(everything)),
        objects.claim("alternative", tolerating(everything, alternative=True)),
        objects.claim("effect", tolerating(everything | {"effect": "NoSchedule"})),
        objects.template("template", tolerating(everything)),
    ]
    for manifest in refused:
        words = await until_refused(cluster, manifest, namespace)
        assert "a toleration without a key covers every device taint" in words
    await cluster.kube.create(objects.claim("named", tolerating(everything | {"key": "a"})), namespace)
    await cluster.kube.create(
        objects.claim("evicted", tolerating(everything | {"effect": "NoExecute"})), namespace
    )
    await cluster.kube.create(refused[0], toleration_policy)


async def until_refused(cluster: Cluster, manifest: Object, namespace: str) -> str:
    """The words of the refusal; a new policy is in force only after a moment."""
    for _ in range(200):
        try:
            await cluster.kube.create(manifest, namespace)
        except ApiError as refused:
            return str(refused)
        await cluster.kube.delete(manifest["kind"], manifest["metadata"]["name"], namespace)
        await cluster.kube.wait_gone(manifest["kind"], manifest["metadata"]["name"], namespace)
    raise AssertionError(f"{manifest['metadata']['name']} was never refused")


@pytest_asyncio.fixture(loop_scope="session")
async def bare() -> AsyncIterator[ControlPlane]:
    """An API server on which nothing was installed yet."""
    plane = ControlPlane(Options(controllers=(), scheduler=False, kwok=False))
    await plane.start()
    yield plane
    await plane.stop()


async def helm(plane: ControlPlane, words: str) -> str:
    """Run Helm as the pages have it; returns what it printed."""
    program = build.build([group for group in build.GROUPS if group.name == "helm"])["helm"]
    done = await asyncio.to_thread(
        subprocess.run,
        [str(program), *words.split()[1:], "--kubeconfig", str(plane.kubeconfig)],
        cwd=objects.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(page: str, command: str) -> str:
    """The command of a page that begins so, as the page has it."""
    text = (objects.ROOT / "docs" / "operators" / page).read_text()
    lines: list[str] = re.findall(r"(helm [^\n`]+)", text)
    return next(line for line in lines if line.startswith(command))


async def test_helm_installs_upgrades_and_uninstalls(bare: ControlPlane) -> None:
    """The commands of the pages work in turn; definitions, and objects of their kinds, stay at the end."""
    kube = bare.kube
    notes = await helm(bare, told("install.md", "helm install"))
    assert "kubectl label namespace NAME dovetail.dev/gate=enabled" in notes
    assert await kube.find("MutatingAdmissionPolicy", "dovetail-system-dovetail-gate")
    assert await kube.find("apps/v1/Deployment", "dovetail", OPERATOR_NAMESPACE)
    await kube.wait_for("CustomResourceDefinition", "deviceownerships.dovetail.dev", established)
    await kube.create(ownership())

    await helm(bare, told("upgrade.md", "helm upgrade"))
    await helm(bare, told("uninstall.md", "helm upgrade"))
    assert await kube.list("MutatingAdmissionPolicy") == ()
    await helm(bare, told("uninstall.md", "helm uninstall"))

    assert await kube.find("ClusterRole", "dovetail-system-dovetail") is None
    assert await kube.find("apps/v1/Deployment", "dovetail", OPERATOR_NAMESPACE) is None
    assert await kube.find("DeviceOwnership", "gpus")
