"""What Kopf hands to every handler: the one operation of this process."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Self

from dovetail.services.operation import Operation, make_operation
from dovetail.services.settings import Settings


class Context:
    """Kopf copies its memo for every object; this one is shared by all.

    `ready` is done when decisions can begin, `stop` ends the operator; both may be used from other threads.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.operation: Operation | None = None
        self.ready: Future[None] = Future()
        self.stop: Future[None] = Future()
        self.has_failed = False
        self.end_process: Callable[[], None] = self.request_stop

    def __copy__(self) -> Self:
        return self

    async def begin(self) -> None:
        """Connect and start; raises where the cluster cannot be served, and leaves nothing open then."""
        operation = await make_operation(self.settings, failed=self.fail, ready=self._be_ready)
        try:
            await operation.begin()
        except BaseException:
            # Kopf does not clean up after a start that failed.
            await operation.end()
            raise
        self.operation = operation

    async def end(self) -> None:
        """Stop, whatever was started."""
        # Kopf waits for the flag in a thread, which outlives Kopf when a signal ended it.
        self.request_stop()
        if self.operation is not None:
            await self.operation.end()

    def fail(self) -> None:
        """End the process: another one may do better."""
        self.has_failed = True
        self.end_process()

    def request_stop(self) -> None:
        """Stop soon; harmless when repeated."""
        if not self.stop.done():
            self.stop.set_result(None)

    def _be_ready(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)


def context_in(memo: object) -> Context:
    """The context: the memo itself under `dovetail run`, kept in Kopf's own memo under `kopf run`."""
    if isinstance(memo, Context):
        return memo
    context = getattr(memo, "context", None)
    if not isinstance(context, Context):
        raise TypeError("the operator has not been started")
    return context
