"""Durations and timestamps to the nanosecond, read and printed as Go does."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from dovetail.core.cel.values import LARGEST_INT, SMALLEST_INT, EvalError, shown

SECOND: Final = 1_000_000_000

FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_OFFSET: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_MOST_DIGITS: Final = 20

LONGEST_ZONE: Final = 100
"""Characters that the name of a time zone may have; the longest that there is has 32."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, within 64 bits."""

    nanos: int

    @classmethod
    def checked(cls, nanos: int) -> "Duration":
        """A duration; EvalError where it does not fit 64 bits."""
        if not SMALLEST_INT <= nanos <= LARGEST_INT:
            raise EvalError("integer overflow")
        return cls(nanos)

    @property
    def seconds(self) -> float:
        """The span in seconds, as Go's float arithmetic has it."""
        return self.in_units(SECOND)

    def in_units(self, unit: int) -> float:
        """The span in units of so many nanoseconds."""
        sign = -1 if self.nanos < 0 else 1
        whole, rest = divmod(abs(self.nanos), unit)
        return float(sign * whole) + (sign * rest) / float(unit)


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment: seconds since 1970, nanoseconds, and the offset from UTC that it was written with."""

    seconds: int
    nanos: int = 0
    offset: int = field(default=0, compare=False)

    @property
    def instant(self) -> tuple[int, int]:
        """What decides the order of moments."""
        return self.seconds, self.nanos

    @property
    def total_nanos(self) -> int:
        """Nanoseconds since 1970."""
        return self.seconds * SECOND + self.nanos

    def shifted(self, duration: Duration) -> "Timestamp":
        """The moment so much later."""
        seconds, nanos = divmod(self.total_nanos + duration.nanos, SECOND)
        return checked_timestamp(seconds, nanos, self.offset)


def checked_timestamp(seconds: int, nanos: int = 0, offset: int = 0) -> Timestamp:
    """A timestamp within the years 1 to 9999, else EvalError."""
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise EvalError("timestamp overflow")
    return Timestamp(seconds, nanos, offset)


def parse_duration(text: str) -> Duration:
    """Read `1h30m`, `-1.5s` and the like; EvalError otherwise."""
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(unsigned):
        match = _DURATION_PART.match(unsigned, position)
        if match is None:
            raise _bad_duration(text)
        total += _duration_part(text, *match.groups(default=""))
        position = match.end()
    limit = 1 << 63 if text.startswith("-") else LARGEST_INT
    if position == 0 or total > limit:
        raise _bad_duration(text)
    return Duration(-total if text.startswith("-") else total)


def _duration_part(text: str, whole: str, dot: str, fraction: str, unit: str) -> int:
    scale = _UNITS.get(unit)
    if scale is None or not (whole or fraction) or len(whole.lstrip("0")) > _MOST_DIGITS:
        raise _bad_duration(text)
    amount = int(whole or "0") * scale
    if amount > 1 << 63:
        raise _bad_duration(text)
    if dot and fraction:
        digits, power = _leading_fraction(fraction)
        amount += int(float(digits) * (float(scale) / power))
    return amount


def _leading_fraction(fraction: str) -> tuple[int, float]:
    """The digits that Go keeps of a fraction, and the power of ten that they stand over."""
    digits, power = 0, 1.0
    for digit in fraction:
        grown = digits * 10 + int(digit)
        if digits > LARGEST_INT // 10 or grown > 1 << 63:
            break
        digits, power = grown, power * 10
    return digits, power


def _bad_duration(text: str) -> EvalError:
    return EvalError(f"{shown(text)} is no duration")


def parse_timestamp(text: str) -> Timestamp:
    """Read a moment in the form of RFC 3339; EvalError otherwise."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise EvalError(f"{shown(text)} is no timestamp")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, hours, minutes = match.groups(default="")[6:]
    if (
        not _is_time((year, month, day), (hour, minute, second))
        or int(hours or 0) > 24
        or int(minutes or 0) > 59
    ):
        raise EvalError(f"{shown(text)} is no timestamp")
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * 60
    offset = -offset if sign == "-" else offset
    seconds = _days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return checked_timestamp(seconds, int(fraction[:9].ljust(9, "0")), offset)


def _is_time(date: tuple[int, int, int], clock: tuple[int, int, int]) -> bool:
    return is_day(*date) and clock[0] < 24 and clock[1] < 60 and clock[2] < 60


def is_day(year: int, month: int, day: int) -> bool:
    """Whether the calendar has this day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= lengths[month - 1]


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@dataclass(frozen=True, slots=True)
class Civil:
    """A moment as a calendar and a clock show it."""

    year: int
    month: int
    day: int
    weekday: int
    day_of_year: int
    hour: int
    minute: int
    second: int


def civil(seconds: int) -> Civil:
    """The calendar day and the time of day so many seconds after 1970 began."""
    days, clock = divmod(seconds, 86_400)
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_march_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_march_year + 2) // 153
    day = day_of_march_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return Civil(
        year,
        month,
        day,
        (days + 4) % 7,
        days - _days(year, 1, 1),
        clock // 3600,
        clock // 60 % 60,
        clock % 60,
    )


def format_timestamp(moment: Timestamp) -> str:
    """The form of RFC 3339, fraction without trailing zeros."""
    at = civil(moment.seconds + moment.offset)
    fraction = f".{moment.nanos:09d}".rstrip("0") if moment.nanos else ""
    zone = "Z"
    if moment.offset:
        minutes = abs(moment.offset) // 60
        zone = f"{'-' if moment.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    date = f"{at.year:04d}-{at.month:02d}-{at.day:02d}"
    return f"{date}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}{fraction}{zone}"


def format_duration(duration: Duration) -> str:
    """Seconds with as many decimals as needed, and an `s`."""
    text = format(Decimal(repr(duration.seconds)), "f")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}s"


def local_seconds(moment: Timestamp, zone: str) -> int:
    """Seconds since 1970 on the clocks of a time zone (`Europe/Berlin`, `+02:00`); EvalError if unknown."""
    if len(zone) > LONGEST_ZONE:
        raise EvalError(f"{shown(zone)} is no time zone")
    if ":" not in zone:
        return moment.seconds + _zone_offset(moment.seconds, zone)
    hours, minutes = zone.split(":", 1)
    if not (_OFFSET.fullmatch(hours) and _OFFSET.fullmatch(minutes)):
        raise EvalError(f"{shown(zone)} is no time zone")
    shift = int(hours) * 60 - int(minutes) if zone.startswith("-") else int(hours) * 60 + int(minutes)
    return moment.seconds + shift * 60


def _zone_offset(seconds: int, zone: str) -> int:
    if zone in ("", "UTC", "Local"):
        return 0
    day = 86_400
    inside = min(max(seconds, FIRST_SECOND + 2 * day), LAST_SECOND - 2 * day)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=inside)
    offset = moment.astimezone(_zone(zone)).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    if name.startswith(("/", "\\")) or ".." in name:
        raise EvalError(f"{shown(name)} is no time zone")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise EvalError(f"{shown(name)} is no time zone") from error
