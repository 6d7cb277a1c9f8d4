"""What is worth another try is tried a few times, with a pause; everything else is told at once."""

from collections.abc import Awaitable, Callable

import pytest

from dovetail.cluster import retries
from dovetail.cluster.retries import ATTEMPTS, once_accepted, patiently
from dovetail.errors import ClusterError, Conflict, Throttled, Unavailable

Way = Callable[[Callable[[], Awaitable[str]]], Awaitable[str]]

THROTTLED = Throttled("asking", "too many requests", 0.0)
UNAVAILABLE = Unavailable("asking", "no answer")
CONFLICT = Conflict("writing", "it has changed")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_backoff", lambda _: 0.0)


class Server:
    """Gives its failures in turn, then the answer."""

    def __init__(self, *failures: ClusterError) -> None:
        self.failures = list(failures)
        self.asked = 0

    async def answer(self) -> str:
        """One request."""
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


@pytest.mark.parametrize("way", [patiently, once_accepted])
async def test_an_answer_is_asked_for_once(way: Way) -> None:
    """Nothing is repeated that has succeeded."""
    server = Server()

    assert await way(server.answer) == "answer"
    assert server.asked == 1


@pytest.mark.parametrize("failures", range(1, ATTEMPTS))
@pytest.mark.parametrize("way", [patiently, once_accepted])
async def test_a_throttled_request_is_repeated(way: Way, failures: int) -> None:
    """As often as there are attempts, the first included."""
    server = Server(*[THROTTLED] * failures)

    assert await way(server.answer) == "answer"
    assert server.asked == failures + 1


@pytest.mark.parametrize("way", [patiently, once_accepted])
async def test_the_attempts_have_an_end(way: Way) -> None:
    """The last error is told."""
    server = Server(*[THROTTLED] * 100)

    with pytest.raises(Throttled):
        await way(server.answer)
    assert server.asked == ATTEMPTS


async def test_only_what_may_be_repeated_is_tried_after_no_answer() -> None:
    """Nobody knows whether a write took place: it is not sent again."""
    read, write = Server(UNAVAILABLE), Server(UNAVAILABLE)

    assert await patiently(read.answer) == "answer"
    with pytest.raises(Unavailable):
        await once_accepted(write.answer)
    assert (read.asked, write.asked) == (2, 1)


async def test_errors_of_different_kinds_count_together() -> None:
    """A throttled read whose second try breaks off is tried a third time."""
    server = Server(THROTTLED, UNAVAILABLE)

    assert await patiently(server.answer) == "answer"
    assert server.asked == 3


@pytest.mark.parametrize("earlier", [(), (THROTTLED,)])
@pytest.mark.parametrize("way", [patiently, once_accepted])
async def test_what_does_not_pass_is_told_at_once(way: Way, earlier: tuple[ClusterError, ...]) -> None:
    """A conflict is nothing that the same request could mend, first or later."""
    server = Server(*earlier, CONFLICT)

    with pytest.raises(Conflict):
        await way(server.answer)
    assert server.asked == len(earlier) + 1
