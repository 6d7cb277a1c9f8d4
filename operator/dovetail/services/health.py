"""Whether the operator makes progress, and what keeps it from doing its work; served over HTTP."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from dovetail.errors import DovetailError
from dovetail.services.metrics import Metrics
from dovetail.services.settings import read_address

MIND_PATIENCE_SECONDS = 60.0
"""A decision ends within four seconds, and the first one in a large cluster a few seconds later."""


class CannotListen(DovetailError):
    """The address for health and metrics cannot be had; the message is the sentence for who runs Dovetail."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen at {address} (setting listen): {reason}")
        self.address = address


@dataclass(slots=True)
class Health:
    """What the endpoints answer. Progress counts, not the process: both parts of the work have to show it.

    `beat` is called when the picture was compared; `mind_silence` is asked how long decisions stand still.
    """

    stalled_after_seconds: float
    mind_patience_seconds: float = MIND_PATIENCE_SECONDS
    mind_silence: Callable[[], float] = lambda: 0.0
    complaints: dict[str, str] = field(default_factory=dict)
    """What is wrong, by topic: the operator works as well as it can all the same."""
    ready: bool = False
    last_beat: float = field(default_factory=monotonic)

    def beat(self) -> None:
        """The picture was compared with the cluster."""
        self.last_beat = monotonic()

    @property
    def stalls(self) -> tuple[str, ...]:
        """Which parts of the work stand still, a sentence each; none while the operator is alive."""
        found = []
        unseen, undecided = monotonic() - self.last_beat, self.mind_silence()
        if unseen > self.stalled_after_seconds:
            found.append(f"the cluster was last listed completely {unseen:.0f} seconds ago")
        if undecided > self.mind_patience_seconds:
            found.append(f"decisions stand still: their thread has not moved for {undecided:.0f} seconds")
        return tuple(found)

    def complain(self, topic: str, text: str) -> None:
        """Name something that is wrong; an empty text takes the complaint back."""
        if text:
            self.complaints[topic] = text
        else:
            self.complaints.pop(topic, None)


async def serve_health(address: str, health: Health, metrics: Metrics) -> web.AppRunner | None:
    """Serve /healthz, /readyz and /metrics at host:port until the runner is cleaned up.

    Without an address, nothing is served; raises `CannotListen` where the address cannot be had.
    """
    if not address:
        return None
    host, port = read_address(address)
    application = web.Application()
    application.router.add_get("/healthz", _answer(lambda: _liveness(health)))
    application.router.add_get("/readyz", _answer(lambda: _readiness(health)))
    application.router.add_get("/metrics", _exposition(metrics))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(address, _reason(error)) from error
    return runner


def _reason(error: OSError) -> str:
    """What the system says, without what asyncio adds to it; for a name that is not known, that."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error)).lower()


def _liveness(health: Health) -> tuple[bool, str]:
    stalls = health.stalls
    return not stalls, "\n".join(stalls)


def _readiness(health: Health) -> tuple[bool, str]:
    if not health.ready:
        return False, "the picture of the cluster is not complete yet"
    words = "\n".join(f"{topic}: {text}" for topic, text in sorted(health.complaints.items()))
    return not health.complaints, words


def _answer(ask: Callable[[], tuple[bool, str]]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        is_well, words = ask()
        return web.Response(text="ok\n" if is_well else words + "\n", status=200 if is_well else 503)

    return answer


def _exposition(metrics: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    return answer
