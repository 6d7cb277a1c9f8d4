"""`dovetail plan` says what the operator would do, and what is wrong with the input."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import alignments, devices, names, only_pod, outcomes, plan, plan_json, write
from tests.planner.worlds import (
    NUMA,
    Body,
    allocated,
    claim,
    device_class,
    devices_spec,
    hardware,
    mapping,
    named,
    node,
    pod,
    request,
    template,
)
from tests.planner.worlds import devices as slice_of

GPU, NIC = "gpu.example.com", "nic.example.com"


def test_a_claim_that_a_template_would_give_is_made_in_memory(tmp_path: Path) -> None:
    """It has no object's name; the allocation is as the status would carry it, without a time."""
    answer = only_pod(write(tmp_path, *hardware("n1"), template(), pod(template="template")))
    assert answer == {
        "namespace": "default",
        "name": "pod",
        "outcome": "fits",
        "node": "n1",
        "claims": [
            {
                "name": "devices",
                "resourceClaim": None,
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": "gpu", "driver": GPU, "pool": "n1", "device": "dev-0"},
                            {"request": "nic", "driver": NIC, "pool": "n1", "device": "dev-0"},
                        ]
                    },
                    "nodeSelector": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                        ]
                    },
                },
                "alignment": [{"attribute": NUMA, "requests": ["gpu", "nic"], "value": 0}],
            }
        ],
        "message": "",
    }


def test_a_claim_that_exists_is_called_by_its_name(tmp_path: Path) -> None:
    """Generated before, or named by the pod."""
    write(tmp_path, *hardware("n1"), template(), claim("made", owner="pod"), pod(template="template"))
    assert only_pod(tmp_path)["claims"][0]["resourceClaim"] == "made"
    write(tmp_path, *hardware("n1"), claim("mine"), pod(claims=[named("mine")]))
    assert only_pod(tmp_path)["claims"][0]["resourceClaim"] == "mine"


def test_each_pod_sees_what_the_earlier_ones_got(tmp_path: Path) -> None:
    """By priority, then creation time, then order in the input; whoever comes last finds nothing left."""
    born = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    write(
        tmp_path,
        *hardware("n1"),
        template(),
        pod("late-1", template="template"),
        pod("late-2", template="template"),
        pod("early", template="template", metadata=born),
        pod("urgent", template="template", priorityClassName="high"),
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100},
    )
    answer = plan_json(tmp_path, status=1)
    assert names(answer) == ["urgent", "early", "late-1", "late-2"]
    assert list(outcomes(answer).values()) == ["fits", "fits", "doesNotFit", "doesNotFit"]
    assert [devices(each) for each in answer["pods"][:2]] == [
        [f"{GPU}/dev-0", f"{NIC}/dev-0"],
        [f"{GPU}/dev-1", f"{NIC}/dev-1"],
    ]


@pytest.mark.parametrize(
    ("classes", "priority_class", "first"),
    [
        ([], None, "early"),
        ([], "unknown", "early"),
        ([("low", -5, False)], "low", "early"),
        ([("high", 5, False)], "high", "other"),
        ([("usual", 5, True)], None, "early"),
        ([], "system-cluster-critical", "other"),
    ],
)
def test_priorities_come_from_their_classes(
    tmp_path: Path, classes: list[tuple[str, int, bool]], priority_class: str | None, first: str
) -> None:
    """As the API server fills them in; a class that is not in the input counts as 0."""
    named_class: Body = {"priorityClassName": priority_class} if priority_class else {}
    write(
        tmp_path,
        *(
            {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, "globalDefault": default}
            for name, value, default in classes
        ),
        *hardware("n1"),
        template(),
        pod("early", template="template"),
        pod("other", template="template", **named_class),
    )
    assert names(plan_json(tmp_path))[0] == first


def test_a_pod_that_got_a_node_counts_on_it(tmp_path: Path) -> None:
    """Its cpu is gone for the next one."""
    write(
        tmp_path,
        *hardware("n1", "n2"),
        template(),
        *(pod(f"p{index}", template="template", cpu="5") for index in range(3)),
    )
    answer = plan_json(tmp_path, status=1)
    assert [each["node"] for each in answer["pods"]] == ["n1", "n2", None]
    assert "short of cpu (5 wanted, at most 3 left)" in answer["pods"][2]["message"]


