"""The values that everything in the mind is made of: keys, attribute values, gates, budgets."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class PoolKey:
    """The pair of driver and name: equal names of two drivers are two pools (allocation-rules 2.1.1)."""

    driver: str
    pool: str


@dataclass(frozen=True, slots=True, order=True)
class DeviceKey:
    """A device, by driver, pool and name."""

    driver: str
    pool: str
    device: str

    @property
    def pool_key(self) -> PoolKey:
        """The pool that the device is part of."""
        return PoolKey(self.driver, self.pool)


class Kind(enum.StrEnum):
    """The types of attribute values; values of different types are never equal (R-A7)."""

    INT = "int"
    BOOL = "bool"
    STRING = "string"
    VERSION = "version"


Scalar = int | bool | str


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """The value of an attribute, published or derived: a scalar, or a list (KEP-5491).

    `values` has one entry for a scalar, and at least one for a list, in published order.
    Versions are semver strings.
    """

    kind: Kind
    values: tuple[Scalar, ...]
    is_list: bool = False

    @property
    def plain(self) -> Scalar | list[Scalar]:
        """The value as JSON shows it."""
        return list(self.values) if self.is_list else self.values[0]


@dataclass(frozen=True, slots=True)
class Unusable:
    """An attribute that is present without a usable value: no known type, or an empty list.

    As soon as a selector is evaluated on its device, the allocation ends in an error (allocation-rules 2.10).
    """

    reason: str


Attributes = Mapping[str, AttributeValue | Unusable]
"""Attributes of a device by qualified name (`domain/id`): bare ids lie in the driver's domain (V22)."""
