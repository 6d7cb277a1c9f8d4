"""Work by key: the most urgent first, several at a time, one at a time per key, failures later again."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from dovetail.core.shares import FRESH, Standing
from dovetail.errors import ClusterError, Conflict, DovetailError, NotLeading, Throttled
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Key
from dovetail.services.waiting import Urgency, Waiting

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.5
CONFLICT_PAUSE_SECONDS = 0.1
"""After a conflict the newer version is on its way already."""

LONGEST_PAUSE_SECONDS = 60.0

TOLD_SECONDS = 600.0
"""A failure like the last one of the same object is news again only after so long."""


class Desk:
    """Serves keys until it is stopped; it works only while it is open.

    `serve` may raise: the key comes back after a pause that doubles with every failure in a row.
    """

    def __init__(
        self,
        name: str,
        *,
        serve: Callable[[Key], Awaitable[None]],
        urgency: Callable[[Key], Urgency],
        workers: int,
        metrics: Metrics,
        patience: Callable[[Key], float] = lambda _: 0.0,
        on_failure: Callable[[Key, DovetailError], Awaitable[None]] | None = None,
        standing: Callable[[str], Standing] = lambda _: FRESH,
    ) -> None:
        self._name = name
        self._serve = serve
        self._metrics = metrics
        self._on_failure = on_failure
        self._slots = asyncio.Semaphore(workers)
        self._open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: dict[Key, float] = {}
        self._told: dict[Key, tuple[type[DovetailError], float]] = {}
        self.queue = Waiting(urgency, patience, standing=standing, workers=workers)

    def open(self, is_open: bool = True) -> None:
        """Begin, or pause: what is under way is finished either way."""
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._pauses.pop(key, None)
        self._told.pop(key, None)
        self.queue.forget(key)

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await self._open.wait()
            await self._slots.acquire()
            key = await self.queue.next()
            if not self._open.is_set():
                # It was shut while we waited: somebody else's turn, or the end.
                self._slots.release()
                self.queue.put_back(key)
                continue
            task = asyncio.create_task(self._work(key), name=f"{self._name} {'/'.join(key)}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Take up nothing new, and give what is under way some time; then give it up."""
        self._open.clear()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, key: Key) -> None:
        structlog.contextvars.bind_contextvars(**{self._name: "/".join(filter(None, key))})
        try:
            await self._serve(key)
            self._pauses.pop(key, None)
        except NotLeading:
            # A Lease that is renewed late is ours again without a turn that would look at everything.
            log.debug("not_leading")
            self.queue.hold(key, self._pause(key))
        except DovetailError as error:
            await self._fail(key, error)
        except Exception as error:
            # A fault of ours with one object must not stop the work on the others.
            log.exception("fault")
            self._metrics.failures.labels(self._name, type(error).__name__).inc()
            self.queue.hold(key, self._pause(key))
        finally:
            self._slots.release()
            self.queue.done(key)

    async def _fail(self, key: Key, error: DovetailError) -> None:
        is_conflict = isinstance(error, Conflict)
        pause = self._pause(key, first=CONFLICT_PAUSE_SECONDS if is_conflict else FIRST_PAUSE_SECONDS)
        if isinstance(error, Throttled):
            pause = max(pause, error.retry_after_seconds)
        tell = (log.info if is_conflict else log.warning) if self._is_news(key, error) else log.debug
        tell("tried_again_later", error=str(error), seconds=pause)
        self._metrics.failures.labels(self._name, type(error).__name__).inc()
        self.queue.hold(key, pause)
        if self._on_failure is not None:
            try:
                await self._on_failure(key, error)
            except (ClusterError, NotLeading) as second:
                log.warning("failure_not_reported", error=str(second))

    def _is_news(self, key: Key, error: DovetailError) -> bool:
        """Whether the object did not fail in the same way a while ago."""
        now = asyncio.get_running_loop().time()
        known, told_at = self._told.get(key, (None, 0.0))
        if known is type(error) and now - told_at < TOLD_SECONDS:
            return False
        self._told[key] = (type(error), now)
        return True

    def _pause(self, key: Key, *, first: float = FIRST_PAUSE_SECONDS) -> float:
        pause = min(self._pauses.get(key, first / 2) * 2, LONGEST_PAUSE_SECONDS)
        self._pauses[key] = pause
        return pause
