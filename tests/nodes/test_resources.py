"""A pod takes of a node what kube-scheduler counts."""

from typing import Any

import pytest

from dovetail.api.nodes import Node
from dovetail.api.pods import Pod
from dovetail.core.resources import allocatable_of, human, requests_of

Body = dict[str, Any]


def container(cpu: str | None = None, *, restart: str | None = None, **requests: str) -> Body:
    """A container that asks for something."""
    wanted = {**({"cpu": cpu} if cpu else {}), **requests}
    return {"resources": {"requests": wanted}, **({"restartPolicy": restart} if restart else {})}


def requests(**spec: Any) -> dict[str, int]:
    """What a pod with this spec takes."""
    return requests_of(Pod.parse({"metadata": {"name": "p"}, "spec": spec}))


def test_containers_add_up() -> None:
    """They run together; cpu counts in thousandths, everything else in whole units rounded up."""
    spec = [container("1500m", memory="1Gi"), container("1", memory="1500m")]
    assert requests(containers=spec) == {"cpu": 2500, "memory": 2**30 + 2}


def test_init_containers_count_only_where_they_are_wider() -> None:
    """They run one after the other, before the others: the widest moment counts, per resource."""
    spec = requests(
        initContainers=[container("3", memory="1"), container("1", memory="9")],
        containers=[container("2", memory="2")],
    )
    assert spec == {"cpu": 3000, "memory": 9}


def test_sidecars_run_beside_everything_that_starts_after_them() -> None:
    """A sidecar adds to the containers, and to the init containers behind it but not before it."""
    sidecar = container("1", restart="Always")
    assert requests(initContainers=[sidecar], containers=[container("2")]) == {"cpu": 3000}
    assert requests(initContainers=[sidecar, container("4")], containers=[container("2")]) == {"cpu": 5000}
    assert requests(initContainers=[container("4"), sidecar], containers=[container("2")]) == {"cpu": 4000}


def test_overhead_comes_on_top() -> None:
    """What the runtime needs for itself is added to the widest moment."""
    assert requests(containers=[container("1")], overhead={"cpu": "250m"}) == {"cpu": 1250}


def test_a_limit_stands_for_a_request_that_is_missing() -> None:
    """As the API server fills in, for every resource."""
    limited = {"resources": {"limits": {"cpu": "2", "example.com/x": "3"}, "requests": {"cpu": "1"}}}
    assert requests(containers=[limited]) == {"cpu": 1000, "example.com/x": 3}


def test_requests_of_the_pod_as_a_whole_replace_the_sum() -> None:
    """For cpu, memory and huge pages; other resources stay those of the containers."""
    spec = requests(
        containers=[container("1", **{"example.com/x": "2"})],
        resources={"requests": {"cpu": "4", "example.com/x": "9"}},
    )
    assert spec == {"cpu": 4000, "example.com/x": 2}


def test_a_limit_of_the_pod_counts_only_where_no_container_asks() -> None:
    """Otherwise the API server fills in the sum of the containers."""
    assert requests(containers=[container("1")], resources={"limits": {"cpu": "4"}}) == {"cpu": 1000}
    assert requests(containers=[container()], resources={"limits": {"cpu": "4"}}) == {"cpu": 4000}


def test_zero_is_not_asked_for() -> None:
    """A node without the resource serves a request for none of it."""
    assert requests(containers=[container("0", memory="0")]) == {}


def test_what_is_no_quantity_is_refused() -> None:
    """The pod is malformed then."""
    with pytest.raises(ValueError, match="no quantity"):
        requests(containers=[container("many")])


def test_a_node_offers_its_capacity_unless_it_says_otherwise() -> None:
    """As the API server fills in."""
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}}
    assert allocatable_of(Node.parse(node)) == {"cpu": 2000}
    node["status"]["allocatable"] = {"cpu": "1"}  # type: ignore[index]
    assert allocatable_of(Node.parse(node)) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 2**30, "1Gi"), ("example.com/x", 3, "3")],
)
def test_amounts_are_shown_as_people_write_them(resource: str, amount: int, words: str) -> None:
    """In the notation of manifests."""
    assert human(resource, amount) == words


@pytest.mark.parametrize(
    ("reason", "cpu"),
    [("Deferred", 4000), ("Infeasible", 3000)],
)
def test_a_pod_that_is_resized_takes_the_most_of_what_it_wants_has_and_was_promised(
    reason: str, cpu: int
) -> None:
    """Once it runs; what the node cannot give it does not count."""
    status = {
        "containerStatuses": [
            {"name": "a", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }
    spec: Body = {"containers": [{"name": "a", **container("4")}], "nodeName": "n1"}
    assert requests_of(Pod.parse({"metadata": {"name": "p"}, "spec": spec, "status": status})) == {"cpu": cpu}
