"""What there is too little of for devices that each could be taken alone, in words."""

from dovetail.core.quantity import Quantity
from dovetail.core.refusals import CapacityLack, CounterLack, GroupLack, Lack, ResultLack
from dovetail.core.wording import names

_KIBI = 1024
_NANO = 10**9


def phrase_of(lack: Lack) -> str:
    """What is lacking, with its numbers."""
    match lack:
        case CounterLack(pool, counter_set, counter, left, needed):
            return (
                f"counter {counter} of set {counter_set} in pool {pool.driver}/{pool.pool} has "
                f"{_amount(left)} left, and the devices need {_amount(needed)} together"
            )
        case CapacityLack(device, capacity, left, needed):
            return (
                f"device {device.driver}/{device.pool}/{device.device} has {_amount(left)} of {capacity} "
                f"left, and {_amount(needed)} are wanted together"
            )
        case GroupLack(counter_sets):
            return (
                "the devices that would do belong to compatibility groups that cannot use "
                f"counter set {names(counter_sets)} together"
            )
        case ResultLack(most, needed):
            return f"the alternatives that would do need {needed} devices, and a claim may have {most}"


def _amount(nano: int) -> str:
    """Billionths as people write them."""
    whole, rest = divmod(nano, _NANO)
    if rest:
        return str(Quantity(nano, -9))
    return str(Quantity.of(whole, "BinarySI" if whole and whole % _KIBI == 0 else "DecimalSI"))
