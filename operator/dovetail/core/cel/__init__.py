"""CEL as kube-scheduler evaluates it; the only package that knows celpy."""

from dovetail.core.cel.engine import Program, compile_attribute, compile_selector
from dovetail.core.cel.memory import Memory
from dovetail.core.cel.verdicts import Environment, Failure, FailureKind

__all__ = [
    "Environment",
    "Failure",
    "FailureKind",
    "Memory",
    "Program",
    "compile_attribute",
    "compile_selector",
]
