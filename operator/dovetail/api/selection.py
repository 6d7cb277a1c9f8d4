"""Selectors over labels and nodes, as core/v1 and meta/v1 define them."""

from typing import Literal

from dovetail.api.meta import Listed, Mapped, Model


class Requirement(Model):
    """One condition on a label or field. `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: Listed[str] = ()


class NodeSelectorTerm(Model):
    """All conditions hold. A term without any condition matches no node."""

    match_expressions: Listed[Requirement] = ()
    match_fields: Listed[Requirement] = ()


class NodeSelector(Model):
    """At least one term holds."""

    node_selector_terms: Listed[NodeSelectorTerm] = ()


class LabelSelector(Model):
    """All labels and all conditions hold; an empty selector matches everything."""

    match_labels: Mapped[str] = {}
    match_expressions: Listed[Requirement] = ()


TaintEffect = Literal["None", "NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Model):
    """A taint of a node or device. `effect` stays a string: unknown effects never block (KEP-5055)."""

    key: str
    value: str = ""
    effect: str = ""


class Toleration(Model):
    """A toleration of a pod or request; `operator` is Exists or Equal (default)."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
