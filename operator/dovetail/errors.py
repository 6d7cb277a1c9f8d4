"""Every exception of Dovetail.

::

    DovetailError
    ├── ObjectInvalid         an object is malformed; the object's owner has to mend it
    ├── ExpressionInvalid     a CEL expression does not compile; retrying cannot help
    ├── ClusterError          the API server answered, or failed to answer
    │   ├── NotFound          404
    │   ├── Conflict          409: somebody wrote first; read again
    │   ├── Rejected          422 and other 4xx: the write itself is wrong
    │   ├── Forbidden         401, 403: a right is missing
    │   ├── Gone              410: the resourceVersion is too old; list again
    │   ├── Throttled         429: wait for `retry_after_seconds`
    │   └── Unavailable       5xx, time-outs, broken connections: try again later
    ├── InputInvalid          a file that a command was given cannot be read or understood
    ├── TooCostly             work was ended because it took too long, or too much memory
    ├── NotLeading            this replica may not write now
    └── SettingInvalid        an administrator has set something that is no value

"Does not fit" is no exception but a value: see `dovetail.core.outcome`.
Each floor may import this module; it imports nothing of Dovetail.
"""


class DovetailError(Exception):
    """The root: catch this to catch everything that Dovetail raises on purpose."""


class ObjectInvalid(DovetailError):
    """An object cannot be understood; the message names the field."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        super().__init__(f"{kind} {name!r} is malformed: {reason}")
        self.kind = kind
        self.name = name
        self.reason = reason


class ExpressionInvalid(DovetailError):
    """A CEL expression does not compile. `line` and `column` count from 1; both are 0 where unknown."""

    def __init__(self, expression: str, reason: str, line: int = 0, column: int = 0) -> None:
        place = f" at line {line}, column {column}" if line else ""
        super().__init__(f"expression does not compile{place}: {reason}")
        self.expression = expression
        self.reason = reason
        self.line = line
        self.column = column


class ClusterError(DovetailError):
    """A request to the API server failed. `status` is the HTTP status, or 0 where there was no answer."""

    def __init__(self, action: str, reason: str, status: int = 0) -> None:
        super().__init__(f"{action} failed: {reason}")
        self.action = action
        self.reason = reason
        self.status = status


class NotFound(ClusterError):
    """The object is not there (404)."""


class Conflict(ClusterError):
    """The object changed since it was read, or exists already (409)."""


class Rejected(ClusterError):
    """The API server refuses the content of the request (400, 422 and other 4xx)."""


class Forbidden(ClusterError):
    """A right is missing (401, 403)."""


class Gone(ClusterError):
    """The resourceVersion is no longer known (410): list again."""


class Throttled(ClusterError):
    """The API server asks for patience (429)."""

    def __init__(self, action: str, reason: str, retry_after_seconds: float) -> None:
        super().__init__(action, reason, 429)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ClusterError):
    """The API server failed or could not be reached (5xx, time-out, connection): the outcome is unknown."""


class InputInvalid(DovetailError):
    """A file that a command was given cannot be read or understood; the message names it."""


class TooCostly(DovetailError):
    """Work took more time or memory than it may, and was ended; the message says which."""


class NotLeading(DovetailError):
    """This replica does not hold the Lease, or not for long enough to finish a write."""


class SettingInvalid(DovetailError):
    """A setting has no valid value; the message names the environment variable."""

    def __init__(self, variable: str, reason: str) -> None:
        super().__init__(f"{variable}: {reason}")
        self.variable = variable
        self.reason = reason
