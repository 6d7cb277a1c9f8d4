"""Claims are made from templates as kube-controller-manager makes them (G1-G38, T-1 to T-5)."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.features import Features
from dovetail.core.generation import (
    Adopt,
    Create,
    Impossible,
    claim_name,
    name_prefix,
    statuses_for,
    steps_for,
)
from tests.planner.worlds import Body, claim, devices_spec, named, pod, pod_in, request, template, world_of

STATUS = "resourceClaimStatuses"


@pytest.mark.parametrize(
    ("pod_length", "claim_length", "prefix"),
    [
        (51, 4, "p" * 51 + "-" + "c" * 4 + "-"),
        (51, 5, "p" * 50 + "-" + "c" * 4),
        (63, 63, "p" * 28 + "-" + "c" * 28),
        (1, 1, "p-c-"),
    ],
)
def test_the_prefix_is_cut_as_upstream_cuts_it(pod_length: int, claim_length: int, prefix: str) -> None:
    """T-1: up to 57 characters it stays whole with its hyphen; beyond, both parts shrink alike."""
    assert name_prefix("p" * pod_length, "c" * claim_length) == prefix


NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True).filter(
    lambda name: ".." not in name and "-." not in name and ".-" not in name
)
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(NAMES, LABELS, st.uuids())
def test_names_are_short_valid_and_repeatable(pod_name: str, entry: str, uid: object) -> None:
    """At most 62 characters, a DNS subdomain, and the same each time."""
    name = claim_name(pod_name, entry, str(uid))
    assert len(name) <= 62
    assert name.startswith(name_prefix(pod_name, entry))
    assert ".." not in name
    assert ".-" not in name
    assert "-." not in name
    assert name[0] not in "-."
    assert name == claim_name(pod_name, entry, str(uid))


def test_names_differ_by_pod_entry_and_attempt() -> None:
    """The hash covers the UID, so that a pod replaced under its name gets another claim."""
    names = {claim_name("p", "c", "1"), claim_name("p", "c", "2"), claim_name("p", "c", "1", 1)}
    assert len(names) == 3


def test_a_claim_is_made_from_the_template_as_it_was_read() -> None:
    """T-2: labels, annotations and every field of the spec, known or not; owner and annotation are added."""
    spec = devices_spec(request("gpu", "gpu.example.com", fieldOfTomorrow={"x": 1}))
    made = template(spec=spec, annotations={"a": "1"}, labels={"l": "2"})
    world = world_of(made, pod(template="template"))

    (step,) = steps_for(world, pod_in(world))

    assert isinstance(step, Create)
    assert step.body == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name("pod", "devices", "uid-pod"),
            "namespace": "default",
            "labels": {"l": "2"},
            "annotations": {"a": "1", "resource.kubernetes.io/pod-claim-name": "devices"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "uid-pod", "controller": True}
            ],
        },
        "spec": spec,
    }


def test_the_template_is_not_changed() -> None:
    """T-2: upstream writes its annotation into the template that it keeps."""
    made = template(annotations={"a": "1"})
    world = world_of(made, pod(template="template"))
    steps_for(world, pod_in(world))
    assert made["spec"]["metadata"] == {"annotations": {"a": "1"}}
    assert world.raw("ResourceClaimTemplate", "default", "template") == template(annotations={"a": "1"})


def test_a_claim_that_was_made_is_adopted() -> None:
    """T-3, G20: by owner and annotation, whoever made it and whatever its name."""
    world = world_of(template(), pod(template="template"), claim("any-name", owner="pod"))
    assert steps_for(world, pod_in(world)) == (Adopt("devices", "any-name"),)


def test_a_claim_without_the_annotation_is_not_adopted() -> None:
    """G20: nor is one of another pod of that name."""
    plain = claim("plain", owner="pod")
    plain["metadata"]["annotations"] = {}
    before = claim("before", owner="pod")
    before["metadata"]["ownerReferences"][0]["uid"] = "uid-of-a-pod-before"
    world = world_of(template(), pod(template="template"), plain, before)
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Create)


def recorded(name: str | None) -> dict[str, object]:
    """A pod's status that records a claim for the entry."""
    entry = {"name": "devices", **({"resourceClaimName": name} if name else {})}
    return {STATUS: [entry]}


def test_a_recorded_claim_that_is_there_needs_nothing() -> None:
    """G5: even while it is being deleted."""
    leaving = claim(owner="pod")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for made in (claim(owner="pod"), leaving):
        world = world_of(template(), made, pod(template="template", status=recorded("claim")))
        assert steps_for(world, pod_in(world)) == ()


def test_an_entry_that_needs_no_claim_gets_none() -> None:
    """G5, G33: the status names the entry without a claim."""
    world = world_of(template(), pod(template="template", status=recorded(None)))
    assert steps_for(world, pod_in(world)) == ()


def test_a_recorded_claim_that_is_missing_or_foreign_is_made_anew_under_another_name() -> None:
    """T-3, G5: never under the recorded name."""
    first = claim_name("pod", "devices", "uid-pod")
    for others in ([], [claim(first, owner="other")], [claim(first)]):
        world = world_of(template(), *others, pod(template="template", status=recorded(first)))
        (step,) = steps_for(world, pod_in(world))
        assert isinstance(step, Create)
        assert step.body["metadata"]["name"] == claim_name("pod", "devices", "uid-pod", 1)


