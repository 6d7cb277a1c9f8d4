"""Devices for tests of expressions."""

from dovetail.core.cel import Environment, Failure, compile_attribute, compile_selector
from dovetail.core.devices import DeviceView
from dovetail.core.quantity import Quantity
from dovetail.core.values import AttributeValue, DeviceKey, Kind, Scalar

DOMAIN = "gpu.example.com"
"""The driver of the device, and the domain of its attributes."""

LISTS = Environment(list_type_attributes=True)
OWN = Environment(list_type_attributes=True, own=True)

_KINDS = {bool: Kind.BOOL, int: Kind.INT, str: Kind.STRING}


def value(plain: Scalar | list[Scalar]) -> AttributeValue:
    """An attribute's value from a plain one."""
    values = plain if isinstance(plain, list) else [plain]
    return AttributeValue(_KINDS[type(values[0])], tuple(values), isinstance(plain, list))


def device(
    driver: str = "gpu.example.com",
    name: str = "gpu-0",
    capacity: str = "80Gi",
    **attributes: Scalar | list[Scalar],
) -> DeviceView:
    """A device with attributes in the domain of its driver, and the capacity `memory`."""
    return DeviceView(
        DeviceKey(driver, "pool", name),
        {f"{driver}/{ident}": value(plain) for ident, plain in attributes.items()},
        {f"{driver}/memory": Quantity.parse(capacity)},
    )


def derive(expression: str, of: DeviceView | None = None, environment: Environment = LISTS) -> object:
    """The plain value that an expression derives, None for an empty list, or the Failure."""
    found = compile_attribute(expression, environment).derive(of or device())
    return found if found is None or isinstance(found, Failure) else found.plain


def match(expression: str, of: DeviceView | None = None, environment: Environment = LISTS) -> bool | Failure:
    """What a selector says."""
    return compile_selector(expression, environment).matches(of or device())
