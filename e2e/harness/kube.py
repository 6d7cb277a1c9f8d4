"""A small client for the API server: plain JSON objects in and out, waits that follow watches."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from e2e.harness.errors import ApiError, NotSeen
from e2e.harness.kinds import HOME_OF, Resource

Object = dict[str, Any]
"""A Kubernetes object as JSON."""

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """A consistent list, and the resourceVersion that it was read at."""

    items: tuple[Object, ...]
    resource_version: str


class Kube:
    """A client with one identity; use it as an async context manager or call `close`.

    Kinds are named as in manifests (`"ResourceClaim"`); one of a group that `HOME_OF` does not know
    is named with it (`"apps/v1/Deployment"`).
    Every refusal is an `ApiError`; nothing is retried, except that waits survive closed and expired watches.
    """

    def __init__(self, server: str, token: str, ca: str | None = None) -> None:
        self.server = server
        self.token = token
        self._ssl = ssl.create_default_context(cadata=ca) if ca else None
        self._session: aiohttp.ClientSession | None = None
        self._resources: dict[str, dict[str, Resource]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """One call of the API; the answer's JSON, or its text where it is not JSON."""
        data = None if body is None else json.dumps(body, separators=(",", ":"))
        async with self._call(method, path, data=data, params=params, content_type=content_type) as response:
            text = await response.text()
            is_json = response.content_type == "application/json"
            answer = json.loads(text) if is_json and text else text
            if response.status >= 400:
                raise ApiError(method, path, response.status, answer)
            return answer

    def _call(
        self,
        method: str,
        path: str,
        *,
        data: str | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout: float | None = 60,
    ) -> Any:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._ssl or True)
            self._session = aiohttp.ClientSession(connector=connector)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "Content-Type": content_type,
        }
        limit = aiohttp.ClientTimeout(total=timeout)
        url = f"{self.server}{path}"
        return self._session.request(method, url, data=data, params=params, headers=headers, timeout=limit)

    async def resource(self, kind: str) -> Resource:
        """How the kind is addressed, asked of the server once per group."""
        api_version, _, bare = kind.rpartition("/")
        api_version = api_version or HOME_OF[kind]
        if bare not in self._resources.get(api_version, {}):
            root = "/api" if "/" not in api_version else "/apis"
            listing = await self.request("GET", f"{root}/{api_version}")
            self._resources[api_version] = {
                entry["kind"]: Resource(api_version, entry["name"], entry["namespaced"])
                for entry in listing["resources"]
                if "/" not in entry["name"]
            }
        return self._resources[api_version][bare]

    async def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """One object."""
        resource = await self.resource(kind)
        answer: Object = await self.request("GET", resource.path(namespace, name))
        return answer

    async def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """One object, or None where there is none."""
        try:
            return await self.get(kind, name, namespace)
        except ApiError as refusal:
            if refusal.status == 404:
                return None
            raise

    async def listing(self, kind: str, namespace: str | None = None, **selectors: str) -> Listing:
        """All objects of a kind, in one namespace or in all; `labelSelector=…`, `fieldSelector=…`."""
        resource = await self.resource(kind)
        answer = await self.request("GET", resource.path(namespace), params=selectors)
        return Listing(tuple(answer["items"]), answer["metadata"]["resourceVersion"])

    async def list(self, kind: str, namespace: str | None = None, **selectors: str) -> tuple[Object, ...]:
        """The items of `listing`."""
        return (await self.listing(kind, namespace, **selectors)).items

    async def create(
        self, manifest: Object, namespace: str | None = None, subresource: str | None = None
    ) -> Object:
        """Create the object of a manifest; with a subresource (`binding`, `token`) POST to that."""
        resource = await self.resource(_kind_of(manifest))
        place = namespace or manifest["metadata"].get("namespace")
        name = manifest["metadata"].get("name") if subresource else None
        answer: Object = await self.request("POST", resource.path(place, name, subresource), body=manifest)
        return answer

    async def replace(self, manifest: Object, subresource: str | None = None) -> Object:
        """PUT an object as it is, with the resourceVersion that it carries."""
        resource = await self.resource(_kind_of(manifest))
        meta = manifest["metadata"]
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        answer: Object = await self.request("PUT", path, body=manifest)
        return answer

    async def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        how: str = "merge",
        subresource: str | None = None,
        **params: str,
    ) -> Object:
        """PATCH an object; `how` is one of `merge`, `strategic`, `json` and `apply`."""
        resource = await self.resource(kind)
        path = resource.path(namespace, name, subresource)
        answer: Object = await self.request(
            "PATCH", path, body=patch, params=params, content_type=PATCHES[how]
        )
        return answer

    async def apply(self, manifest: Object, namespace: str | None = None) -> Object:
        """Server-side apply, with force, of an object with its own apiVersion and kind."""
        meta = manifest["metadata"]
        params = {"fieldManager": "e2e", "force": "true"}
        place = namespace or meta.get("namespace")
        return await self.patch(_kind_of(manifest), meta["name"], manifest, place, how="apply", **params)

    async def apply_all(self, manifests: Sequence[Object], namespace: str | None = None) -> None:
        """Apply manifests one after another, namespaces and definitions before what needs them."""
        first = ("Namespace", "CustomResourceDefinition")
        for manifest in sorted(manifests, key=lambda manifest: manifest["kind"] not in first):
            await self.apply(manifest, namespace)
            if manifest["kind"] == "CustomResourceDefinition":
                await self._served(manifest)

    async def _served(self, definition: Object) -> None:
        """Wait until objects of a definition can be listed, which is a moment after its condition."""
        await self.wait_for("CustomResourceDefinition", definition["metadata"]["name"], established)
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        async with asyncio.timeout(10):
            while True:
                try:
                    await self.request("GET", path)
                except ApiError as refusal:
                    if refusal.status not in {404, 429}:
                        raise
                    await asyncio.sleep(0.05)
                else:
                    return

    async def delete(
        self, kind: str, name: str, namespace: str | None = None, *, grace: int | None = None
    ) -> None:
        """Delete an object; nothing happens where there is none."""
        resource = await self.resource(kind)
        params = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        try:
            await self.request("DELETE", resource.path(namespace, name), params=params)
        except ApiError as refusal:
            if refusal.status != 404:
                raise

    async def delete_all(self, kind: str, namespace: str | None = None, **selectors: str) -> None:
        """Delete all objects of a kind, without waiting; a namespaced kind needs its namespace."""
        resource = await self.resource(kind)
        await self.request("DELETE", resource.path(namespace), params={"gracePeriodSeconds": "0"} | selectors)

    async def watch(
        self, kind: str, namespace: str | None = None, *, since: str, **selectors: str
    ) -> AsyncIterator[tuple[str, Object]]:
        """Events after a resourceVersion, until the server closes the watch; an ERROR event is raised."""
        resource = await self.resource(kind)
        params = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "false"} | selectors
        path = resource.path(namespace)
        async with self._call("GET", path, params=params, timeout=None) as response:
            if response.status >= 400:
                raise ApiError("WATCH", path, response.status, await response.text())
            async for line in _lines(response.content):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError("WATCH", path, event["object"].get("code", 500), event["object"])
                yield event["type"], event["object"]

    async def states(
        self, kind: str, namespace: str | None = None, **selectors: str
    ) -> AsyncIterator[tuple[Object, ...]]:
        """All objects now, and again after every change, by list and watch; without end."""
        while True:
            try:
                listing = await self.listing(kind, namespace, **selectors)
                known = {_key(item): item for item in listing.items}
                yield tuple(known.values())
                async for event, item in self.watch(
                    kind, namespace, since=listing.resource_version, **selectors
                ):
                    if event == "DELETED":
                        known.pop(_key(item), None)
                    else:
                        known[_key(item)] = item
                    yield tuple(known.values())
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                # The server is being restarted: the test that does so waits for it.
                await asyncio.sleep(0.1)
            except ApiError as refusal:
                if refusal.status not in {410, 429, 500, 503}:
                    raise
                await asyncio.sleep(0.1)

    async def wait_all(
        self,
        kind: str,
        predicate: Callable[[tuple[Object, ...]], bool],
        namespace: str | None = None,
        *,
        within: float = 30,
        what: str = "",
        **selectors: str,
    ) -> tuple[Object, ...]:
        """Wait until the set of all objects of a kind satisfies the predicate; return the set."""
        last: tuple[Object, ...] = ()
        try:
            async with asyncio.timeout(within):
                async for objects in self.states(kind, namespace, **selectors):
                    last = objects
                    if predicate(objects):
                        return objects
        except TimeoutError:
            pass
        raise NotSeen(what or f"expected state of all {kind}", within, _summary(last))

    async def wait_for(
        self,
        kind: str,
        name: str,
        predicate: Callable[[Object], bool],
        namespace: str | None = None,
        *,
        within: float = 30,
    ) -> Object:
        """Wait until an object exists and satisfies the predicate; return it."""
        objects = await self.wait_all(
            kind,
            lambda objects: any(predicate(item) for item in objects),
            namespace,
            within=within,
            what=f"expected state of {kind} {name}",
            fieldSelector=f"metadata.name={name}",
        )
        return objects[0]

    async def wait_gone(
        self, kind: str, name: str, namespace: str | None = None, *, within: float = 30
    ) -> None:
        """Wait until an object does not exist."""
        await self.wait_all(
            kind,
            lambda objects: not objects,
            namespace,
            within=within,
            what=f"end of {kind} {name}",
            fieldSelector=f"metadata.name={name}",
        )

    async def stays(
        self,
        kind: str,
        name: str,
        predicate: Callable[[Object], bool],
        namespace: str | None = None,
        *,
        seconds: float,
    ) -> None:
        """Watch for some seconds that no state of an object breaks the predicate."""
        start = time.monotonic()
        try:
            broken = await self.wait_for(
                kind, name, lambda item: not predicate(item), namespace, within=seconds
            )
        except NotSeen:
            return
        after = time.monotonic() - start
        raise AssertionError(f"{kind} {name} changed after {after:.1f} s to {_summary((broken,))}")


