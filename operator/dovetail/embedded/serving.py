"""HTTP: which request means what. Everything is answered as JSON, watches as JSON lines."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from dovetail.embedded import discovery
from dovetail.embedded.answers import StatusError, bad_request, deleted, expired, not_found
from dovetail.embedded.bodies import Body, Key, copied, key_of
from dovetail.embedded.events import as_core, as_new, event_causes
from dovetail.embedded.faults import Faults, Request, binding_rule, review
from dovetail.embedded.filters import filter_of
from dovetail.embedded.kinds import ACCESS_REVIEW, EVENT, NEW_EVENT, POD, Kind, Kinds
from dovetail.embedded.reading import (
    check_home,
    check_list_query,
    check_shape,
    check_write_query,
    delete_options,
    is_true,
    read_body,
    signed,
    timeout_in,
    unsigned,
)
from dovetail.embedded.store import Store
from dovetail.embedded.watching import DEFAULT_TIMEOUT_SECONDS, Watches, WatchOptions
from dovetail.embedded.writing import Writer

AGGREGATED = "as=APIGroupDiscoveryList"
MAX_BODY_BYTES = 3 * 1024 * 1024


class Target:
    """What a URL names: a kind, perhaps a namespace, an object, a subresource."""

    def __init__(self, kinds: Kinds, path: str) -> None:
        steps = path.strip("/").split("/")
        group, version, rest = (
            ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
        )
        self.namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            self.namespace, rest = rest[1], rest[2:]
        found = kinds.find(group, version, rest[0])
        if found is None or (self.namespace and not found.namespaced):
            raise StatusError(404, "the server could not find the requested resource")
        self.kind: Kind = found
        self.name = rest[1] if len(rest) > 1 else ""
        self.subresource = rest[2] if len(rest) > 2 else ""
        if (self.subresource and self.subresource not in found.subresources) or len(rest) > 3:
            raise StatusError(404, "the server could not find the requested resource")

    @property
    def kept_kind(self) -> Kind:
        """The kind in the store: both groups of events share one."""
        return EVENT if self.kind == NEW_EVENT else self.kind

    @property
    def key(self) -> Key:
        """Where the object is kept."""
        return (self.namespace, self.name)

    @property
    def resource(self) -> str:
        """As roles name it: `resourceclaims/status`."""
        return self.kind.plural + (f"/{self.subresource}" if self.subresource else "")


class Serving:
    """The requests, answered from one store."""

    def __init__(self, store: Store, kinds: Kinds, writer: Writer, watches: Watches, faults: Faults) -> None:
        self.journal: list[Request] = []
        self._store = store
        self._kinds = kinds
        self._writer = writer
        self._watches = watches
        self._faults = faults

    def application(self) -> web.Application:
        """The aiohttp application."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._answer)
        return application

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        entry = Request(
            method=http.method, verb="", path=http.path, user_agent=http.headers.get("User-Agent", "")
        )
        try:
            response = await self._dispatch(http, entry)
        except StatusError as error:
            response = _refusal(error)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            # Objects have no schema here: one of a shape that nobody foresaw is the caller's fault.
            response = _refusal(bad_request(f"the request cannot be understood: {error!r}"))
        entry.status = response.status
        return response

    async def _dispatch(self, http: web.Request, entry: Request) -> web.StreamResponse:
        steps = http.path.strip("/").split("/")
        if document := self._document(http, steps):
            return web.json_response(document)
        if steps[0] in ("healthz", "livez", "readyz"):
            return web.Response(text="ok")
        if steps[0] not in ("api", "apis") or len(steps) < 3:
            raise StatusError(404, "the server could not find the requested resource")
        target = Target(self._kinds, http.path)
        body = await read_body(http)
        _describe(entry, target, http, body)
        self.journal.append(entry)
        self._faults.check(entry)
        fate = await self._faults.meet(entry)
        response = await self._serve(http, target, entry, body)
        await asyncio.sleep(fate.answer_seconds)
        if fate.drops_answer and http.transport is not None:
            http.transport.abort()
        return response

    def _document(self, http: web.Request, steps: list[str]) -> Body | None:
        kinds = self._kinds
        wants_all = AGGREGATED in http.headers.get("Accept", "")
        match steps:
            case ["version"]:
                document = dict(discovery.VERSION)
            case ["api" | "apis" as root] if wants_all:
                document = discovery.aggregated(kinds, core=root == "api")
            case ["api"]:
                document = discovery.core_versions()
            case ["apis"]:
                document = discovery.group_list(kinds)
            case ["apis", group]:
                document = discovery.group(kinds, group)
            case ["api", version]:
                document = discovery.resource_list(kinds, "", version)
            case ["apis", group, version]:
                document = discovery.resource_list(kinds, group, version)
            case _:
                return None
        return document

    async def _serve(
        self, http: web.Request, target: Target, entry: Request, body: Any
    ) -> web.StreamResponse:
        if entry.verb == "watch":
            return await self._watch(http, target)
        if entry.verb not in ("get", "list"):
            check_write_query(http.query, http.content_type)
        serve: dict[str, Callable[[], Body]] = {
            "get": lambda: self._get(target),
            "list": lambda: self._list(http, target),
            "create": lambda: self._create(target, body),
            "update": lambda: self._update(target, body),
            "patch": lambda: self._patch(http, target, body),
            "delete": lambda: self._writer.delete(
                target.kept_kind, target.key, delete_options(http.query, body)
            ),
            "deletecollection": lambda: self._delete_all(http, target, body),
        }
        is_new = entry.verb == "create" or (
            entry.verb == "patch" and self._store.find(target.kept_kind, target.key) is None
        )
        answer = serve[entry.verb]()
        shown = as_new(answer) if target.kind == NEW_EVENT and answer.get("kind") == EVENT.name else answer
        return web.json_response(shown, status=201 if is_new else 200)

    def _get(self, target: Target) -> Body:
        found = self._store.find(target.kept_kind, target.key)
        if found is None:
            raise not_found(target.kind, target.name)
        return found

    def _list(self, http: web.Request, target: Target) -> Body:
        query = http.query
        check_list_query(query)
        accepts = filter_of(target.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        version, after = (
            _continued(query.get("continue", "")) if query.get("continue") else (self._store.version, None)
        )
        if after is not None and version < self._store.oldest:
            raise expired(self._store.oldest, version)
        wanted = unsigned(query, "resourceVersion")
        if wanted > self._store.version:
            message = f"Too large resource version: {wanted}, current: {self._store.version}"
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise StatusError(504, message, details={"causes": causes}, retry_after_seconds=1)
        bodies = [
            body
            for body in self._store.objects(target.kept_kind, target.namespace)
            if accepts(body) and (after is None or key_of(body) > after)
        ]
        limit = max(signed(query, "limit") or 0, 0) or len(bodies)
        metadata: Body = {"resourceVersion": str(version)}
        if len(bodies) > limit:
            metadata["continue"] = _continue_token(version, key_of(bodies[limit - 1]))
            metadata["remainingItemCount"] = len(bodies) - limit
        shown = [as_new(body) for body in bodies[:limit]] if target.kind == NEW_EVENT else bodies[:limit]
        return {
            "kind": f"{target.kind.name}List",
            "apiVersion": target.kind.api_version,
            "metadata": metadata,
            "items": shown,
        }

    def _create(self, target: Target, body: Body) -> Body:
        if target.subresource == "binding":
            return self._writer.bind(POD, target.key, body)
        if target.kind == ACCESS_REVIEW:
            return review(self._faults, body)
        if target.name:
            raise StatusError(405, "the server does not allow this method on the requested resource")
        body = self._homed(target, body)
        if target.kept_kind != EVENT:
            return self._writer.create(target.kind, body)
        is_new = target.kind == NEW_EVENT
        core = as_core(body) if is_new else body
        return self._writer.create(EVENT, core, causes=lambda event: list(event_causes(event, new=is_new)))

    def _homed(self, target: Target, body: Body) -> Body:
        """The body in the namespace of the URL; 400 where it names another one, or another kind."""
        check_home(target.kind, target.namespace, "", body)
        if target.kind.namespaced and not target.namespace:
            raise StatusError(405, "the server does not allow this method on the requested resource")
        check_shape(target.kind, body)
        homed = copied(body)
        if target.namespace:
            homed.setdefault("metadata", {})["namespace"] = target.namespace
        return homed

    def _update(self, target: Target, body: Body) -> Body:
        check_home(target.kind, target.namespace, target.name, body)
        check_shape(target.kind, body)
        sent = as_core(body) if target.kind == NEW_EVENT else body
        return self._writer.replace(
            target.kept_kind,
            target.key,
            sent,
            target.subresource,
            causes=binding_rule(self._faults, "update"),
        )

    def _patch(self, http: web.Request, target: Target, patch: Any) -> Body:
        sent = as_core(patch) if target.kind == NEW_EVENT and isinstance(patch, dict) else patch
        return self._writer.patch(
            target.kept_kind,
            target.key,
            sent,
            http.content_type,
            subresource=target.subresource,
            manager=http.query.get("fieldManager", ""),
            force=is_true(http.query, "force"),
            causes=binding_rule(self._faults, "patch"),
        )

    def _delete_all(self, http: web.Request, target: Target, body: Body | None) -> Body:
        query = http.query
        check_list_query(query)
        options = delete_options(query, body)
        accepts = filter_of(target.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        for each in self._store.objects(target.kept_kind, target.namespace):
            if accepts(each):
                self._writer.delete(target.kept_kind, key_of(each), options)
        return deleted(target.kind, "", "")

    async def _watch(self, http: web.Request, target: Target) -> web.StreamResponse:
        query = http.query
        fields = query.get("fieldSelector", "")
        if target.name:
            fields = ",".join(filter(None, [fields, f"metadata.name={target.name}"]))
        since = unsigned(query, "resourceVersion")
        seconds = timeout_in(query)
        options = WatchOptions(
            kind=target.kind,
            namespace=target.namespace,
            accepts=filter_of(target.kind, query.get("labelSelector", ""), fields),
            since=since or None,
            bookmarks=is_true(query, "allowWatchBookmarks"),
            initial_bookmark=is_true(query, "sendInitialEvents"),
            timeout_seconds=seconds or DEFAULT_TIMEOUT_SECONDS,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(http)
        async for lines in self._watches.lines(options):
            if target.kind not in self._kinds:
                # Its definition went.
                break
            if lines:
                await response.write(lines)
        return response


def _refusal(error: StatusError) -> web.Response:
    return web.json_response(error.body, status=error.code, headers=error.headers)


def _describe(entry: Request, target: Target, http: web.Request, body: Any) -> None:
    entry.verb = _verb_of(http, target)
    entry.group = target.kind.group
    entry.resource = target.resource
    entry.namespace, entry.name = target.key
    entry.content_type = http.content_type
    entry.body = body


def _verb_of(http: web.Request, target: Target) -> str:
    match http.method:
        case "GET" if is_true(http.query, "watch"):
            return "watch"
        case "GET":
            return "get" if target.name else "list"
        case "POST":
            return "create"
        case "PUT" if target.name:
            return "update"
        case "PATCH" if target.name:
            return "patch"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
        case _:
            pass
    raise StatusError(405, "the server does not allow this method on the requested resource")


def _continue_token(version: int, last: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *last]).encode()).decode()


def _continued(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError) as error:
        raise bad_request("continue key is not valid") from error
