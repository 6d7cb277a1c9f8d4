"""The answers that are no object: failures, as the API server words them in a `Status`."""

from collections.abc import Mapping

from dovetail.embedded.bodies import Body
from dovetail.embedded.kinds import Kind
from dovetail.errors import DovetailError

REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class StatusError(DovetailError):
    """The embedded API server refuses a request: an HTTP status with a `Status` body."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: Body | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = (reason or REASONS.get(code, "Unknown")).strip()
        self.details = details or {}
        self.retry_after_seconds = retry_after_seconds

    @property
    def body(self) -> Body:
        """The `Status` object."""
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = self.retry_after_seconds
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }

    @property
    def headers(self) -> dict[str, str]:
        """`Retry-After`, where the server asks for patience."""
        return {} if self.retry_after_seconds is None else {"Retry-After": str(self.retry_after_seconds)}


def not_found(kind: Kind, name: str) -> StatusError:
    """404: there is no such object."""
    return StatusError(404, f'{kind.resource} "{name}" not found', details=_named(kind, name))


def exists(kind: Kind, name: str) -> StatusError:
    """409: the name is taken."""
    return StatusError(
        409, f'{kind.resource} "{name}" already exists', reason="AlreadyExists", details=_named(kind, name)
    )


def conflict(kind: Kind, name: str, why: str = "") -> StatusError:
    """409: the object changed since the writer read it."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(409, message, details=_named(kind, name))


def invalid(kind: Kind, name: str, causes: list[str]) -> StatusError:
    """422: each cause reads `field: what is wrong`."""
    said = causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]"
    details = _named(kind, name) | {
        "causes": [
            {"field": field, "message": message}
            for field, _, message in (cause.partition(": ") for cause in causes)
        ]
    }
    message = f'{kind.name}{"." + kind.group if kind.group else ""} "{name}" is invalid: {said}'
    return StatusError(422, message, details=details)


def expired(oldest: int, asked: int) -> StatusError:
    """410: the history no longer reaches back that far."""
    return StatusError(410, f"too old resource version: {asked} ({oldest})")


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, message)


def deleted(kind: Kind, name: str, uid: str) -> Body:
    """200: the object is gone."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _named(kind, name) | {"uid": uid},
    }


def _named(kind: Kind, name: str) -> Body:
    return {"name": name, "group": kind.group, "kind": kind.plural}