def test_the_higher_score_decides_before_the_name_of_the_node(tmp_path: Path) -> None:
    """An earlier alternative of a prioritized list scores more (allocation-rules 2.6)."""
    spec = devices_spec(
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": "big", "deviceClassName": "big"},
                {"name": "any", "deviceClassName": GPU},
            ],
        }
    )
    big = device_class("big")
    big["spec"]["selectors"] = [
        {"cel": {"expression": f'device.driver == "{GPU}" && device.attributes["{GPU}"].numaNode == 7'}}
    ]
    write(
        tmp_path,
        *hardware("n1", "n2"),
        big,
        claim(spec=spec),
        pod(claims=[named("claim")]),
    )
    assert only_pod(tmp_path)["node"] == "n1"
    write(tmp_path, slice_of(GPU, "n3", [7]), node("n3"), name="more.yaml")
    assert only_pod(tmp_path)["node"] == "n3"


def test_pods_of_one_shared_claim_go_where_it_is(tmp_path: Path) -> None:
    """The first one has it allocated, the second one joins; an ungated one is left to kube-scheduler."""
    write(
        tmp_path,
        *hardware("n1", "n2"),
        claim("shared"),
        pod("a", claims=[named("shared")]),
        pod("b", claims=[named("shared")]),
        pod("c", claims=[named("shared")], gated=False),
    )
    answer = plan_json(tmp_path)
    assert [(each["outcome"], each["node"]) for each in answer["pods"]] == [("fits", "n1")] * 3
    first, *others = answer["pods"]
    for other in others:
        assert other["claims"] == first["claims"]
    assert alignments(first) == [{"attribute": NUMA, "requests": ["gpu", "nic"], "value": 0}]


