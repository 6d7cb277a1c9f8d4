"""The operator ends when it is told to."""

from __future__ import annotations

from e2e.harness import OPERATOR_NAMESPACE, Cluster


async def test_sigterm_ends_the_process_and_gives_the_lease_back(cluster: Cluster) -> None:
    """Within five seconds of SIGTERM the process is gone, with exit code 0, and nobody holds its Lease."""
    operator = await cluster.operator()

    await operator.stop(within=5)

    assert operator.program.exit_code == 0
    lease = await cluster.kube.find("Lease", "dovetail", OPERATOR_NAMESPACE)
    assert not (lease or {"spec": {}})["spec"].get("holderIdentity")
