"""Authorization checks: known to the checker, though no expression of DRA gets hold of an authorizer."""

from typing import Any, Final

from dovetail.core.cel.kinds import BOOL, STRING, Type
from dovetail.core.cel.signatures import Library, represent
from dovetail.core.cel.values import NoSuchOverload

LIBRARY: Final = Library("authorization")


def _struct(name: str) -> Type:
    represent(f"kubernetes.authorization.{name}")
    return Type("struct", f"kubernetes.authorization.{name}")


_AUTHORIZER = _struct("Authorizer")
_PATH = _struct("PathCheck")
_GROUP = _struct("GroupCheck")
_RESOURCE = _struct("ResourceCheck")
_DECISION = _struct("Decision")


def _unreachable(*_: Any) -> Any:
    raise NoSuchOverload("no such overload: there is no authorizer")


_FORMS: Final[tuple[tuple[str, str, tuple[Type, ...], Type], ...]] = (
    ("path", "authorizer_path", (_AUTHORIZER, STRING), _PATH),
    ("group", "authorizer_group", (_AUTHORIZER, STRING), _GROUP),
    ("serviceAccount", "authorizer_serviceaccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER),
    ("resource", "groupcheck_resource", (_GROUP, STRING), _RESOURCE),
    ("subresource", "resourcecheck_subresource", (_RESOURCE, STRING), _RESOURCE),
    ("namespace", "resourcecheck_namespace", (_RESOURCE, STRING), _RESOURCE),
    ("name", "resourcecheck_name", (_RESOURCE, STRING), _RESOURCE),
    ("check", "pathcheck_check", (_PATH, STRING), _DECISION),
    ("check", "resourcecheck_check", (_RESOURCE, STRING), _DECISION),
    ("errored", "decision_errored", (_DECISION,), BOOL),
    ("error", "decision_error", (_DECISION,), STRING),
    ("allowed", "decision_allowed", (_DECISION,), BOOL),
    ("reason", "decision_reason", (_DECISION,), STRING),
    ("fieldSelector", "authorizer_fieldselector", (_RESOURCE, STRING), _RESOURCE),
    ("labelSelector", "authorizer_labelselector", (_RESOURCE, STRING), _RESOURCE),
)

for _name, _overload, _params, _result in _FORMS:
    LIBRARY.method(_name, _overload, _params, _result, _unreachable)
