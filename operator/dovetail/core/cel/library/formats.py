"""Named formats (Kubernetes' format library): what a string must look like to be a label, a UUID, a date.

The texts of what is wrong are values that an expression can read, so they are those of the API server.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dovetail.core.cel import equality
from dovetail.core.cel.kinds import FORMAT, STRING, list_of, optional_of
from dovetail.core.cel.library.formatting import quote
from dovetail.core.cel.library.urls import parse_request
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library, represent
from dovetail.core.cel.times import is_day
from dovetail.core.cel.values import NONE, UNHASHABLE, EvalError, Optional

LIBRARY: Final = Library("named formats")

Check = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format; equal to another by name. `pattern_size` goes into the cost of a check."""

    name: str
    check: Check = field(compare=False)
    pattern_size: int = field(compare=False)


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"

_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII
)
_CLOCK: Final = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-',"
    " start with an alphabetic character, and end with an alphanumeric character"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)


def _unmatched(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _label(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _fits(_LABEL, text):
        dotted = _fits(_SUBDOMAIN, text)
        problems.append(
            "must not contain dots" if dotted else _unmatched(_LABEL_RULE, _LABEL, "my-name", "123-abc")
        )
    return problems


def _subdomain(text: str) -> list[str]:
    problems = _too_long(text, 253)
    return (
        problems
        if _fits(_SUBDOMAIN, text)
        else [*problems, _unmatched(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")]
    )


def _label_1035(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if _fits(_LABEL_1035, text):
        return problems
    return [*problems, _unmatched(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123")]


def _prefix(check: Check) -> Check:
    """A name that something will be appended to may end with a dash."""

    def masked(text: str) -> list[str]:
        return check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return masked


def _qualified_name(text: str) -> list[str]:
    wrong = _unmatched(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {wrong} {hint}"]
    problems = []
    if slash:
        found = _subdomain(prefix) if prefix else ["must be non-empty"]
        problems = [f"prefix part {problem}" for problem in found]
    size = _too_long(name, 63) if name else ["must be non-empty"]
    problems += [f"name part {problem}" for problem in size]
    return problems if _fits(_KEY, name) else [*problems, f"name part {wrong}"]


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if _fits(_VALUE, text):
        return problems
    return [*problems, _unmatched(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345")]


def _uri(text: str) -> list[str]:
    try:
        parse_request(text)
    except EvalError as error:
        return [f"parse {quote(text)}: {error}"]
    return []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    return match is not None and is_day(int(match[1]), int(match[2]), int(match[3]))


def _is_moment(text: str) -> bool:
    date, _, rest = text.lower().partition("t")
    clock = _CLOCK.fullmatch(rest.partition("t")[0])
    if len(text) < 4 or clock is None or not _is_date(date):
        return False
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def _says(problem: str, holds: Callable[[str], bool]) -> Check:
    return lambda text: [] if holds(text) else [problem]


FORMATS: Final[dict[str, NamedFormat]] = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat(
        "uuid", _says("does not match the UUID format", lambda text: bool(_UUID.fullmatch(text))), 70
    ),
    "byte": NamedFormat("byte", _says("invalid base64", lambda text: bool(_BASE64.fullmatch(text))), 84),
    "date": NamedFormat("date", _says("invalid date", _is_date), 71),
    "datetime": NamedFormat("datetime", _says("invalid datetime", _is_moment), 71),
}


def _validate(meter: Meter, wanted: NamedFormat, text: str) -> Optional:
    meter.read(text)
    problems = wanted.check(text)
    return Optional(problems) if problems else NONE


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _constant(name: str) -> None:
    LIBRARY.add(f"format.{name}", f"format.{name}", (), FORMAT, lambda: FORMATS[name])


represent(FORMAT.name, NamedFormat)
equality.picky(NamedFormat)
UNHASHABLE.add(NamedFormat)
for _name in FORMATS:
    _constant(_name)
LIBRARY.add("format.named", "format-named", (STRING,), optional_of(FORMAT), _named)
LIBRARY.method(
    "validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate, spends=True
)
