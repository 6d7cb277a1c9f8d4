"""When a request is worth another try, and after which pause."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from dovetail.errors import Throttled, Unavailable

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
    retrying = AsyncRetrying(
        retry=retry_if_exception_type((Throttled, Unavailable)),
        stop=stop_after_attempt(ATTEMPTS),
        wait=_pause,
        reraise=True,
    )
    return await retrying(_asked, request)


async def once_accepted(request: Callable[[], Awaitable[T]]) -> T:
    """Send until the server takes it up: only a 429 is repeated, since nothing has happened then."""
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(Throttled), stop=stop_after_attempt(ATTEMPTS), wait=_pause, reraise=True
    )
    return await retrying(_asked, request)


async def _asked(request: Callable[[], Awaitable[T]]) -> T:
    # tenacity awaits only what it recognises as a coroutine function, which a lambda is not.
    return await request()
