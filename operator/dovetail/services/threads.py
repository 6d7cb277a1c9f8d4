"""A thread that does one thing after another, and never keeps the process from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class WorkThread:
    """What `submit` is given is done in order.

    Unlike a ThreadPoolExecutor's, the thread is not waited for when the process ends.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do this after all that was submitted before."""
        if self._is_closed:
            raise RuntimeError(f"the thread {self._name} is closed")
        future: Future[T] = Future()
        self._queue.put((future, work))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def close(self) -> None:
        """End after what is being done; what waits is cancelled."""
        self._is_closed = True
        self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            if self._is_closed:
                future.cancel()
            elif future.set_running_or_notify_cancel():
                _do(future, work)
            # Nothing of it is kept until there is something else to do.
            del item, future, work


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001 - whoever waits gets it
        future.set_exception(error)
    else:
        future.set_result(answer)
