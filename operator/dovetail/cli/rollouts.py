"""How many pods a Deployment makes at once while its template differs from that of pods which are there."""

from typing import NamedTuple

from dovetail.cli.workload_parts import Body, FieldWrong, mapping, number

_PERCENT = 100


class Rollout(NamedTuple):
    """New pods that are made now, and those that are made only as old pods end."""

    now: int
    later: int


def rollout(deployment: Body, wanted: int, new: int, old: int) -> Rollout:
    """What the controller makes where it has so many pods of the present template and of older ones."""
    missing = max(0, wanted - new)
    if not old:
        return Rollout(missing, 0)
    room = 0 if _recreates(deployment) else wanted + _surge(deployment, wanted) - new - old
    now = max(0, min(missing, room))
    return Rollout(now, missing - now)


def _recreates(deployment: Body) -> bool:
    return mapping(deployment, "spec", "strategy").get("type") == "Recreate"


def _surge(deployment: Body, wanted: int) -> int:
    """`maxSurge`, a number or a percentage that is rounded up; a quarter where nothing is said."""
    path = ("spec", "strategy", "rollingUpdate", "maxSurge")
    value = mapping(deployment, *path[:-1]).get(path[-1], "25%")
    if not isinstance(value, str):
        return number(deployment, *path, default=0)
    digits = value.removesuffix("%")
    if digits == value or not digits.isascii() or not digits.isdecimal() or len(digits) > len("2147483647"):
        raise FieldWrong(path, "a whole number or a percentage is expected")
    return -(-wanted * int(digits) // _PERCENT)
