"""CEL as kube-scheduler evaluates it; the only package that knows celpy."""

from dovetail.core.cel.engine import Program, compile_attribute, compile_selector
from dovetail.core.cel.hints import hint
from dovetail.core.cel.memory import Matching, Memory
from dovetail.core.cel.verdicts import Environment, Failure, FailureKind
from dovetail.core.cel.view import prepared

__all__ = [
    "Environment",
    "Failure",
    "FailureKind",
    "Matching",
    "Memory",
    "Program",
    "compile_attribute",
    "compile_selector",
    "hint",
    "prepared",
]
