"""A server of a few lines for what an API server never answers, a kubeconfig that names it, a connection."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from dovetail.cluster.connection import connect
from dovetail.cluster.wire import Wire

_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: only
contexts: [{{name: only, context: {{cluster: only, user: only}}}}]
clusters: [{{name: only, cluster: {{server: "{server}"}}}}]
users: [{{name: only, user: {{token: "{token}"}}}}]
"""


def write_kubeconfig(path: Path, server: str, token: str = "any") -> Path:
    """A kubeconfig for one server and one token."""
    path.write_text(_KUBECONFIG.format(server=server, token=token))
    return path


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server on the loopback that gives every question to `answer`; its URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected() -> AsyncIterator[Wire]:
    """A connection to the server that KUBECONFIG names."""
    wire = Wire(await connect(), timeout_seconds=5)
    try:
        yield wire
    finally:
        await wire.close()
