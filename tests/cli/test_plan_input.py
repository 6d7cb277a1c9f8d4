"""`dovetail plan` says what it made of its input: kinds, repetitions, files."""

from pathlib import Path

import pytest
import yaml

from tests.cli.commands import only_pod, outcomes, plan, plan_json, write
from tests.planner.worlds import Body, claim, devices_spec, hardware, named, node, pod, request, template


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


def test_an_attribute_that_is_spelt_wrong_is_a_failure(tmp_path: Path) -> None:
    """The nearest one is named, and the exit status is 1; one that is like no other may come yet."""
    for attribute, status in (("dovetail.dev/numanode", 1), ("example.com/rack", 0)):
        claim_template = template(spec=devices_spec(match=attribute))
        answer = plan_json(
            write(tmp_path, *hardware("n1"), claim_template, pod(template="template")), status=status
        )
        assert outcomes(answer) == {"pod": "waits"}
        assert ("Did you mean dovetail.dev/numaNode?" in answer["pods"][0]["message"]) == bool(status)


def test_a_pod_without_the_gate_is_warned(tmp_path: Path) -> None:
    """In both forms, whether it fits or not; a pod without claims of ours needs none."""
    write(
        tmp_path,
        *hardware("n1", numa=(0,)),
        template(),
        claim("plain", spec=devices_spec(request("gpu", "gpu.example.com"), match=None)),
        pod("a", template="template", gated=False),
        pod("b", template="template", gated=False),
        pod("c", template="template"),
        pod("d", claims=[named("plain")], gated=False),
    )
    warnings = plan_json(tmp_path, status=1)["warnings"]
    assert [(each["namespace"], each["name"]) for each in warnings] == [("default", "a"), ("default", "b")]
    assert "lacks the scheduling gate dovetail.dev/allocation" in warnings[0]["message"]
    text = plan(str(tmp_path)).stdout
    assert text.count("\n  warning: the pod lacks the scheduling gate") == 2


@pytest.mark.parametrize("labelled", ["Pod", "Namespace"])
def test_a_pod_that_opts_in_by_label_counts_as_gated(tmp_path: Path, labelled: str) -> None:
    """The chart's policy adds the gate when it is created; one that is there already got none."""
    label = {"labels": {"dovetail.dev/gate": "enabled"}}
    space: Body = {"kind": "Namespace", "metadata": {"name": "default"}}
    body = pod(template="template", gated=False)
    (body if labelled == "Pod" else space)["metadata"] |= label
    write(tmp_path, *hardware("n1"), template(), space, body)
    assert [each["name"] for each in plan_json(tmp_path)["warnings"]] == ["pod"]
    del body["metadata"]["uid"]
    answer = plan_json(write(tmp_path, *hardware("n1"), template(), space, body))
    assert "warnings" not in answer
    assert "as the chart's policy would add it" in answer["notes"][0]
    body["metadata"]["labels"] = {"dovetail.dev/gate": "disabled"}
    assert "warnings" in plan_json(write(tmp_path, *hardware("n1"), template(), space, body))


ENDING: list[Body] = [
    {"metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    {"metadata": {"name": "default"}, "status": {"phase": "Terminating"}},
]


@pytest.mark.parametrize("namespace", ENDING)
def test_nothing_can_be_created_in_a_namespace_that_is_being_deleted(tmp_path: Path, namespace: Body) -> None:
    """New objects are problems; a pod that is there gets no claim; a workload that is there gets no pods."""
    space = {"kind": "Namespace", **namespace}
    new = pod("new", template="template")
    del new["metadata"]["uid"]
    there = claim("there", metadata={"uid": "uid-there"})
    write(
        tmp_path,
        *hardware("n1", numa=(0, 1, 2)),
        space,
        template(),
        claim("new"),
        new,
        there,
        pod("old", template="template"),
        pod("lucky", claims=[named("there")]),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "d"}, "spec": {}},
    )
    answer = plan_json(tmp_path, status=2)
    reason = "namespace 'default' is being deleted"
    assert [(each["kind"], each["name"]) for each in answer["problems"]] == [
        ("ResourceClaimTemplate", "template"),
        ("ResourceClaim", "new"),
        ("Pod", "new"),
    ]
    assert all(reason in each["message"] for each in answer["problems"])
    assert outcomes(answer) == {"old": "error", "lucky": "fits"}
