"""Labels satisfy selectors as Kubernetes says."""

import pytest

from dovetail.api.selection import LabelSelector, NodeSelector, Requirement
from dovetail.core.labels import labels_match, node_matches, only_node, requirement_holds

LABELS = {"zone": "a", "rank": "7", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("absent", "In", ("",), False),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("absent", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("absent", "DoesNotExist", (), True),
        ("zone", "DoesNotExist", (), False),
        ("rank", "Gt", ("6",), True),
        ("rank", "Gt", ("7",), False),
        ("rank", "Lt", ("8",), True),
        ("rank", "Lt", ("7",), False),
        ("zone", "Gt", ("1",), False),
        ("rank", "Gt", ("x",), False),
        ("rank", "Gt", ("1", "2"), False),
        ("absent", "Lt", ("1",), False),
        ("zone", "Like", ("a",), False),
    ],
)
def test_a_requirement_holds_as_kubernetes_says(
    key: str, operator: str, values: tuple[str, ...], holds: bool
) -> None:
    """Each operator, on labels that are there and on absent ones; an unknown operator never holds."""
    assert requirement_holds(Requirement(key=key, operator=operator, values=values), LABELS) is holds


def test_an_absent_label_selector_matches_nothing_and_an_empty_one_everything() -> None:
    """As meta/v1 says."""
    assert not labels_match(None, LABELS)
    assert labels_match(LabelSelector(), LABELS)


def test_a_label_selector_wants_all_its_labels_and_expressions() -> None:
    """One that fails is enough to fail."""
    here = Requirement(key="zone", operator="Exists")
    gone = Requirement(key="absent", operator="Exists")
    assert labels_match(LabelSelector(match_labels={"zone": "a"}, match_expressions=(here,)), LABELS)
    assert not labels_match(LabelSelector(match_labels={"zone": "b"}, match_expressions=(here,)), LABELS)
    assert not labels_match(LabelSelector(match_labels={"zone": "a"}, match_expressions=(gone,)), LABELS)


def selector(*terms: dict[str, object]) -> NodeSelector:
    """A node selector from raw terms."""
    return NodeSelector.model_validate({"nodeSelectorTerms": list(terms)})


IN_A = {"key": "zone", "operator": "In", "values": ["a"]}
IN_B = {"key": "zone", "operator": "In", "values": ["b"]}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


def test_terms_of_a_node_selector_are_alternatives() -> None:
    """One term that holds is enough; within a term everything has to hold; without terms nothing does."""
    assert node_matches(selector({"matchExpressions": [IN_B]}, {"matchExpressions": [IN_A]}), "n1", LABELS)
    assert not node_matches(selector({"matchExpressions": [IN_A, IN_B]}), "n1", LABELS)
    assert not node_matches(selector(), "n1", LABELS)


def test_an_empty_term_matches_no_node() -> None:
    """As core/v1 says, though an empty label selector matches everything."""
    assert not node_matches(selector({}), "n1", LABELS)


def test_a_field_of_a_term_is_the_name_of_the_node() -> None:
    """`metadata.name` is compared with the name, not with a label of that key."""
    assert node_matches(selector({"matchFields": [NAMED]}), "n1", LABELS)
    assert not node_matches(selector({"matchFields": [NAMED]}), "n2", {"metadata.name": "n1"})
    assert not node_matches(selector({"matchFields": [NAMED], "matchExpressions": [IN_B]}), "n1", LABELS)


def test_unknown_labels_are_given_the_benefit_of_the_doubt() -> None:
    """Of a node that is only assumed, absent labels may be there; its name is known."""
    assert node_matches(selector({"matchExpressions": [IN_B]}), "n1", {}, complete=False)
    assert not node_matches(selector({"matchExpressions": [IN_B]}), "n1", LABELS, complete=False)
    assert not node_matches(selector({"matchFields": [NAMED]}), "n2", {}, complete=False)


def test_an_allocation_is_tied_to_a_node_by_a_field_alone() -> None:
    """One term with one name is a single node; labels, several names or several terms are not."""
    several = {"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}
    assert only_node(selector({"matchFields": [NAMED]})) == "n1"
    assert only_node(selector({"matchFields": [several]})) is None
    assert only_node(selector({"matchFields": [NAMED]}, {"matchFields": [NAMED]})) is None
    assert only_node(selector({"matchExpressions": [IN_A]})) is None
    assert only_node(None) is None
