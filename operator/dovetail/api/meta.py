"""The base of all models, and what every Kubernetes object carries.

A model is a frozen reading of an object.
It is never written back: a model drops fields that it does not know (design, section 2).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from dovetail.errors import ObjectInvalid

T = TypeVar("T")


def _listed(value: object) -> object:
    """Kubernetes says null, or nothing, where a list is empty."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else value


def _mapped(value: object) -> object:
    return {} if value is None else value


Listed = Annotated[tuple[T, ...], BeforeValidator(_listed)]
"""A list of an object, read as a tuple; null is empty."""

Tupled = Annotated[T, BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
"""A list that may be absent, which differs from an empty one."""

Mapped = Annotated[dict[str, T], BeforeValidator(_mapped)]
"""A map of an object; null is empty. Treat as read-only."""


class Model(BaseModel):
    """A frozen value in Kubernetes' camelCase; unknown fields are ignored, since others own the objects."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, strict=True
    )


class OwnedModel(Model):
    """A value of our own API group: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class OwnerReference(Model):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Model):
    """Name, identity and age of an object. Timestamps stay RFC 3339 strings: they sort by age as they are."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapped[str] = {}
    annotations: Mapped[str] = {}
    finalizers: Listed[str] = ()
    owner_references: Listed[OwnerReference] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object, where there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class KubernetesObject(Model):
    """Anything with metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace (empty where cluster-scoped) and name."""
        return (self.metadata.namespace, self.metadata.name)

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Read an object, or raise `ObjectInvalid` with the first field that is wrong.

        A field that is null counts as absent, as everywhere in Kubernetes.
        """
        try:
            return cls.model_validate(dict(body))
        except ValidationError:
            return cls._parse_without_nulls(body)

    @classmethod
    def _parse_without_nulls(cls, body: Mapping[str, Any]) -> Self:
        # Only what failed pays for the walk: hardly any object says null where a value has to be.
        try:
            return cls.model_validate(_without_nulls(dict(body)))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            # Lists are read as tuples, which is our own affair.
            wrong = first["msg"].replace("valid tuple", "valid list")
            raise ObjectInvalid(cls.__name__, _name_in(body), f"{field}: {wrong}") from error


def _without_nulls(value: Any, levels: int = 40) -> Any:
    """No field that we read lies deeper than so many levels; what a tenant writes may."""
    if levels and isinstance(value, dict):
        return {field: _without_nulls(part, levels - 1) for field, part in value.items() if part is not None}
    if levels and isinstance(value, list):
        return [_without_nulls(part, levels - 1) for part in value]
    return value


def _name_in(body: Mapping[str, Any]) -> str:
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else "?"
