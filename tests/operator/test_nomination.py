"""A node that kube-scheduler nominated is where it has made room: the devices are given there (V-20)."""

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, claim, gpus, is_gated, nics, node, pairs, pod


def node_of(body: Body) -> str:
    """The node that a claim's allocation is for; empty without one."""
    allocation = (body.get("status") or {}).get("allocation")
    if not allocation:
        return ""
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


async def test_a_nominated_node_is_not_avoided(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """kube-scheduler takes the devices back and evicts somebody there, in one step: they are given again.

    The nomination is gone again by then, as kube-scheduler has tried once more in vain.
    """
    bare.load(*pairs(), node("n2"), gpus(0, node="n2"), nics(0, node="n2"))
    await operator()
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    taken = bare.get("ResourceClaim", "mine")
    first = node_of(taken)

    bare.replace(taken | {"status": {}}, status=True)
    bare.patch("Pod", "p", {"status": {"nominatedNodeName": first}}, status=True)
    bare.patch("Pod", "p", {"status": {"nominatedNodeName": None}}, status=True)

    again = await bare.wait_for("ResourceClaim", node_of)
    assert node_of(again) == first


async def test_the_nominated_node_comes_first(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """Of two nodes that serve the pod, the nominated one is taken, whichever it is."""
    bare.load(*pairs(), node("n2"), gpus(0, node="n2"), nics(0, node="n2"))
    bare.create(claim("mine"))
    bare.create(pod(claim="mine", gates=("dovetail.dev/allocation", "example.com/later")))
    bare.patch("Pod", "p", {"status": {"nominatedNodeName": "n2"}}, status=True)
    await operator()

    gates = [{"$patch": "delete", "name": "example.com/later"}]
    bare.patch("Pod", "p", {"spec": {"schedulingGates": gates}})

    served = await bare.wait_for("ResourceClaim", node_of)
    assert node_of(served) == "n2"
