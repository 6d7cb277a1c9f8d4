"""Kubernetes' rules for names: each function gives what is wrong, or nothing."""

import re
from typing import Final

from dovetail.core.validation.faults import size

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_LABEL)
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_KEY: Final = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253
LONGEST_IDENTIFIER: Final = 32
LONGEST_DRIVER: Final = 63


def label(value: str) -> str:
    """A DNS label, as requests, devices and counters are named."""
    if not _DNS_LABEL.fullmatch(value):
        return f"{value!r} is no DNS label: lower-case letters, digits and, between them, '-'"
    return _longer(value, LONGEST_LABEL)


def subdomain(value: str) -> str:
    """DNS labels with dots between them, as most objects are named."""
    if not _SUBDOMAIN.fullmatch(value):
        return f"{value!r} is no DNS name: lower-case letters, digits and, between them, '-' and '.'"
    return _longer(value, LONGEST_SUBDOMAIN)


def driver(value: str) -> str:
    """The name of a driver: a DNS name, upper-case letters allowed."""
    return subdomain(value.lower()) or _longer(value, LONGEST_DRIVER)


def pool(value: str) -> str:
    """DNS names with slashes between them."""
    for part in value.split("/"):
        if reason := subdomain(part):
            return reason
    return _longer(value, LONGEST_SUBDOMAIN)


def key(value: str) -> str:
    """The key of a label or taint: a name, with a domain before it or without."""
    domain, slash, name = value.rpartition("/")
    if slash and (reason := subdomain(domain)):
        return f"{value!r}: {reason}"
    if not _KEY.fullmatch(name):
        return f"{value!r} is no label key: letters, digits and, between them, '-', '_' and '.'"
    return _longer(name, LONGEST_LABEL)


def label_value(value: str) -> str:
    """The value of a label or taint; it may be empty."""
    if value and not _KEY.fullmatch(value):
        return f"{value!r} is no label value: letters, digits and, between them, '-', '_' and '.'"
    return _longer(value, LONGEST_LABEL)


def qualified(value: str) -> str:
    """The name of an attribute or capacity: an identifier, with a domain before it or without.

    Kubernetes takes anything with two slashes or more, by oversight.
    """
    parts = value.split("/")
    if len(parts) > 2:
        return ""
    if len(parts) == 2 and (reason := driver(parts[0]) if parts[0] else "the domain is empty"):
        return reason
    return identifier(parts[-1])


def fully_qualified(value: str) -> str:
    """The name of an attribute with its domain, in lower case."""
    if "/" not in value:
        return f"{value!r} has no domain: DOMAIN/NAME is expected"
    parts = value.split("/")
    if len(parts) == 2 and parts[0] and (reason := subdomain(parts[0])):
        return reason
    return qualified(value)


def identifier(value: str) -> str:
    """An identifier as in C."""
    if not _IDENTIFIER.fullmatch(value):
        return f"{value!r} is no identifier: letters, digits and '_', no digit first"
    return _longer(value, LONGEST_IDENTIFIER)


def extended_resource(value: str) -> str:
    """The name of an extended resource: a label key with a domain that is not Kubernetes' own."""
    if "/" not in value:
        return f"{value!r} has no domain: DOMAIN/NAME is expected"
    if "kubernetes.io/" in value:
        return f"{value!r} lies in a domain of Kubernetes"
    if value.startswith("requests."):
        return f"{value!r} starts with 'requests.', which is for quotas"
    return key(f"requests.{value}")


def _longer(value: str, most: int) -> str:
    return f"{value!r} is longer than {most} characters" if size(value) > most else ""