def test_what_was_allocated_before_is_shown_as_it_is(tmp_path: Path) -> None:
    """With the alignment that its annotation tells, and without its time."""
    entry = {"attribute": NUMA, "requests": [], "value": 1}
    status = allocated("n1", "dev-1", reserved=["pod"])
    status["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    held = claim(status=status, metadata={"annotations": {"dovetail.dev/alignment": json.dumps([entry])}})
    answer = only_pod(write(tmp_path, *hardware("n1"), held, pod(claims=[named("claim")])))
    assert answer["outcome"] == "fits"
    assert answer["node"] == "n1"
    assert alignments(answer) == [entry]
    del status["allocation"]["allocationTimestamp"]
    assert answer["claims"][0]["allocation"] == status["allocation"]


def test_claims_of_others_in_a_pod_of_ours_are_planned_with_it(tmp_path: Path) -> None:
    """They are listed too, and their devices are gone for later pods."""
    plain = devices_spec(request("gpu", GPU), match=None)
    write(
        tmp_path,
        *hardware("n1"),
        claim("mine"),
        claim("plain", spec=plain),
        claim("next"),
        pod(claims=[named("mine", "m"), named("plain", "p")]),
        pod("next", claims=[named("next")]),
    )
    answer = plan_json(tmp_path, status=1)
    assert [each["name"] for each in answer["pods"][0]["claims"]] == ["m", "p"]
    assert outcomes(answer) == {"pod": "fits", "next": "doesNotFit"}


@pytest.mark.parametrize(
    ("of_pod", "word"),
    [
        ({"gates": ["example.com/quota"]}, "example.com/quota"),
        ({"schedulerName": "volcano"}, "volcano"),
        ({"template": "wrong"}, "example.com/rack"),
    ],
)
def test_pods_that_have_to_wait_say_for_what(tmp_path: Path, of_pod: Body, word: str) -> None:
    """A gate of others, another scheduler, an attribute that nothing supplies: no failure."""
    wrong = template("wrong", spec=devices_spec(match="example.com/rack"))
    answer = only_pod(
        write(tmp_path, *hardware("n1"), template(), wrong, pod(**{"template": "template", **of_pod}))
    )
    assert answer["outcome"] == "waits"
    assert answer["node"] is None
    assert answer["claims"] == []
    assert word in answer["message"]


def test_pods_of_other_schedulers_are_served_where_that_is_said(tmp_path: Path) -> None:
    """The option is called as the setting of the operator is."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template", schedulerName="volcano"))
    assert only_pod(tmp_path, "--scheduler-names", "default-scheduler, volcano")["outcome"] == "fits"


def test_pods_without_a_claim_of_ours_are_not_ours(tmp_path: Path) -> None:
    """A gated one is told that its gate goes."""
    plain = claim(spec=devices_spec(request("gpu", GPU), match=None))
    write(tmp_path, *hardware("n1"), plain, pod("plain", claims=[named("claim")], gated=False), pod("gated"))
    answer = plan_json(tmp_path)
    assert outcomes(answer) == {"plain": "notOurs", "gated": "notOurs"}
    assert "gate is removed" in answer["pods"][1]["message"]


@pytest.mark.parametrize(
    ("objects", "word"),
    [
        ([pod(template="gone")], '"gone"'),
        ([pod(template="gone", gated=False)], '"gone"'),
        ([pod(claims=[named("gone")])], "'gone'"),
        ([pod(claims=[named("claim")]), claim(spec=devices_spec(request("gpu", "no-class")))], "no-class"),
    ],
)
def test_pods_that_cannot_be_served_as_they_are_are_in_error(
    tmp_path: Path, objects: list[Body], word: str
) -> None:
    """Exit status 1; the message names what is wrong."""
    answer = only_pod(write(tmp_path, *hardware("n1"), *objects), status=1)
    assert answer["outcome"] == "error"
    assert word in answer["message"]


def test_a_search_that_takes_too_long_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told apart from a refusal; exit status 1."""
    monkeypatch.setattr("dovetail.cli.plan.STEPS", 0)
    answer = only_pod(write(tmp_path, *hardware("n1"), template(), pod(template="template")), status=1)
    assert answer["outcome"] == "cut"
    assert "tried again" in answer["message"]


def test_pods_that_have_a_node_or_are_done_are_not_planned(tmp_path: Path) -> None:
    """They count where they are."""
    write(
        tmp_path,
        *hardware("n1"),
        template(),
        pod("bound", template="template", nodeName="n1", gated=False),
        pod("done", template="template", status={"phase": "Succeeded"}),
        pod("leaving", template="template", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    )
    assert plan_json(tmp_path) == {"pods": [], "problems": []}


def test_gates_default_to_those_of_1_37_and_can_be_set(tmp_path: Path) -> None:
    """Here a prioritized list: the API server leaves it out, and takes no request without devices."""
    spec = devices_spec({"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": GPU}]})
    write(tmp_path, *hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    assert only_pod(tmp_path)["outcome"] == "fits"
    gates = "DRAPrioritizedList=false,DRAAdminAccess=true"
    refused = plan_json(tmp_path, "--feature-gates", gates, status=2)
    assert outcomes(refused) == {"pod": "error"}
    assert refused["notes"] == [
        "ResourceClaim default/claim: firstAvailable is left out, since DRAPrioritizedList is off."
    ]


@pytest.mark.parametrize("gates", ["NoSuchGate=true", "DRAAdminAccess", "DRAAdminAccess=yes"])
def test_wrong_gates_are_a_wrong_command_line(tmp_path: Path, gates: str) -> None:
    """Exit status 2, with what is known or expected."""
    result = plan(str(write(tmp_path, node("n1"))), "--feature-gates", gates)
    assert result.exit_code == 2
    assert "feature-gates" in result.stderr


def test_gates_that_change_nothing_here_are_taken(tmp_path: Path) -> None:
    """So that the gates of a cluster can be passed as they are."""
    gates = "DynamicResourceAllocation=true,GenericWorkload=false"
    assert plan(str(write(tmp_path, node("n1"))), "--feature-gates", gates).exit_code == 0


def test_shipped_mappings_count_unless_they_are_left_out(tmp_path: Path) -> None:
    """T-14: the same pod waits for a mapping without them."""
    world = [body for body in hardware("n1") if body["kind"] != "DerivedAttribute"]
    standard = [slice_of(name, "n1", [0], attribute="resource.kubernetes.io/numaNode") for name in (GPU, NIC)]
    write(
        tmp_path,
        *(body for body in world if body["kind"] != "ResourceSlice"),
        *standard,
        template(),
        pod(template="template"),
    )
    assert only_pod(tmp_path)["outcome"] == "fits"
    waiting = only_pod(tmp_path, "--no-shipped-mappings")
    assert waiting["outcome"] == "waits"
    assert NUMA in waiting["message"]
    write(
        tmp_path,
        mapping() | {"spec": {"attribute": NUMA, "rules": [{"driver": "*", "expression": "1"}]}},
        name="m.yaml",
    )
    assert only_pod(tmp_path, "--no-shipped-mappings")["outcome"] == "fits"


def test_problems_say_where_they_are_and_the_rest_is_planned(tmp_path: Path) -> None:
    """Unreadable files, malformed objects, broken mappings: file, document, kind, name. Exit status 2."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template"), name="a.yaml")
    broken_rules = {"attribute": "example.com/x", "rules": [{"driver": "*", "expression": "1 +"}]}
    write(
        tmp_path,
        mapping(name="broken") | {"spec": broken_rules},
        pod("malformed", containers="none"),
        mapping("other.example/y", name="unknown-field")
        | {"spec": {"attribute": "o.example/y", "rules": [], "x": 1}},
        name="b.yaml",
    )
    (tmp_path / "c.yaml").write_text("a: [\n---\nkind: Pod\n---\n- 1\n")
    (tmp_path / "d.yml").write_bytes(b"\xff\xfe\x00")
    answer = plan_json(tmp_path, status=2)
    assert outcomes(answer) == {"pod": "fits"}
    found = [
        (Path(each["file"]).name, each["document"], each["kind"], each["name"]) for each in answer["problems"]
    ]
    assert found == [
        ("b.yaml", 1, "DerivedAttribute", "broken"),
        ("b.yaml", 2, "Pod", "malformed"),
        ("b.yaml", 3, "DerivedAttribute", "unknown-field"),
        ("c.yaml", 1, "", ""),
        ("c.yaml", 2, "", ""),
        ("c.yaml", 3, "", ""),
        ("d.yml", 0, "", ""),
    ]
    assert all(each["message"] for each in answer["problems"])
    assert set(answer["problems"][0]) == {"file", "document", "kind", "name", "message"}


def test_a_claim_that_is_malformed_keeps_its_devices_in_the_plan_too(tmp_path: Path) -> None:
    """Exit status 2, and nobody else gets them."""
    held = claim("held", status=allocated("n1", "dev-0"))
    held["spec"] = {"devices": "all"}
    write(tmp_path, *hardware("n1"), held, template(), pod(template="template"))
    answer = plan_json(tmp_path, status=2)
    assert devices(answer["pods"][0]) == [f"{GPU}/dev-1", f"{NIC}/dev-1"]


def test_an_object_that_is_there_twice_is_a_problem(tmp_path: Path) -> None:
    """The first one counts; the place of the first is told."""
    write(tmp_path, node("n1"), node("n1"))
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert (problem["document"], problem["kind"], problem["name"]) == (2, "Node", "n1")
    assert "document 1" in problem["message"]


def test_lists_streams_and_other_kinds_are_read(tmp_path: Path) -> None:
    """Lists, typed ones whose items say nothing of themselves, JSON; kinds of others are passed over."""
    things = [{"apiVersion": "v1", **body} for body in (*hardware("n1"), template())]
    for body in things:
        body["apiVersion"] = {"DerivedAttribute": "dovetail.dev/v1alpha1"}.get(
            body["kind"], body["apiVersion"]
        )
    items = [
        {key: value for key, value in pod(template="template").items() if key not in ("kind", "apiVersion")}
    ]
    documents: list[Body] = [
        {"apiVersion": "v1", "kind": "List", "items": things},
        {"apiVersion": "v1", "kind": "PodList", "items": items},
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": "d"},
            "data": "whatever",
        },
        {"apiVersion": "metrics.example/v1", "kind": "Node", "metadata": {"name": "not-a-node"}},
    ]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(documents))
    assert only_pod(tmp_path)["outcome"] == "fits"
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, documents)))
    assert only_pod(tmp_path)["outcome"] == "fits"


def test_directories_are_read_to_the_bottom(tmp_path: Path) -> None:
    """Manifests only; hidden files and folders are left out."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").write_text("a: [")
    (tmp_path / "README.md").write_text("a: [")
    write(tmp_path, *hardware("n1"), template())
    write(deep, pod(template="template"), name="pod.YAML")
    assert only_pod(tmp_path)["outcome"] == "fits"


