"""Writing to the API server: every write asks for permission just before it is sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dovetail.api.kinds import Kind
from dovetail.cluster.json_text import SPELLINGS, go_text
from dovetail.cluster.retries import once_accepted
from dovetail.cluster.wire import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Wire
from dovetail.errors import Rejected

FIELD_MANAGER = "dovetail"

_OURS = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Ignore"}
"""Fields that the server does not know are dropped in any case; that it warns of them costs it time."""

Json = Mapping[str, Any]

_UNCHANGEABLE = ("field is immutable", "field cannot be modified once set")


def _is_about_spelling(error: Rejected) -> bool:
    """Whether the API server may have taken other bytes for another value; we change no immutable field."""
    return any(words in str(error) for words in _UNCHANGEABLE)


class Pen:
    """The only thing that writes.

    `permit` is called just before each request is sent, and raises `NotLeading` where this replica may
    not write (any more).
    A write is repeated only after 429; after `Unavailable` nobody knows whether it took place,
    so that the caller reads again.
    `count` is told of every request that is sent.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        permit: Callable[[], None],
        count: Callable[[str, Kind, str], None] = lambda *_: None,
    ) -> None:
        self._wire = wire
        self._permit = permit
        self._count = count

    async def create(self, kind: Kind, namespace: str, body: Json) -> dict[str, Any]:
        """Create an object; `Conflict` where the name is taken."""
        return await self._write("POST", kind, kind.path(namespace), body=body)

    async def replace(
        self, kind: Kind, namespace: str, name: str, body: Json, *, subresource: str = ""
    ) -> dict[str, Any]:
        """Put an object in place of the version that its resourceVersion names; else `Conflict`."""
        path = kind.path(namespace, name, subresource)
        for spell in SPELLINGS:
            try:
                return await self._write("PUT", kind, path, subresource=subresource, body=body, spell=spell)
            except Rejected as error:
                refusal = error
                if not _is_about_spelling(error):
                    raise
        raise refusal

    async def merge(
        self, kind: Kind, namespace: str, name: str, body: Json, *, subresource: str = ""
    ) -> dict[str, Any]:
        """JSON merge patch: lists are replaced as a whole, so send the resourceVersion along."""
        path = kind.path(namespace, name, subresource)
        return await self._write(
            "PATCH", kind, path, subresource=subresource, body=body, content_type=MERGE_PATCH
        )

    async def merge_strategically(
        self, kind: Kind, namespace: str, name: str, body: Json, *, subresource: str = ""
    ) -> dict[str, Any]:
        """Strategic merge patch: keyed lists are merged entry by entry (V67)."""
        path = kind.path(namespace, name, subresource)
        return await self._write(
            "PATCH", kind, path, subresource=subresource, body=body, content_type=STRATEGIC_PATCH
        )

    async def change(
        self, kind: Kind, namespace: str, name: str, operations: Sequence[Json], *, subresource: str = ""
    ) -> dict[str, Any]:
        """JSON patch, applied by the API server to the newest version, whoever writes at the same time.

        `Rejected` where an operation does not apply, as where a `test` fails.
        """
        path = kind.path(namespace, name, subresource)
        return await self._write(
            "PATCH", kind, path, subresource=subresource, body=operations, content_type=JSON_PATCH
        )

    async def apply(
        self, kind: Kind, namespace: str, name: str, body: Json, *, subresource: str = ""
    ) -> dict[str, Any]:
        """Server-side apply, by force, as field manager `dovetail`."""
        return await self._write(
            "PATCH",
            kind,
            kind.path(namespace, name, subresource),
            subresource=subresource,
            body=body,
            content_type=APPLY_PATCH,
            query={"force": "true"},
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str, resource_version: str = ""
    ) -> None:
        """Delete exactly the object with this uid, in this version where one is given."""
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        await self._write("DELETE", kind, kind.path(namespace, name), body=body)

    async def _write(
        self,
        method: str,
        kind: Kind,
        path: str,
        *,
        body: Json | Sequence[Json],
        subresource: str = "",
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        spell: Callable[[object], str] = go_text,
    ) -> dict[str, Any]:
        ours = _OURS if method != "DELETE" else {}

        async def send() -> dict[str, Any]:
            self._permit()
            self._count(method, kind, subresource)
            answer: dict[str, Any] = await self._wire.send(
                method,
                path,
                query={**ours, **(query or {})},
                body=body,
                content_type=content_type,
                spell=spell,
            )
            return answer

        return await once_accepted(send)