def test_a_name_that_somebody_else_has_is_not_taken() -> None:
    """The next attempt's is."""
    world = world_of(template(), claim(claim_name("pod", "devices", "uid-pod")), pod(template="template"))
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Create)
    assert step.body["metadata"]["name"] == claim_name("pod", "devices", "uid-pod", 1)


def test_a_missing_template_is_named() -> None:
    """T-4, G14; handling of the pod stops there."""
    entries = [
        {"name": "a", "resourceClaimTemplateName": "gone"},
        {"name": "b", "resourceClaimTemplateName": "template"},
    ]
    world = world_of(template(), pod(claims=entries))
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Impossible)
    assert step.entry == "a"
    assert 'resource claim template "gone"' in step.message
    assert "not found" in step.message


def test_a_template_that_comes_later_is_used() -> None:
    """The pod needs no change for it."""
    world = world_of(pod(template="template"))
    world.put("ResourceClaimTemplate", template())
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Create)


def test_a_malformed_template_is_explained() -> None:
    """The reason is that of the object."""
    broken = template()
    broken["spec"]["spec"]["devices"]["requests"] = "all"
    world = world_of(broken, pod(template="template"))
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Impossible)
    assert "requests" in step.message


def test_features_that_are_off_are_refused() -> None:
    """G14, with upstream's words."""
    admin = template("admin", spec=devices_spec(request("gpu", "gpu.example.com", adminAccess=True)))
    listed = template("listed", spec=devices_spec({"name": "gpu", "firstAvailable": [{"name": "a"}]}))
    off = Features().with_gates({"DRAAdminAccess": False, "DRAPrioritizedList": False})
    for made, words in (
        (admin, "admin access is requested, but the feature is disabled"),
        (listed, "template includes a prioritized list of subrequests, but the feature is disabled"),
    ):
        name = made["metadata"]["name"]
        refused = world_of(made, pod(template=name), features=off)
        assert steps_for(refused, pod_in(refused)) == (Impossible("devices", words),)
        allowed = world_of(made, pod(template=name))
        assert isinstance(steps_for(allowed, pod_in(allowed))[0], Create)


def test_named_claims_are_never_made() -> None:
    """T-5: two pods that name one claim share it."""
    world = world_of(pod(claims=[named("shared")]), pod("other", claims=[named("shared")]))
    assert steps_for(world, pod_in(world)) == ()


def test_two_pods_with_one_template_get_two_claims() -> None:
    """T-5."""
    world = world_of(template(), pod(template="template"), pod("other", template="template"))
    steps = [steps_for(world, pod_in(world, name))[0] for name in ("pod", "other")]
    names = {step.body["metadata"]["name"] for step in steps if isinstance(step, Create)}
    assert len(names) == 2


@pytest.mark.parametrize(
    "state",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"status": {"phase": "Failed"}},
    ],
)
def test_pods_that_are_going_get_no_claims(state: dict[str, dict[str, str]]) -> None:
    """G2."""
    metadata = state.get("metadata")
    world = world_of(template(), pod(template="template", metadata=metadata, status=state.get("status")))
    assert steps_for(world, pod_in(world)) == ()


def test_gates_schedulers_and_nodes_do_not_matter() -> None:
    """G3."""
    spec: Body = {"schedulerName": "other", "nodeName": "n1", "schedulingGates": [{"name": "x"}]}
    world = world_of(template(), pod(template="template", **spec))
    assert isinstance(steps_for(world, pod_in(world))[0], Create)


def test_an_unknown_form_of_entry_is_an_error() -> None:
    """G5: a field of a future API."""
    world = world_of(pod(claims=[{"name": "devices"}]))
    (step,) = steps_for(world, pod_in(world))
    assert isinstance(step, Impossible)
    assert "API unsupported" in step.message


def test_the_status_lists_old_and_new_entries_by_name() -> None:
    """G25: all that have a name, sorted; new ones replace old ones."""
    status = {
        STATUS: [
            {"name": "z", "resourceClaimName": "old-z"},
            {"name": "none"},
            {"name": "b", "resourceClaimName": "old-b"},
        ]
    }
    world = world_of(pod(status=status))
    assert statuses_for(pod_in(world), {"b": "new-b", "a": "new-a"}) == [
        {"name": "a", "resourceClaimName": "new-a"},
        {"name": "b", "resourceClaimName": "new-b"},
        {"name": "z", "resourceClaimName": "old-z"},
    ]


def seconds_for_steps(entries: int, *, made: bool) -> float:
    """CPU time to tell the steps of a pod with so many entries, whose status records a claim for each."""
    names = [f"e{number}" for number in range(entries)]
    statuses = [{"name": name, "resourceClaimName": f"claim-{name}"} for name in names]
    claims = [{"name": name, "resourceClaimTemplateName": "template"} for name in names]
    bodies = [claim(f"claim-{name}", owner="pod") for name in names if made]
    for name, body in zip(names, bodies, strict=False):
        body["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": name}
    world = world_of(template(), *bodies, pod(claims=claims, status={STATUS: statuses}))
    took = []
    for _ in range(3):
        began = process_time()
        steps = steps_for(world, pod_in(world))
        took.append(process_time() - began)
        assert len(steps) == (0 if made else entries)
    return min(took)


@pytest.mark.parametrize("made", [True, False])
def test_four_times_the_entries_take_four_times_as_long(made: bool) -> None:
    """Whether the claims are there or gone, each entry is looked up in the status, not searched for."""
    assert seconds_for_steps(4000, made=made) < 9 * seconds_for_steps(1000, made=made)
