"""URLs (Kubernetes' url library), read as Go reads them."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, Final

from typing_extensions import override

from dovetail.core.cel import equality
from dovetail.core.cel.kinds import BOOL, STRING, URL, list_of, map_of
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library, represent
from dovetail.core.cel.values import IDENTICAL, CelMap, EvalError

LIBRARY: Final = Library("URLs")

MAX_QUERY: Final = 10_000
"""Parameters beyond which Go reads none at all."""

_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH: Final = _UNRESERVED | frozenset(b"$&+,/:;=@")
_HOST: Final = _UNRESERVED | frozenset(b"!\"$&'()*+,:;<=>[]")
_USER: Final = _UNRESERVED | frozenset(b"$&+,;=")
_FRAGMENT: Final = _UNRESERVED | frozenset(b"!$&()*+,/:;=?@")

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})?")
_ENCODED_PATH: Final = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@\[\]%/]*", re.ASCII)
_USERINFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Url:
    """A URL in its parts; escapes are resolved but for `raw_path`."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: bytes = b""
    raw_path: str = ""
    query: str = ""
    has_question_mark: bool = False
    fragment: str = ""
    omits_host: bool = False

    @property
    def length(self) -> int:
        """Characters, about."""
        return len(self.host) + len(self.path) + len(self.raw_path) + len(self.query) + len(self.opaque)

    @property
    def escaped_path(self) -> str:
        """The path as it was written where that is proper, else escaped anew."""
        if _ENCODED_PATH.fullmatch(self.raw_path) and self.raw_path:
            return self.raw_path
        return "*" if self.path == b"*" else _escape(self.path, _PATH)

    @property
    def text(self) -> str:
        """The whole URL, put together again; URLs are equal when these are."""
        text = f"{self.scheme}:" if self.scheme else ""
        text += self.opaque or self._hierarchy(bool(text))
        text += f"?{self.query}" if self.query or self.has_question_mark else ""
        return text + (f"#{self.fragment}" if self.fragment else "")

    def _hierarchy(self, has_scheme: bool) -> str:
        text = ""
        names_host = has_scheme or self.host or self.user is not None
        if names_host and not (self.omits_host and not self.host and self.user is None):
            text = "//" if self.host or self.path or self.user is not None else ""
            text += f"{self.user}@" if self.user is not None else ""
            text += _escape(self.host.encode(), _HOST)
        path = self.escaped_path
        if path and not path.startswith("/") and self.host:
            path = "/" + path
        return text + path

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.text == other.text

    @override
    def __hash__(self) -> int:
        return hash(self.text)


class MalformedUrl(EvalError):
    """A text is no URL; the message is Go's, which a named format hands on as a value."""


def _escape(octets: bytes, allowed: frozenset[int]) -> str:
    return "".join(chr(octet) if octet in allowed else f"%{octet:02X}" for octet in octets)


def _bad_escape(octets: bytes, match: re.Match[bytes]) -> MalformedUrl:
    shown = octets[match.start() : match.start() + 3].decode(errors="replace")
    return MalformedUrl(f'invalid URL escape "{shown}"')


def _unescape(text: str) -> bytes:
    octets = text.encode()
    for match in _ESCAPE.finditer(octets):
        if match[1] is None:
            raise _bad_escape(octets, match)
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), octets)


def parse_request(text: str) -> Url:
    """An absolute URL or absolute path; EvalError otherwise. A fragment is not split off."""
    return _parse(text, via_request=True)


def parse(text: str) -> Url:
    """Any URL, with its fragment; EvalError otherwise."""
    body, _, fragment = text.partition("#")
    url = _parse(body, via_request=False)
    if not fragment:
        return url
    _unescape(fragment)
    shown = (
        fragment
        if _ENCODED_PATH.fullmatch(fragment.replace("?", ""))
        else _escape(_unescape(fragment), _FRAGMENT)
    )
    return _replaced(url, fragment=shown)


def _replaced(url: Url, **changes: Any) -> Url:
    fields = {name: getattr(url, name) for name in Url.__slots__}
    return Url(**(fields | changes))