def test_standard_input_is_a_file_called_dash() -> None:
    """In text and in problems."""
    text = yaml.safe_dump_all([*hardware("n1"), template(), pod(template="template")])
    result = plan("-", "-o", "json", stdin=text + "\n---\na: [\n")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    assert outcomes(answer) == {"pod": "fits"}
    assert answer["problems"][0]["file"] == "-"


def test_what_cannot_be_opened_is_a_problem(tmp_path: Path) -> None:
    """A file that is not there, a folder without manifests."""
    missing = plan(str(tmp_path / "gone.yaml"), "-o", "json")
    assert missing.exit_code == 2
    assert "No such file" in json.loads(missing.stdout)["problems"][0]["message"]
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert problem["document"] == 0


def test_a_pci_address_is_a_string(tmp_path: Path) -> None:
    """Most YAML 1.1 readers make a number of it."""
    addressed = slice_of(GPU, "n1", [0])
    addressed["spec"]["devices"][0]["attributes"]["bus"] = {"string": "ADDRESS"}
    others = [body for body in hardware("n1") if body["metadata"]["name"] != f"n1-{GPU}"]
    write(tmp_path, *others, addressed, template(), pod(template="template"))
    file = tmp_path / "objects.yaml"
    file.write_text(file.read_text().replace("ADDRESS", "0008:06:00.0"))
    assert only_pod(tmp_path)["outcome"] == "fits"


