"""What the API server refuses of a capacity's request policy (KEP-5075)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dovetail.core.features import Features
from dovetail.core.quantity import LARGEST_INT64, Quantity
from dovetail.core.validation.faults import Fault, Faults, missing, repeated, too_many

Body = Mapping[str, Any]

MOST_VALUES: Final = 10
_NANO: Final = 10**9


def request_policy(found: Body, capacity: Quantity, at: str, features: Features) -> Faults:
    """Which amounts of a capacity may be requested, and what is taken without a request."""
    values, valid_range = found.get("validValues", []), found.get("validRange")
    default = Quantity.parse(found["default"]) if "default" in found else None
    if values and valid_range is not None:
        yield Fault(at, "validValues and validRange exclude each other")
    elif default is None and (values or valid_range is not None):
        yield missing(f"{at}.default")
    elif default is not None and values:
        yield from _values([Quantity.parse(value) for value in values], default, capacity, at, features)
    elif default is not None and valid_range is not None:
        limits = {name: Quantity.parse(value) for name, value in valid_range.items()}
        yield from _range(limits, default, capacity, f"{at}.validRange", features)


def _values(
    values: list[Quantity], default: Quantity, capacity: Quantity, policy: str, features: Features
) -> Faults:
    at = f"{policy}.validValues"
    for index in range(1, len(values)):
        if values[index] < values[index - 1]:
            yield Fault(f"{at}[{index}]", "the values have to ascend")
    if len(values) > MOST_VALUES:
        yield too_many(at, len(values), MOST_VALUES)
    else:
        seen: set[object] = set()
        for index, value in enumerate(values):
            if value > capacity:
                yield Fault(f"{at}[{index}]", f"{value} is more than the capacity, {capacity}")
            key = value.nano if features.fractional_capacity_range else value.value
            if key in seen:
                yield repeated(f"{at}[{index}]", str(value))
            seen.add(key)
    if default not in values[: MOST_VALUES if len(values) <= MOST_VALUES else 0]:
        yield Fault(at, f"the default, {default}, is not among them")


def _range(
    limits: Mapping[str, Quantity], default: Quantity, capacity: Quantity, at: str, features: Features
) -> Faults:
    least = limits.get("min")
    if least is None:
        yield missing(f"{at}.min")
        return
    yield from _bounds(least, limits.get("max"), default, capacity, at)
    all_four = {"default": default, **limits}
    in_milli = features.fractional_capacity_range and any(each.nano % _NANO for each in all_four.values())
    unsafe: list[Fault] = []
    if in_milli:
        unsafe = list(_too_fine(all_four, at))
        yield from unsafe
        if unsafe:
            return
    step = limits.get("step")
    if step is None:
        return
    if step.sign <= 0:
        yield Fault(f"{at}.step", "it is not greater than zero")
        return
    if least + step > capacity:
        yield Fault(f"{at}.step", f"the first step, {least + step}, is more than the capacity, {capacity}")
    if not in_milli:
        unsafe = list(_out_of_range(all_four, at))
        yield from unsafe
    if not unsafe:
        for value in filter(None, (default, limits.get("max"))):
            if not _is_step(value, least, step, in_milli=in_milli):
                yield Fault(f"{at}.step", f"{value} is no multiple of {step} from {least}")


def _bounds(least: Quantity, most: Quantity | None, default: Quantity, capacity: Quantity, at: str) -> Faults:
    if least > capacity:
        yield Fault(f"{at}.min", f"{least} is more than the capacity, {capacity}")
    if default < least:
        yield Fault(f"{at}.default", f"the default, {default}, is less than the least, {least}")
    if most is None:
        return
    if least > most:
        yield Fault(f"{at}.max", f"the least, {least}, is more than the most, {most}")
    if most > capacity:
        yield Fault(f"{at}.max", f"{most} is more than the capacity, {capacity}")
    if default > most:
        yield Fault(f"{at}.default", f"the default, {default}, is more than the most, {most}")


def _too_fine(amounts: Mapping[str, Quantity], at: str) -> Iterator[Fault]:
    for name, amount in amounts.items():
        if amount.nano % (_NANO // 1000) or abs(amount.nano // (_NANO // 1000)) > LARGEST_INT64:
            yield Fault(f"{at}.{name}", f"{amount} is no whole number of thousandths that fits 64 bits")


def _out_of_range(amounts: Mapping[str, Quantity], at: str) -> Iterator[Fault]:
    for name, amount in amounts.items():
        if amount.sign < 0:
            yield Fault(f"{at}.{name}", f"{amount} is negative")
        elif amount > Quantity.of(LARGEST_INT64):
            yield Fault(f"{at}.{name}", f"{amount} is more than {LARGEST_INT64}")


def _is_step(value: Quantity, least: Quantity, step: Quantity, *, in_milli: bool) -> bool:
    if in_milli:
        return (value.milli_value - least.milli_value) % step.milli_value == 0
    return (value.value - least.value) % step.value == 0
