"""When a request is worth another try, and after which pause."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from dovetail.errors import ClusterError, Throttled, Unavailable

T = TypeVar("T")

ATTEMPTS = 5
LONGEST_PAUSE_SECONDS = 8.0

_backoff = wait_random_exponential(multiplier=0.2, max=LONGEST_PAUSE_SECONDS)


def _pause(state: RetryCallState) -> float:
    """What the server asked for, but at most `LONGEST_PAUSE_SECONDS`; else exponential with jitter."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, Throttled):
        return min(error.retry_after_seconds, LONGEST_PAUSE_SECONDS)
    return _backoff(state)


async def patiently(request: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer, or raise the last error: for requests that may be repeated."""
    return await _until_answered(request, (Throttled, Unavailable))


async def once_accepted(request: Callable[[], Awaitable[T]]) -> T:
    """Send until the server takes it up: only a 429 is repeated, since nothing has happened then."""
    return await _until_answered(request, (Throttled,))


async def _until_answered(request: Callable[[], Awaitable[T]], passing: tuple[type[ClusterError], ...]) -> T:
    try:
        # Hardly any request is repeated, and the machinery for it costs as much as a decision.
        return await request()
    except passing as error:
        first: ClusterError | None = error

    async def attempt() -> T:
        nonlocal first
        if first is not None:
            failed, first = first, None
            raise failed
        return await request()

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(passing), stop=stop_after_attempt(ATTEMPTS), wait=_pause, reraise=True
    )
    return await retrying(attempt)
