"""Reading from the API server: complete lists and single objects, tried again where that is right."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dovetail.api.kinds import Kind
from dovetail.cluster.retries import patiently
from dovetail.cluster.watch import Event, watch
from dovetail.cluster.wire import Wire
from dovetail.errors import Gone, NotFound

PAGE = 500
"""Objects per page of a list."""

LIST_TIMEOUT_SECONDS = 60.0
_LIST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind, each with `apiVersion` and `kind`, as of one resourceVersion."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


class Reader:
    """What may be asked of the API server. Reads are tried again after 429, 5xx and broken connections."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def find(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """One object, or None where there is none."""
        try:
            body: dict[str, Any] = await patiently(lambda: self._wire.send("GET", kind.path(namespace, name)))
        except NotFound:
            return None
        return body

    async def list_all(self, kind: Kind) -> Listing:
        """Every object of a kind; begins anew when the pages outlive the server's history."""
        for _ in range(_LIST_ATTEMPTS - 1):
            try:
                return await self._list_once(kind)
            except Gone:
                continue
        return await self._list_once(kind)

    async def version_of(self, kind: Kind) -> str:
        """The version that a complete list of a kind would be of."""
        page = await patiently(partial(self._list_page, kind, {"limit": "1"}))
        return str(page["metadata"].get("resourceVersion", ""))

    def watch(self, kind: Kind, since: str) -> AsyncGenerator[Sequence[Event], None]:
        """What happens to all objects of a kind after a version; see `dovetail.cluster.watch`."""
        return watch(self._wire, kind, since)

    async def _list_once(self, kind: Kind) -> Listing:
        items: list[dict[str, Any]] = []
        version = ""
        async for page in self._pages(kind):
            version = page["metadata"].get("resourceVersion", "")
            items += page.get("items") or []
        for item in items:
            item.setdefault("apiVersion", kind.api_version)
            item.setdefault("kind", kind.name)
        return Listing(tuple(items), version)

    async def _pages(self, kind: Kind) -> AsyncIterator[dict[str, Any]]:
        query = {"limit": str(PAGE)}
        while True:
            page = await patiently(partial(self._list_page, kind, query))
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query = {"limit": str(PAGE), "continue": token}

    async def _list_page(self, kind: Kind, query: Mapping[str, str]) -> dict[str, Any]:
        page: dict[str, Any] = await self._wire.send(
            "GET", kind.path(), query=query, timeout_seconds=LIST_TIMEOUT_SECONDS
        )
        return page

    async def is_served(self, kind: Kind) -> bool:
        """Whether the API server knows the kind."""
        try:
            answer = await patiently(lambda: self._wire.send("GET", kind.root))
        except NotFound:
            return False
        return any(resource.get("name") == kind.plural for resource in answer.get("resources", ()))

    async def read_json(self, path: str) -> Any:
        """Any other JSON document, such as `/version`."""
        return await patiently(lambda: self._wire.send("GET", path))

    async def read_text(self, path: str) -> str:
        """Any other text, such as `/metrics`; asked once."""
        return await self._wire.read_text(path, timeout_seconds=LIST_TIMEOUT_SECONDS)
