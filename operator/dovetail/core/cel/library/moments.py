"""Parts of timestamps and durations."""

from collections.abc import Callable
from typing import Final

from dovetail.core.cel.kinds import DURATION, INT, STRING, TIMESTAMP
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.times import SECOND, Civil, Timestamp, civil, local_seconds

LIBRARY: Final = Library("calendar")

_PARTS: Final[tuple[tuple[str, str, Callable[[Civil], int]], ...]] = (
    ("getFullYear", "timestamp_to_year", lambda at: at.year),
    ("getMonth", "timestamp_to_month", lambda at: at.month - 1),
    ("getDayOfYear", "timestamp_to_day_of_year", lambda at: at.day_of_year),
    ("getDayOfMonth", "timestamp_to_day_of_month", lambda at: at.day - 1),
    ("getDate", "timestamp_to_day_of_month_1_based", lambda at: at.day),
    ("getDayOfWeek", "timestamp_to_day_of_week", lambda at: at.weekday),
    ("getHours", "timestamp_to_hours", lambda at: at.hour),
    ("getMinutes", "timestamp_to_minutes", lambda at: at.minute),
    ("getSeconds", "timestamp_to_seconds", lambda at: at.second),
)

_UNITS: Final = (
    ("getHours", "duration_to_hours", 3600 * SECOND),
    ("getMinutes", "duration_to_minutes", 60 * SECOND),
    ("getSeconds", "duration_to_seconds", SECOND),
)


def _enter(name: str, overload: str, part: Callable[[Civil], int]) -> None:
    def of(moment: Timestamp, zone: str = "UTC") -> int:
        return part(civil(local_seconds(moment, zone)))

    LIBRARY.method(name, overload, (TIMESTAMP,), INT, of)
    LIBRARY.method(name, f"{overload}_with_tz", (TIMESTAMP, STRING), INT, of)


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    local_seconds(moment, zone)
    return moment.nanos // 1_000_000


for _name, _overload, _part in _PARTS:
    _enter(_name, _overload, _part)
LIBRARY.method("getMilliseconds", "timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds)
LIBRARY.method(
    "getMilliseconds", "timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, _milliseconds
)
for _name, _overload, _unit in _UNITS:
    LIBRARY.method(_name, _overload, (DURATION,), INT, lambda span, unit=_unit: int(span.in_units(unit)))
LIBRARY.method(
    "getMilliseconds",
    "duration_to_milliseconds",
    (DURATION,),
    INT,
    lambda span: abs(span.nanos) // 1_000_000 * (1 if span.nanos >= 0 else -1),
)