def _parse(text: str, *, via_request: bool) -> Url:
    if _CONTROL.search(text):
        raise MalformedUrl("net/url: invalid control character in URL")
    if text == "" and via_request:
        raise MalformedUrl("empty url")
    if text == "*":
        return Url(path=b"*")
    scheme, rest = _scheme(text)
    has_mark = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, has_question_mark=has_mark)
        if via_request or ":" in rest.partition("/")[0]:
            raise MalformedUrl("invalid URI for request")
    user, host, omits_host = None, "", False
    if rest.startswith("//") and (scheme or (not via_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        rest = slash + path
    elif scheme and rest.startswith("/"):
        omits_host = True
    octets = _unescape(rest)
    raw = "" if _escape(octets, _PATH) == rest else rest
    return Url(scheme, "", user, host, octets, raw, query, has_mark, "", omits_host)


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    if not match[1]:
        raise MalformedUrl("missing protocol scheme")
    return match[1].lower(), text[match.end() :]


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    userinfo, at, host = authority.rpartition("@")
    parsed = _host(scheme, host)
    if not at:
        return None, parsed
    if not _USERINFO.fullmatch(userinfo):
        raise MalformedUrl("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    return _escape(_unescape(name), _USER) + colon + _escape(_unescape(password), _USER), parsed


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise MalformedUrl("invalid IP-literal")
    if bracket == 0:
        return _bracketed(host)
    colon = host.find(":")
    if colon >= 0:
        if host.rfind(":") != colon and scheme not in ("http", "https"):
            colon = host.rfind(":")
        if not _PORT.fullmatch(host[colon:]):
            raise MalformedUrl(f'invalid port "{host[colon:]}" after host')
    return _unescape_host(host)


def _bracketed(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise MalformedUrl("missing ']' in host")
    if not _PORT.fullmatch(host[end + 1 :]):
        raise MalformedUrl(f'invalid port "{host[end + 1 :]}" after host')
    name, zone = host[1:end], ""
    if "%25" in name:
        name, mark, zone_text = name.partition("%25")
        zone = _unescape(mark + zone_text).decode(errors="replace")
    address = _unescape_host(name) + zone
    try:
        IPv6Address(address)
    except ValueError as error:
        raise MalformedUrl(f"invalid host: {error}") from error
    return f"[{address}]{host[end + 1 :]}"


def _unescape_host(host: str) -> str:
    """Only bytes beyond ASCII may be escaped in a host."""
    octets = host.encode()
    for octet in octets:
        if octet < 0x80 and octet not in _HOST and octet != 0x25:
            raise MalformedUrl(f'invalid character "{chr(octet)}" in host name')
    for match in _ESCAPE.finditer(octets):
        if match[1] is None or (int(match[1], 16) < 0x80 and match[1] != b"25"):
            raise _bad_escape(octets, match)
    return _unescape(host).decode(errors="replace")


def _host_and_port(url: Url) -> tuple[str, str]:
    host, port = url.host, ""
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port


def _query(meter: Meter, url: Url) -> CelMap:
    meter.build(len(url.query), 100)
    meter.spend(len(url.query) >> 2)
    found: dict[str, list[str]] = {}
    parts = url.query.split("&")
    for part in parts if len(parts) <= MAX_QUERY else ():
        if part == "" or ";" in part:
            continue
        key, _, value = part.partition("=")
        try:
            decoded = [_unescape(side.replace("+", " ")).decode(errors="replace") for side in (key, value)]
        except EvalError:
            continue
        found.setdefault(decoded[0], []).append(decoded[1])
    return CelMap(found.items())


def _escaped_path(meter: Meter, url: Url) -> str:
    meter.spend(1 + (url.length >> 3))
    return url.escaped_path


def _url(meter: Meter, text: str) -> Url:
    meter.read(text)
    parse_request(text)
    return parse(text)


def _is_url(meter: Meter, text: str) -> bool:
    meter.read(text)
    try:
        parse_request(text)
    except EvalError:
        return False
    return True


represent(URL.name, Url)
equality.picky(Url)
IDENTICAL.add(Url)
equality.weighty(Url, lambda url: 1 + (url.length >> 2))
LIBRARY.add("url", "string_to_url", (STRING,), URL, _url, spends=True)
LIBRARY.add("isURL", "is_url_string", (STRING,), BOOL, _is_url, spends=True)
LIBRARY.method("getScheme", "url_get_scheme", (URL,), STRING, lambda url: url.scheme)
LIBRARY.method("getHost", "url_get_host", (URL,), STRING, lambda url: url.host)
LIBRARY.method("getHostname", "url_get_hostname", (URL,), STRING, lambda url: _host_and_port(url)[0])
LIBRARY.method("getPort", "url_get_port", (URL,), STRING, lambda url: _host_and_port(url)[1])
LIBRARY.method("getEscapedPath", "url_get_escaped_path", (URL,), STRING, _escaped_path, spends=True)
LIBRARY.method("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query, spends=True)
