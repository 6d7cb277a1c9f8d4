"""DerivedAttribute and ClaimParameters: the objects of our own API group (dovetail.dev/v1alpha1)."""

from typing import Literal

from typing_extensions import override

from dovetail.api.meta import KubernetesObject, Listed, OwnedModel, Tupled

GROUP = "dovetail.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
PARAMETERS_DRIVER = "dovetail.dev"
"""The driver name of opaque configuration that is meant for us (design, section 3)."""

GATE = "dovetail.dev/allocation"
"""The scheduling gate of pods of ours."""

ALLOCATED_CONDITION = "dovetail.dev/Allocated"
"""The condition on the pod."""

ALIGNMENT_ANNOTATION = "dovetail.dev/alignment"
"""The annotation on the claim: what its devices have in common."""

UnknownValue = int | str | bool


class Rule(OwnedModel):
    """How one driver's devices get their value; driver `*` stands for every other driver."""

    driver: str
    expression: str
    when: str | None = None


class DerivedAttributeSpec(OwnedModel):  # noqa: PLW1641 - pydantic hashes what is frozen
    """An attribute and its rules, tried in order."""

    attribute: str
    rules: Listed[Rule] = ()
    unknown: Tupled[tuple[UnknownValue, ...]] = ()
    on_error: Literal["Exclude", "Fail"] = "Exclude"

    @override
    def __eq__(self, other: object) -> bool:
        # To Python 1 is true; an edit from one to the other must not pass for no edit.
        return (
            isinstance(other, DerivedAttributeSpec)
            and super().__eq__(other)
            and [type(value) for value in self.unknown] == [type(value) for value in other.unknown]
        )


class DerivedAttribute(KubernetesObject):
    """A mapping: what drivers publish under names of their own, under one name."""

    spec: DerivedAttributeSpec


class ClaimDerivedAttribute(OwnedModel):
    """A derived attribute that a claim brings along; without requests, for all of them."""

    name: str
    expression: str
    requests: Listed[str] = ()


class ClaimParameters(OwnedModel):
    """What a claim tells Dovetail, carried as opaque configuration."""

    api_version: Literal["dovetail.dev/v1alpha1"]
    kind: Literal["ClaimParameters"]
    derived_attributes: Listed[ClaimDerivedAttribute] = ()
