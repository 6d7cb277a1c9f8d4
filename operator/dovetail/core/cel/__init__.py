"""CEL as kube-scheduler evaluates it; the only package that knows celpy."""

from dovetail.core.cel.engine import Program, compile_attribute, compile_selector, shown_cost
from dovetail.core.cel.hints import hint
from dovetail.core.cel.memory import Matching, Memory
from dovetail.core.cel.meter import LIMIT as COST_LIMIT
from dovetail.core.cel.verdicts import Environment, Failure, FailureKind
from dovetail.core.cel.view import prepared

__all__ = [
    "COST_LIMIT",
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
    "shown_cost",
]
