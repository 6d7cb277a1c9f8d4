"""Whether the operator makes progress, and what keeps it from doing its work; served over HTTP."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from dovetail.services.metrics import Metrics


@dataclass(slots=True)
class Health:
    """What the endpoints answer. `beat` is called by whatever shows that the work goes on."""

    stalled_after_seconds: float
    complaints: dict[str, str] = field(default_factory=dict)
    """What is wrong, by topic: the operator works as well as it can all the same."""
    ready: bool = False
    last_beat: float = field(default_factory=monotonic)

    def beat(self) -> None:
        """The picture was compared with the cluster."""
        self.last_beat = monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the work went on lately."""
        return monotonic() - self.last_beat < self.stalled_after_seconds

    def complain(self, topic: str, text: str) -> None:
        """Name something that is wrong; an empty text takes the complaint back."""
        if text:
            self.complaints[topic] = text
        else:
            self.complaints.pop(topic, None)


async def serve_health(address: str, health: Health, metrics: Metrics) -> web.AppRunner | None:
    """Serve /healthz, /readyz and /metrics at host:port until the runner is cleaned up."""
    if not address:
        return None
    host, _, port = address.rpartition(":")
    application = web.Application()
    application.router.add_get("/healthz", _answer(lambda: (health.is_alive, "no progress")))
    application.router.add_get("/readyz", _answer(lambda: _readiness(health)))
    application.router.add_get("/metrics", _exposition(metrics))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    return runner


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
