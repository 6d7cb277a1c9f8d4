"""What Kopf hands to every handler: the one operation of this process."""

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Self

from dovetail.errors import DovetailError
from dovetail.services.journal import Journal
from dovetail.services.operation import Operation, make_operation
from dovetail.services.settings import Settings


class StoppedAtStart(DovetailError):
    """The operator was told to stop while it was starting."""


class Context:
    """Kopf copies its memo for every object; this one is shared by all.

    `ready` is done when decisions can begin, `stop` ends the operator; both may be used from other threads.
    """

    def __init__(self, settings: Settings, journal: Journal | None = None) -> None:
        self.settings = settings
        self._journal = journal or Journal.open(settings.state_directory)
        self.operation: Operation | None = None
        self.ready: Future[None] = Future()
        self.stop: Future[None] = Future()
        self.has_failed = False
        self.is_stoppable = False
        """Whether Kopf heeds `stop`."""
        self.end_process: Callable[[], None] = self.request_stop

    def __copy__(self) -> Self:
        return self

    async def begin(self) -> None:
        """Connect and start; raises where the cluster cannot be served, and leaves nothing open then.

        Whoever stops the operator meanwhile need not wait for an API server that does not answer.
        """
        starting = asyncio.ensure_future(self._begin())
        stopping = asyncio.wrap_future(self.stop)
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Kopf was told by a signal: it waits for the flag, too.
            self.request_stop()
            raise
        finally:
            if not starting.done():
                starting.cancel()
                await asyncio.wait((starting,))
        if starting.cancelled():
            raise StoppedAtStart("told to stop before it had started")
        await starting

    async def _begin(self) -> None:
        operation = await make_operation(
            self.settings, journal=self._journal, failed=self.fail, ready=self._be_ready
        )
        if self.is_stoppable and threading.current_thread() is threading.main_thread():
            self._heed_signals()
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

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self.stop.done()

    def _heed_signals(self) -> None:
        """Stop at SIGTERM and SIGINT however often they come: Kopf's own handlers fail at the second."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)

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
