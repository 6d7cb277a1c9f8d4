"""`dovetail plan` says what it made of its input: kinds, repetitions, files."""

from pathlib import Path

import pytest
import yaml

from tests.cli.commands import only_pod, outcomes, plan, plan_json, write
from tests.planner.worlds import Body, hardware, node, pod, template


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("v1", "Podd", "kind Podd is not known in v1; did you mean Pod?"),
        ("v1", "pod", "did you mean Pod?"),
        ("v1", "Deployment", "it is in apps/v1"),
        ("v1", "Qwertz", "kind Qwertz is not known in v1"),
        ("apps/v1", "Deploymnet", "did you mean Deployment?"),
        ("batch/v1", "Jobs", "did you mean Job?"),
        ("resource.k8s.io/v1", "ResourceClaimTemplat", "did you mean ResourceClaimTemplate?"),
        ("resource.k8s.io/v1", "Resourceclaim", "did you mean ResourceClaim?"),
        ("dovetail.dev/v1alpha1", "DerivedAttributes", "did you mean DerivedAttribute?"),
        ("app/v1", "Deployment", "it is in apps/v1"),
        ("resources.k8s.io/v1", "ResourceClaim", "it is in resource.k8s.io/v1"),
        ("extensions/v1beta1", "Deployment", "it is in apps/v1"),
        ("jobset.x-k8s.io/v1alpha2", "Jobset", "did you mean JobSet?"),
    ],
)
def test_a_kind_that_no_cluster_has_is_a_problem(tmp_path: Path, version: str, kind: str, words: str) -> None:
    """Exit status 2, whatever else the input has; the nearest known one is named."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template"))
    write(tmp_path, {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}, name="x.yaml")
    answer = plan_json(tmp_path, status=2)
    (problem,) = answer["problems"]
    assert words in problem["message"]
    assert outcomes(answer) == {"pod": "fits"}


@pytest.mark.parametrize(
    ("version", "kind", "name"),
    [("ray.io/v1", "RayCluster", "RayCluster.ray.io"), ("longhorn.io/v1", "Node", "Node.longhorn.io")],
)
def test_kinds_of_others_are_noted(tmp_path: Path, version: str, kind: str, name: str) -> None:
    """Dumps are full of them: no failure, but said."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template"))
    others: list[Body] = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": f"x{index}"}} for index in range(2)
    ]
    write(tmp_path, *others, name="x.yaml")
    result = plan(str(tmp_path))
    assert result.exit_code == 0
    assert f"Note: ignored: {name}, 2 objects.\n" in result.stdout
    assert plan_json(tmp_path)["notes"] == [f"ignored: {name}, 2 objects."]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: x}\n"]
)
def test_an_input_of_which_nothing_is_understood_is_a_problem(tmp_path: Path, text: str) -> None:
    """That no pod waits would be said of what was not read."""
    (tmp_path / "x.yaml").write_text(text)
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert "no object of a kind that Dovetail reads" in problem["message"]


def test_a_later_file_replaces_an_object_of_an_earlier_one(tmp_path: Path) -> None:
    """So that a change can be tried on a dump; a note says so."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template"), name="cluster.yaml")
    write(tmp_path, node("n1", unschedulable=True), name="changed.yaml")
    files = [str(tmp_path / name) for name in ("cluster.yaml", "changed.yaml")]
    changed = plan(*files)
    assert changed.exit_code == 1
    assert "cordoned" in changed.stdout
    note = f"Note: Node n1 is that of {files[1]}, document 1, which replaces that of {files[0]}, document 4."
    assert note in changed.stdout
    assert plan(*reversed(files)).exit_code == 0


def test_an_object_that_one_file_has_twice_is_a_problem(tmp_path: Path) -> None:
    """Also in a list; a file that is named twice is read once."""
    nodes = [{"apiVersion": "v1", **node("n1")}] * 2
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": nodes}))
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert "it is in the file twice" in problem["message"]
    write(tmp_path, *hardware("n1"), template(), pod(template="template"), name="x.yaml")
    assert only_pod(tmp_path, str(tmp_path / "x.yaml"))["outcome"] == "fits"