def test_a_generated_name_is_made_up(tmp_path: Path) -> None:
    """A pod for `kubectl create` has only a prefix."""
    body = pod(template="template")
    del body["metadata"]["name"], body["metadata"]["uid"]
    body["metadata"]["generateName"] = "job-"
    answer = only_pod(write(tmp_path, *hardware("n1"), template(), body))
    assert answer["name"] == "job-xxxxx"
    assert answer["outcome"] == "fits"


def test_older_versions_of_the_api_are_read_and_unknown_ones_refused(tmp_path: Path) -> None:
    """v1beta1 has the fields of devices and requests elsewhere; v1alpha2 is a problem."""
    old_template: Body = template(
        spec={
            "devices": {
                "requests": [
                    {"name": "gpu", "deviceClassName": GPU},
                    {"name": "nic", "deviceClassName": NIC},
                ],
                "constraints": [{"matchAttribute": NUMA}],
            }
        }
    )
    old_template["apiVersion"] = "resource.k8s.io/v1beta1"
    world: list[Body] = []
    for body in hardware("n1"):
        if body["kind"] == "ResourceSlice":
            spec: Any = body["spec"]
            basics = [
                {"name": each["name"], "basic": {"attributes": each["attributes"]}}
                for each in spec["devices"]
            ]
            world.append(body | {"apiVersion": "resource.k8s.io/v1beta1", "spec": spec | {"devices": basics}})
        else:
            world.append(body)
    write(tmp_path, *world, old_template, pod(template="template"))
    assert only_pod(tmp_path)["outcome"] == "fits"
    write(tmp_path, claim("ancient") | {"apiVersion": "resource.k8s.io/v1alpha2"}, name="b.yaml")
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert "v1alpha2" in problem["message"]


def test_nodes_that_only_slices_name_are_assumed(tmp_path: Path) -> None:
    """JSON has no room for it; the text says so."""
    world = [
        body
        for body in hardware("n1", "n2")
        if not (body["kind"] == "Node" and body["metadata"]["name"] == "n2")
    ]
    full = claim("full", status=allocated("n1", "dev-0", "dev-1"))
    write(
        tmp_path, *world, full, template(), pod(template="template", cpu="100", nodeSelector={"disk": "ssd"})
    )
    assert only_pod(tmp_path)["node"] == "n2"
    text = plan(str(tmp_path)).stdout
    assert "assumed to exist and be usable: n2." in text


def test_a_field_that_is_null_counts_as_absent(tmp_path: Path) -> None:
    """As everywhere in Kubernetes: `namespace:` with nothing behind it is a common way to write manifests."""
    nulls = pod(template="template", schedulerName=None, nodeName=None, priority=None, tolerations=None)
    nulls["metadata"] |= {"namespace": None, "generation": None, "labels": None, "creationTimestamp": None}
    nulls["spec"]["containers"][0]["resources"] = None
    wanted = template(
        spec=devices_spec(request("gpu", GPU, selectors=None, allocationMode=None), request("nic", NIC))
    )
    assert only_pod(write(tmp_path, *hardware("n1"), wanted, nulls))["outcome"] == "fits"


def test_what_a_device_plugin_offers_too_is_not_planned_unless_allowed(tmp_path: Path) -> None:
    """T-18, R-G4: as the operator does, by the option of the same name; a note tells of the nodes."""
    spec = devices_spec(request("gpu", "gpu.nvidia.com"), request("nic", NIC))
    write(
        tmp_path,
        *hardware(),
        device_class("gpu.nvidia.com"),
        *(node(name, plugins={"nvidia.com/gpu": "2"}) for name in ("n1", "n2")),
        *(slice_of(driver, name, (0, 1)) for driver in ("gpu.nvidia.com", NIC) for name in ("n1", "n2")),
        template(spec=spec),
        pod(template="template"),
    )
    refused = only_pod(tmp_path, status=1)
    assert "0 of 2 can be taken: 2 offered by device plugin too (nvidia.com/gpu)" in refused["message"]
    note = "these nodes offer devices of gpu.nvidia.com by device plugin too (nvidia.com/gpu): n1, n2."
    assert note in " ".join(plan(str(tmp_path)).stdout.split())
    assert only_pod(tmp_path, "--dual-mode-nodes", "allow")["node"] == "n1"
    assert plan(str(tmp_path), "--dual-mode-nodes", "perhaps").exit_code == 2
