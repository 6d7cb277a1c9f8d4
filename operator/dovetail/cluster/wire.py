"""One request to the API server: JSON in, JSON out, and every failure as one of Dovetail's errors."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.exceptions import ApiException

from dovetail.cluster.connection import renew
from dovetail.cluster.json_text import go_text, read_json
from dovetail.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Rejected,
    Throttled,
    Unavailable,
)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

DEFAULT_RETRY_AFTER_SECONDS = 1.0

RENEWAL_PAUSE_SECONDS = 5.0
"""Credentials that are refused are read again at most this often."""

_SERVER_ERROR = 500
_OTHER_OBJECT = re.compile(r"metadata\.uid: Invalid value: .*: field is immutable")
_BY_STATUS: Mapping[int, type[ClusterError]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Gone,
}


class Wire:
    """A connection to the API server. Every request has a time-out; nothing is tried twice here."""

    def __init__(self, client: ApiClient, *, timeout_seconds: float) -> None:
        self._client = client
        self.timeout_seconds = timeout_seconds
        self._renewal = asyncio.Lock()
        self._renewed_at = float("-inf")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        spell: Callable[[object], str] = go_text,
    ) -> Any:
        """Send one request and return the parsed answer.

        `spell` writes the body as text.
        Raises a subclass of `ClusterError`.
        `Unavailable` leaves open whether a write took place.
        """
        text = None if body is None else spell(body)
        answer = await self._exchange(
            method, path, query=query, text=text, content_type=content_type, timeout_seconds=timeout_seconds
        )
        try:
            return read_json(answer)
        except ValueError as error:
            raise Unavailable(f"{method} {path}", "the answer is no JSON") from error

    async def read_text(self, path: str, *, timeout_seconds: float | None = None) -> str:
        """Ask for any text; errors as in `send`."""
        return (await self._exchange("GET", path, timeout_seconds=timeout_seconds)).decode(errors="replace")

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        text: str | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
    ) -> bytes:
        limit = aiohttp.ClientTimeout(total=timeout_seconds or self.timeout_seconds)
        target = f"{path}?{urlencode(query)}" if query else path
        asked_at = monotonic()
        response, answer = await self._ask(method, target, text, limit, content_type)
        if response.status == HTTPStatus.UNAUTHORIZED and await self._renew(asked_at):
            # Nothing has happened yet, so that a write may be sent again as well.
            response, answer = await self._ask(method, target, text, limit, content_type)
        _refuse_failure(f"{method} {path}", response, answer)
        return answer

    async def _ask(
        self, method: str, target: str, text: str | None, limit: aiohttp.ClientTimeout, content_type: str
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        with _failures_of(f"{method} {target.partition('?')[0]}"):
            async with await self._request(method, target, text, limit, content_type) as response:
                return response, await response.read()

    async def _renew(self, asked_at: float) -> bool:
        """Read the credentials again: tokens expire. False where that was in vain, or done a moment ago."""
        async with self._renewal:
            if self._renewed_at > asked_at:
                return True
            if monotonic() - self._renewed_at < RENEWAL_PAUSE_SECONDS:
                return False
            self._renewed_at = monotonic()
            try:
                await renew(self._client)
            except Unavailable:
                return False
            return True

    async def stream(
        self, path: str, *, query: Mapping[str, str], silence_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """Ask for an answer without end, and hand it on piece by piece as it arrives; errors as in `send`.

        The first piece is empty, and comes when the server has agreed to answer.
        Nothing for `silence_seconds` is `Unavailable`.
        """
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=self.timeout_seconds, sock_read=silence_seconds
        )
        with _failures_of(f"GET {path}"):
            asked_at = monotonic()
            async with await self._request("GET", f"{path}?{urlencode(query)}", None, limit) as response:
                if response.status == HTTPStatus.UNAUTHORIZED:
                    # Whoever asks again is known then.
                    await self._renew(asked_at)
                if response.status >= HTTPStatus.BAD_REQUEST:
                    _refuse_failure(f"GET {path}", response, await response.read())
                yield b""
                async for chunk in response.content.iter_any():
                    yield chunk

    async def _request(
        self, method: str, path: str, text: str | None, limit: aiohttp.ClientTimeout, content_type: str = JSON
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """What the client's own `request` does, save that it would spell the body in its own way."""
        headers = {"Accept": JSON, "Content-Type": content_type, "User-Agent": "dovetail"}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"])
        rest = self._client.rest_client
        options: dict[str, Any] = {"headers": headers, "timeout": limit}
        if text is not None:
            options["data"] = text.encode()
        if rest.proxy:
            options |= {"proxy": rest.proxy, "proxy_headers": rest.proxy_headers}
        if rest.server_hostname:
            options["server_hostname"] = rest.server_hostname
        url = str(self._client.configuration.host).rstrip("/") + path
        sent: AbstractAsyncContextManager[aiohttp.ClientResponse] = rest.pool_manager.request(
            method, url, **options
        )
        return sent


@contextmanager
def _failures_of(action: str) -> Iterator[None]:
    """What goes wrong below HTTP, as one of Dovetail's errors."""
    try:
        yield
    except TimeoutError as error:
        raise Unavailable(action, "no answer in time") from error
    except (aiohttp.ClientError, OSError, ApiException) as error:
        raise Unavailable(action, str(error) or type(error).__name__) from error


def _refuse_failure(action: str, response: aiohttp.ClientResponse, answer: bytes) -> None:
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise failure(action, response.status, _message(answer), response.headers.get("Retry-After"))


def failure(action: str, status: int, reason: str, retry_after: str | None = None) -> ClusterError:
    """The error that an answer stands for; the only place that knows HTTP statuses."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(action, reason, _seconds(retry_after))
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and "requires resource=" in reason:
        # The granular rights on a claim's status are refused as field errors (A5).
        return Forbidden(action, reason, status)
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and _OTHER_OBJECT.search(reason):
        # A patch names the uid of the object that it is meant for; another one took its name meanwhile.
        return Conflict(action, reason, status)
    if status in _BY_STATUS:
        return _BY_STATUS[status](action, reason, status)
    kind = Unavailable if status >= _SERVER_ERROR else Rejected
    return kind(action, reason, status)


def _message(answer: bytes) -> str:
    try:
        told = read_json(answer)
    except ValueError:
        told = None
    message = told.get("message") if isinstance(told, dict) else None
    return message if isinstance(message, str) else answer.decode(errors="replace")[:200]


def _seconds(retry_after: str | None) -> float:
    try:
        return max(float(retry_after), 0.0) if retry_after else DEFAULT_RETRY_AFTER_SECONDS
    except ValueError:
        return DEFAULT_RETRY_AFTER_SECONDS
