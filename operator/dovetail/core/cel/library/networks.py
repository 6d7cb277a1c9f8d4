"""IP addresses and networks (Kubernetes' ip and cidr libraries)."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from dovetail.core.cel.kinds import BOOL, CIDR, INT, IP, STRING
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.values import Cidr, EvalError, Ip, shown

IPS: Final = Library("IP addresses")
CIDRS: Final = Library("networks")

Address = IPv4Address | IPv6Address

_BITS: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_BROADCAST: Final = IPv4Address("255.255.255.255")
_MAPPED: Final = IPv6Address("::ffff:0:0")


def _address(text: str) -> Address:
    """An address without zone that is no IPv4 address in the clothes of IPv6; EvalError otherwise."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise EvalError(f"{shown(text)} is no IP address") from error
    if isinstance(address, IPv6Address) and ("%" in text or int(address) >> 32 == int(_MAPPED) >> 32):
        raise EvalError(f"{shown(text)} is not allowed: it has a zone, or maps IPv4")
    return address


def _ip(meter: Meter, text: str) -> Ip:
    meter.read(text)
    return Ip(_address(text))


def _is_ip(meter: Meter, text: str) -> bool:
    meter.read(text)
    try:
        _address(text)
    except EvalError:
        return False
    return True


def _is_canonical(meter: Meter, text: str) -> bool:
    meter.read(text)
    return str(_address(text)) == text


def _is_link_local_multicast(ip: Ip) -> bool:
    if ip.address.version == 4:
        return int(ip.address) >> 8 == 0xE00000
    return int(ip.address) >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(ip: Ip) -> bool:
    number = int(ip.address)
    return number >> 16 == 0xA9FE if ip.address.version == 4 else number >> 118 == 0xFE80 >> 6


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address == _BROADCAST
    return not special and not _is_link_local_unicast(ip)


def _cidr(meter: Meter, text: str) -> Cidr:
    meter.read(text)
    address_text, slash, bits = text.rpartition("/")
    if not slash or not _BITS.fullmatch(bits):
        raise EvalError(f"{shown(text)} is no network")
    address = _address(address_text)
    if int(bits) > address.max_prefixlen:
        raise EvalError(f"{shown(text)} is no network: its prefix is too long")
    return Cidr(address, int(bits))


def _is_cidr(meter: Meter, text: str) -> bool:
    try:
        _cidr(meter, text)
    except EvalError:
        return False
    return True


def _prefix(address: Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


def _contains_ip(network: Cidr, ip: Ip) -> bool:
    if network.address.version != ip.address.version:
        return False
    return _prefix(network.address, network.bits) == _prefix(ip.address, network.bits)


def _contains_cidr(network: Cidr, other: Cidr) -> bool:
    return network.bits <= other.bits and _contains_ip(network, Ip(other.address))


def _masked(network: Cidr) -> Cidr:
    hidden = network.address.max_prefixlen - network.bits
    kind = type(network.address)
    return Cidr(kind(int(network.address) >> hidden << hidden), network.bits)


def _ips() -> None:
    add, method = IPS.add, IPS.method
    add("ip", "string_to_ip", (STRING,), IP, _ip, spends=True)
    add("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, _is_canonical, spends=True)
    add("isIP", "is_ip", (STRING,), BOOL, _is_ip, spends=True)
    add("string", "ip_to_string", (IP,), STRING, lambda ip: str(ip.address))
    method("family", "ip_family", (IP,), INT, lambda ip: ip.address.version)
    method("isUnspecified", "ip_is_unspecified", (IP,), BOOL, lambda ip: ip.address.is_unspecified)
    method("isLoopback", "ip_is_loopback", (IP,), BOOL, lambda ip: ip.address.is_loopback)
    method("isLinkLocalMulticast", "ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast)
    method("isLinkLocalUnicast", "ip_is_link_local_unicast", (IP,), BOOL, _is_link_local_unicast)
    method("isGlobalUnicast", "ip_is_global_unicast", (IP,), BOOL, _is_global_unicast)


def _cidrs() -> None:
    add, method = CIDRS.add, CIDRS.method
    add("cidr", "string_to_cidr", (STRING,), CIDR, _cidr, spends=True)
    add("isCIDR", "is_cidr", (STRING,), BOOL, _is_cidr, spends=True)
    add("string", "cidr_to_string", (CIDR,), STRING, lambda network: f"{network.address}/{network.bits}")
    method(
        "containsIP",
        "cidr_contains_ip_string",
        (CIDR, STRING),
        BOOL,
        lambda meter, a, b: _contains_ip(a, _ip(meter, b)),
        spends=True,
    )
    method("containsIP", "cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip)
    method(
        "containsCIDR",
        "cidr_contains_cidr_string",
        (CIDR, STRING),
        BOOL,
        lambda meter, a, b: _contains_cidr(a, _cidr(meter, b)),
        spends=True,
    )
    method("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr)
    method("ip", "cidr_ip", (CIDR,), IP, lambda network: Ip(network.address))
    method("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda network: network.bits)
    method("masked", "cidr_masked", (CIDR,), CIDR, _masked)


_ips()
_cidrs()
