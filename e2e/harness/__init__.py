"""A real Kubernetes 1.37 control plane for tests, and everything that tests do with it.

Tests live in `e2e/tests`; everything below `e2e/` runs in one event loop (asynchronous fixtures say
`@pytest_asyncio.fixture(loop_scope="session")`). A first test:

    async def test_a_pair_shares_a_numa_node(cluster: Cluster) -> None:
        await cluster.add_world(objects.AZURE_GB300, "gb1")
        namespace = await cluster.namespace()
        spec = objects.claim_spec({"gpu": "gpu.nvidia.com", "nic": "dra.net"}, match="dovetail.dev/numaNode")
        await cluster.apply(objects.template("pair", spec), namespace=namespace)
        await cluster.operator(claim_generation="never")
        await cluster.kube.create(objects.pod("p", templates={"pair": "pair"}), namespace)
        await cluster.kube.wait_for("Pod", "p", running, namespace)

Fixtures (`e2e/conftest.py`):
    cluster                 Cluster on the plane that all tests share; emptied afterwards
    cluster_with            `await cluster_with(Options(gates={"DRADerivedAttributes": True},
                            runtime_config={…}).without("resourceclaim-controller"))`: one of its own;
                            Options(emulates="1.35") has the APIs and gates of that version,
                            Options(kubernetes=build.OLDEST_KUBERNETES) is 1.34 itself
    shared_plane, oracle    the ControlPlane itself; the Oracle
    Logs of a failed test are kept in `build/e2e-logs/`.

Cluster (`cluster.py`): `.kube` admin client, `.plane` programs
    await namespace(**labels) -> str            a new one, ready for pods
    await add_node(name, cpu=, memory=, pods=, labels=, taints=, unschedulable=)   Ready, untainted
    await add_nodes(names, **same); await add_world(files, node, **same)   files of tests/data/slices
    await apply(*manifests, namespace=); apply_files(*paths); create_all(manifests, namespace)
    await install(values)                       crds/ and the chart's rights and policies (done already)
    await operator(name=, server=, account=, **settings) -> Operator    started and ready
    await new_operator(…)                       the same, not started
    await proxy() -> FaultProxy                 use `operator(server=proxy.url)`

Kube (`kube.py`): kinds by name ("Pod", "ResourceClaim", "apps/v1/Deployment"), objects are JSON dicts
    get find list listing create replace patch(how="merge|strategic|json|apply", subresource=)
    apply apply_all delete delete_all watch states request      errors: ApiError(.status, .reason)
    await wait_for(kind, name, predicate, namespace, within=30) -> object
    await wait_all(kind, predicate_on_all, namespace, within=, labelSelector=, fieldSelector=) -> objects
    await wait_gone(kind, name, namespace); await stays(kind, name, predicate, namespace, seconds=)
    predicates: running(pod), allocated(claim), condition(object, type) -> dict | None

Operator (`operators.py`): start() stop() -> seconds, kill(), freeze(), wake(), `.events` (JSON log lines),
    await event(name, predicate, after=index, within=) -> event

ControlPlane (`controlplane.py`): `.etcd .apiserver .controller_manager .scheduler .kwok`, each with
    start() kill() stop() restart() and `.program` (pid, running, pause(), resume(), tail());
    compact(), account_token(ns, sa), account_kubeconfig(ns, sa, server=), client(token), .kubeconfig, .home
    .audit (`audit.py`): mark(), writes(user, since=), await seen(user, predicate, since=) -> Write tuples
        (verb, resource, subresource, namespace, name, code); OPERATOR_USER is the operator's name

FaultProxy (`proxy.py`): .url, .seen; answer(429, method=, path=regex, times=, headers=), delay(s, …),
    lose_answers(…) (write succeeds, answer never comes), silence()/talk() (watches), close_watches(),
    clear(), await struck(fault), await passed(predicate)

Webhook (`await cluster.webhook("pods/binding")`): hold(), release(), await arrived(predicate), .seen:
    admission requests; holds binds (or any write) for up to 30 s

objects (`objects.py`): slices_of classes_for device_class resource_slice device claim_spec template claim
    pod mapping node load; AZURE_GB300, DGX_H100_TOMORROW, GATE
charts.render(values) -> manifests; Oracle().ask(kind, {…}), .ask_all(kind, […]), Oracle(threads=1)
"""

from e2e.harness import charts, objects
from e2e.harness.audit import AuditLog, Write
from e2e.harness.cluster import (
    OPERATOR_ACCOUNT,
    OPERATOR_NAMESPACE,
    OPERATOR_USER,
    Cluster,
    ClusterFactory,
    gather_limited,
)
from e2e.harness.controlplane import Component, ControlPlane
from e2e.harness.errors import ApiError, HarnessError, NotSeen, ProgramEnded
from e2e.harness.kube import Kube, Object, allocated, condition, running
from e2e.harness.operators import Operator
from e2e.harness.oracle import Oracle, OracleFault
from e2e.harness.processes import Program, free_port
from e2e.harness.programs import CONTROLLERS, Options
from e2e.harness.proxy import Fault, FaultProxy, Seen
from e2e.harness.webhook import Webhook

__all__ = [
    "CONTROLLERS",
    "OPERATOR_ACCOUNT",
    "OPERATOR_NAMESPACE",
    "OPERATOR_USER",
    "ApiError",
    "AuditLog",
    "Cluster",
    "ClusterFactory",
    "Component",
    "ControlPlane",
    "Fault",
    "FaultProxy",
    "HarnessError",
    "Kube",
    "NotSeen",
    "Object",
    "Operator",
    "Options",
    "Oracle",
    "OracleFault",
    "Program",
    "ProgramEnded",
    "Seen",
    "Webhook",
    "Write",
    "allocated",
    "charts",
    "condition",
    "free_port",
    "gather_limited",
    "objects",
    "running",
]
