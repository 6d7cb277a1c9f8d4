"""How much of a device's capacity a request takes (allocation-rules 2.8, KEP-5075)."""

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.core.published import Capacity, OfferedDevice, Range
from dovetail.core.quantity import LARGEST_INT64, Quantity

Requested = Mapping[str, Quantity]
"""The amounts that a request names, by capacity."""


class NotRepresentable(ValueError):
    """An amount cannot be handled in the arithmetic of its range: no other device would help."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What a request takes of a device, of every capacity that it has, requested or not."""

    amounts: Mapping[str, Quantity]

    @property
    def nano(self) -> dict[str, int]:
        """The amounts in billionths."""
        return {name: amount.nano for name, amount in self.amounts.items()}


def taking_of(device: OfferedDevice, requested: Requested, *, fractional: bool) -> Taking | None:
    """What the request would take; None where the device cannot serve it even when nothing is in use.

    Raises `NotRepresentable`.
    """
    if any(name not in device.capacity for name in requested):
        return None
    amounts = {
        name: _rounded(capacity, requested.get(name), fractional=fractional)
        for name, capacity in device.capacity.items()
    }
    for name, amount in amounts.items():
        if amount.sign < 0:
            raise NotRepresentable(f"capacity {name!r} would be negative")
    allowed = all(
        _is_allowed(device.capacity[name], amount, fractional=fractional)
        and amount <= device.capacity[name].value
        for name, amount in amounts.items()
    )
    return Taking(amounts) if allowed else None


def misfit(device: OfferedDevice, requested: Requested, *, fractional: bool) -> str:
    """Why the device cannot serve the request even when nothing is in use; empty where it can."""
    unknown = sorted(name for name in requested if name not in device.capacity)
    if unknown:
        return f"it has no {unknown[0]}"
    for name, capacity in device.capacity.items():
        try:
            amount = _rounded(capacity, requested.get(name), fractional=fractional)
        except NotRepresentable as error:
            return f"{name}: {error}"
        wanted = requested.get(name, amount)
        most = capacity.range.max if capacity.range is not None else None
        if most is not None and amount > most and not _is_allowed(capacity, amount, fractional=fractional):
            return f"{wanted} of {name} wanted, at most {most} for one claim"
        if amount > capacity.value:
            return f"{wanted} of {name} wanted, {capacity.value} there"
        if not _is_allowed(capacity, amount, fractional=fractional):
            return f"{wanted} is no amount of {name} that it gives"
    return ""


def fits_beside(device: OfferedDevice, taking: Mapping[str, int], *in_use: Mapping[str, int]) -> bool:
    """Whether the amounts (billionths) fit beside those that are in use."""
    return all(
        amount + sum(used.get(name, 0) for used in in_use) <= device.capacity[name].value.nano
        for name, amount in taking.items()
    )


def _rounded(capacity: Capacity, requested: Quantity | None, *, fractional: bool) -> Quantity:
    if requested is None:
        return capacity.value if capacity.default is None else capacity.default
    if capacity.range is not None and capacity.range.min is not None:
        return _in_range(requested, capacity.range, capacity.range.min, fractional=fractional)
    return next((value for value in capacity.valid_values if requested <= value), requested)


def _in_range(requested: Quantity, valid: Range, lowest: Quantity, *, fractional: bool) -> Quantity:
    if requested < lowest:
        return lowest
    if valid.step is None or valid.step.sign <= 0:
        return requested
    if _counts_thousandths(valid, fractional=fractional):
        return _stepped_thousandths(requested, valid.step, lowest)
    if requested.nano > LARGEST_INT64 * 10**9:
        raise NotRepresentable(f"{requested} is beyond 64 bits")
    amount = _step_up(requested.value, valid.step.value, lowest.value)
    if lowest.sign >= 0 and amount > LARGEST_INT64:
        raise NotRepresentable(f"{requested} rounded up to the next step is beyond 64 bits")
    return Quantity.of(amount, valid.step.format)


def _stepped_thousandths(requested: Quantity, step: Quantity, lowest: Quantity) -> Quantity:
    if not _is_thousandths(requested):
        raise NotRepresentable(f"{requested} cannot be expressed in thousandths")
    amount = _step_up(requested.milli_value, step.milli_value, lowest.milli_value)
    if amount > LARGEST_INT64:
        raise NotRepresentable(f"{requested} rounded up to the next step is beyond 64 bits")
    if amount % 1000 == 0:
        return Quantity.of(amount // 1000, step.format)
    return Quantity(amount, -3, step.format)


def _step_up(requested: int, step: int, lowest: int) -> int:
    return lowest + -((lowest - requested) // step) * step


def _counts_thousandths(valid: Range, *, fractional: bool) -> bool:
    """Whether the range is exact in thousandths, so that fractions count (DRAFractionalCapacityRange)."""
    given = [amount for amount in (valid.min, valid.max, valid.step) if amount is not None]
    return (
        fractional
        and all(map(_is_thousandths, given))
        and (valid.step is None or valid.step.milli_value >= 1)
    )


def _is_thousandths(amount: Quantity) -> bool:
    return amount.nano % 10**6 == 0 and abs(amount.nano // 10**6) <= LARGEST_INT64


def _is_allowed(capacity: Capacity, amount: Quantity, *, fractional: bool) -> bool:
    if not capacity.has_policy or amount == capacity.default:
        return True
    if capacity.range is not None:
        return _is_in_range(capacity.range, amount, fractional=fractional)
    return not capacity.valid_values or amount in capacity.valid_values


def _is_in_range(valid: Range, amount: Quantity, *, fractional: bool) -> bool:
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None or valid.step.sign <= 0 or valid.min is None:
        return True
    if _counts_thousandths(valid, fractional=fractional):
        if not _is_thousandths(amount):
            return False
        return (amount.milli_value - valid.min.milli_value) % valid.step.milli_value == 0
    return (amount.value - valid.min.value) % valid.step.value == 0