def condition(item: Object, kind: str) -> Object | None:
    """The condition of a type in an object's status, or None."""
    conditions = item.get("status", {}).get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == kind), None)


def established(definition: Object) -> bool:
    """Whether a CustomResourceDefinition is served."""
    return (condition(definition, "Established") or {}).get("status") == "True"


def running(pod: Object) -> bool:
    """Whether a pod runs."""
    return bool(pod.get("status", {}).get("phase") == "Running")


def allocated(claim: Object) -> bool:
    """Whether a claim has an allocation."""
    return bool(claim.get("status", {}).get("allocation"))


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: an object may be larger than a reader's limit."""
    rest = b""
    async for part in content.iter_any():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line:
                yield line


def _kind_of(manifest: Object) -> str:
    return f"{manifest['apiVersion']}/{manifest['kind']}"


def _key(item: Object) -> tuple[str, str]:
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _summary(objects: tuple[Object, ...]) -> str:
    """What a person wants to see of objects that are not as expected."""
    shown = []
    for item in objects[:5]:
        meta = {
            key: item["metadata"].get(key)
            for key in ("namespace", "name", "deletionTimestamp", "annotations")
        }
        shown.append({**meta, "status": item.get("status")})
    more = f" and {len(objects) - 5} more" if len(objects) > 5 else ""
    return json.dumps(shown, indent=1) + more if objects else "nothing"
