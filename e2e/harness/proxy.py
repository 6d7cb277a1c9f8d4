"""A reverse proxy that stands between a client and the API server and disturbs on demand."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import aiohttp
from aiohttp import web

from e2e.harness.processes import free_port

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "host"}
_REASONS = {403: "Forbidden", 409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that came by; `status` is what the client got, 0 for no answer."""

    method: str
    path: str
    status: int
    watch: bool


@dataclass(eq=False)
class Fault:
    """A disturbance of the next `times` requests that match; `hits` counts those that it struck."""

    method: str
    path: re.Pattern[str]
    times: float
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "injected by the proxy"
    delay_seconds: float = 0
    lose_answer: bool = False
    hits: int = 0

    def strikes(self, request: web.Request) -> bool:
        """Whether this request is disturbed; counts it if so."""
        fits = self.method in {"*", request.method} and self.path.search(request.path_qs)
        if not fits or self.hits >= self.times:
            return False
        self.hits += 1
        return True

    def body(self) -> str:
        """The Status that Kubernetes would send with this code."""
        return json.dumps(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "message": self.message,
                "reason": _REASONS.get(self.status, ""),
                "code": self.status,
            }
        )


class FaultProxy:
    """Plain HTTP on the loopback in front of an API server; the client's token goes through.

    Paths are regular expressions, searched in path and query; a method of `*` is any.
    """

    def __init__(self, server: str, ca: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.seen: list[Seen] = []
        self._server = server
        self._ssl = ssl.create_default_context(cadata=ca)
        self._faults: list[Fault] = []
        self._talking = asyncio.Event()
        self._talking.set()
        self._stopping = asyncio.Event()
        self._watches: dict[web.StreamResponse, asyncio.Task[None] | None] = {}
        self._struck = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> Self:
        """Listen."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._ssl), timeout=timeout, auto_decompress=False
        )
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        self._stopping.set()
        self.talk()
        self.close_watches()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def answer(
        self,
        status: int,
        *,
        method: str = "*",
        path: str = "",
        times: float = 1,
        headers: Mapping[str, str] | None = None,
        message: str = "injected by the proxy",
    ) -> Fault:
        """Answer matching requests with an error that the server never sees."""
        fault = Fault(method, re.compile(path), times, status=status, headers=headers or {}, message=message)
        return self._add(fault)

    def delay(self, seconds: float, *, method: str = "*", path: str = "", times: float = 1) -> Fault:
        """Hold matching requests for a while, then send them on."""
        return self._add(Fault(method, re.compile(path), times, delay_seconds=seconds))

    def lose_answers(self, *, method: str = "*", path: str = "", times: float = 1) -> Fault:
        """Let matching requests reach the server and succeed, and never answer: the client must time out."""
        return self._add(Fault(method, re.compile(path), times, lose_answer=True))

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Disturb no more."""
        self._faults.clear()
        self.talk()

    def silence(self) -> None:
        """Stop forwarding what watches say, connections staying open; requests still work."""
        self._talking.clear()

    def talk(self) -> None:
        """Forward watches again, with what was held back."""
        self._talking.set()

    def close_watches(self) -> None:
        """Break the connection of every watch that is open."""
        for task in list(self._watches.values()):
            if task is not None:
                task.cancel()

    async def struck(self, fault: Fault, *, times: int = 1, within: float = 30) -> None:
        """Wait until a fault has disturbed that many requests."""
        await self._until(lambda: fault.hits >= times, within)

    async def passed(self, predicate: Callable[[Seen], bool], *, after: int = 0, within: float = 30) -> Seen:
        """Wait until a request, from the `after`th on, satisfies the predicate and is answered; return it."""
        await self._until(lambda: any(map(predicate, self.seen[after:])), within)
        return next(filter(predicate, self.seen[after:]))

    async def _until(self, predicate: Callable[[], bool], within: float) -> None:
        async with asyncio.timeout(within), self._struck:
            await self._struck.wait_for(predicate)

    async def _note(self, request: web.Request, status: int, *, watch: bool = False) -> None:
        self.seen.append(Seen(request.method, request.path_qs, status, watch))
        async with self._struck:
            self._struck.notify_all()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        for fault in self._faults:
            if not fault.strikes(request):
                continue
            if fault.status:
                await self._note(request, fault.status)
                return web.Response(
                    status=fault.status,
                    text=fault.body(),
                    content_type="application/json",
                    headers=fault.headers,
                )
            if fault.lose_answer:
                await self._forward_silently(request, body)
                return web.Response(status=502)
            await asyncio.sleep(fault.delay_seconds)
            break
        return await self._forward(request, body)

    async def _forward_silently(self, request: web.Request, body: bytes) -> None:
        """Let the server do it, and leave the client waiting until it gives up."""
        async with self._call(request, body) as answer:
            await answer.read()
        await self._note(request, 0)
        await self._stopping.wait()

    def _call(self, request: web.Request, body: bytes) -> aiohttp.client._RequestContextManager:
        if self._session is None:
            raise RuntimeError("the proxy is not started")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = f"{self._server}{request.path_qs}"
        return self._session.request(request.method, url, headers=headers, data=body or None)

    async def _forward(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            async with self._call(request, body) as answer:
                kept = {
                    name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP
                }
                if encoding := answer.headers.get("Content-Encoding"):
                    kept["Content-Encoding"] = encoding
                if request.query.get("watch") in {"true", "1", "True"} and answer.status == 200:
                    return await self._forward_watch(request, answer, kept)
                content = await answer.read()
                await self._note(request, answer.status)
                return web.Response(status=answer.status, body=content, headers=kept)
        except aiohttp.ClientConnectionError:
            await self._note(request, 502)
            # The client sees what it would see without a proxy: a connection that breaks.
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    async def _forward_watch(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        await self._note(request, answer.status, watch=True)
        pump = asyncio.create_task(self._pump(answer.content.iter_any(), response))
        self._watches[response] = pump
        try:
            await pump
        except asyncio.CancelledError:
            if request.transport is not None:
                request.transport.abort()
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            pump.cancel()
            del self._watches[response]
        return response

    async def _pump(self, parts: AsyncIterator[bytes], response: web.StreamResponse) -> None:
        async for part in parts:
            await self._talking.wait()
            await response.write(part)
        await self._talking.wait()
        await response.write_eof()
