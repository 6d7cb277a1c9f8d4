"""What a write does: names, versions, the line between object and status, and deletion.

Each method is one request; it either commits whole or raises a `StatusError` and changes nothing.
"""

import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.embedded import rules
from dovetail.embedded.answers import StatusError, bad_request, conflict, deleted, exists, invalid, not_found
from dovetail.embedded.applying import Applier, Ownership
from dovetail.embedded.bodies import (
    Body,
    Key,
    copied,
    is_terminating,
    items,
    key_of,
    metadata_of,
    name_of,
    namespace_of,
    now,
    part,
    text,
    uid_of,
)
from dovetail.embedded.defaults import defaulted, filled, scheduled_condition
from dovetail.embedded.kinds import Kind, Kinds
from dovetail.embedded.patching import json_patch, merge_patch, strategic_merge
from dovetail.embedded.reading import check_home, check_shape
from dovetail.embedded.rules_claims import without_lost_devices
from dovetail.embedded.store import Store

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

NAME_ATTEMPTS = 8
# Letters and digits that make no words and look unlike each other, as Kubernetes chooses them.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

# What the server alone writes; updates cannot change it.
SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
    "name",
    "generateName",
)

_PATCHES: Mapping[str, Callable[[Body, Any], Body]] = {
    MERGE_PATCH: merge_patch,
    JSON_PATCH: json_patch,
    STRATEGIC_MERGE: strategic_merge,
}
_PATCH_OPTIONS = Kind("meta.k8s.io", "v1", "PatchOptions", "patchoptions", stored=False)

Rule = Callable[[Body, Body], list[str]]
"""Why the first object may not become the second, beyond the rules of its kind."""


def no_causes(_old: Body, _new: Body) -> list[str]:
    """No rule beyond those of the kind."""
    return []


class Writer:
    """All writes, on one store."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self._ownership = Ownership()
        self._random = random.Random()  # noqa: S311 - names need no secrecy

    def create(self, kind: Kind, body: Body, *, causes: Callable[[Body], list[str]] | None = None) -> Body:
        """POST. The namespace has to exist; the server gives UID, time, generation and defaults."""
        new = copied(body)
        metadata = new.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            # The API server answers this mistake with 500 and no reason.
            raise StatusError(500, "resourceVersion should not be set on objects to be created", reason=" ")
        self._check_namespace(kind, namespace_of(new))
        metadata["name"] = metadata.get("name") or self._generated(kind, new)
        for field in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        metadata |= {"generation": 1} if kind.generation else {}
        new |= {"apiVersion": kind.api_version, "kind": kind.name}
        new = defaulted(kind, new)
        if wrong := rules.created(kind, new) + (causes(new) if causes else []):
            raise invalid(kind, name_of(new), wrong)
        return self.load(kind, new)

    def load(self, kind: Kind, body: Body) -> Body:
        """Keep a new object as it is: with its status, its UID, unchecked. 409 where the name is taken."""
        if self._store.find(kind, key_of(body)):
            raise exists(kind, name_of(body))
        if kind.name == "CustomResourceDefinition":
            self._kinds.register(body)
        return self._store.put(kind, body)

    def replace(
        self, kind: Kind, key: Key, body: Body, subresource: str = "", *, causes: Rule = no_causes
    ) -> Body:
        """PUT of an object or of its status."""
        old = self._existing(kind, key)
        if name_of(body) and name_of(body) != key[1]:
            wanted = "the name of the object does not match the name on the URL"
            raise bad_request(f"{wanted} ({name_of(body)} and {key[1]})")
        if not kind.unconditional_update and not metadata_of(body).get("resourceVersion"):
            raise invalid(
                kind, key[1], ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"]
            )
        return self._update(kind, old, copied(body), subresource, causes)

    def patch(
        self,
        kind: Kind,
        key: Key,
        patch: Any,
        content_type: str,
        *,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
        causes: Rule = no_causes,
    ) -> Body:
        """PATCH of an object or of its status, in any of the four forms."""
        if content_type == APPLY_PATCH:
            if not manager:
                wanted = "fieldManager: Required value: is required for apply patch"
                raise invalid(_PATCH_OPTIONS, "", [wanted])
            applier = Applier(manager, subresource, force=force)
            if not (patch.get("apiVersion") and patch.get("kind")):
                raise bad_request("apiVersion and kind are required for apply patch")
            check_home(kind, key[0], key[1] if name_of(patch) else "", patch)
            check_shape(kind, patch)
            return self._apply(kind, key, patch, applier, causes)
        patched = _PATCHES.get(content_type)
        if patched is None or (content_type == STRATEGIC_MERGE and not kind.builtin):
            raise StatusError(415, f"the body of the request was in an unknown format: {content_type}")
        old = self._existing(kind, key)
        try:
            new = copied(patched(old, patch))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise StatusError(
                422, f"the server rejected our request: the patch means nothing: {error!r}"
            ) from error
        check_shape(kind, new, 422)
        check_home(kind, key[0], key[1], new)
        if uid_of(new) not in ("", uid_of(old)):
            raise invalid(kind, key[1], [f'metadata.uid: Invalid value: "{uid_of(new)}": field is immutable'])
        return self._update(kind, old, new, subresource, causes)

    def _apply(self, kind: Kind, key: Key, config: Body, applier: Applier, causes: Rule) -> Body:
        old = self._store.find(kind, key)
        if old is None and applier.subresource:
            raise not_found(kind, key[1])
        if old is None and name_of(config) != key[1]:
            raise bad_request("name must be provided in the body, as in the URL")
        if old is None:
            named = dict(config) | {"metadata": metadata_of(config) | {"namespace": key[0], "name": key[1]}}
            created = self.create(kind, named)
            self._ownership.keep(uid_of(created), applier, {applier.manager: config})
            return created
        if uid_of(config) not in ("", uid_of(old)):
            raise conflict(kind, key[1], _uid_conflict(uid_of(config), uid_of(old)))
        new, owners = self._ownership.applied(old, config, applier)
        written = self._update(kind, old, copied(new), applier.subresource, causes)
        self._ownership.keep(uid_of(old), applier, owners)
        return written

    def delete(self, kind: Kind, key: Key, options: Body | None = None) -> Body:
        """DELETE. With finalizers, and for pods that run, the object only gets a deletionTimestamp."""
        old = self._existing(kind, key)
        options = options or {}
        self._check_preconditions(kind, old, part(options, "preconditions"))
        if kind.name == "Namespace":
            return self._delete_namespace(kind, old)
        grace = _grace_of(kind, old, options.get("gracePeriodSeconds"))
        if not grace and not items(old, "metadata", "finalizers"):
            self._forget(kind, old)
            return deleted(kind, key[1], uid_of(old))
        if is_terminating(old) and (metadata_of(old).get("deletionGracePeriodSeconds") or 0) <= grace:
            return old
        metadata = metadata_of(old)
        stamps = {
            "deletionTimestamp": metadata.get("deletionTimestamp") or now(),
            "deletionGracePeriodSeconds": grace,
        }
        if kind.generation:
            stamps["generation"] = (metadata.get("generation") or 0) + 1
        return self._store.put(kind, dict(old) | {"metadata": metadata | stamps})

    def bind(self, kind: Kind, key: Key, binding: Body) -> Body:
        """POST on `pods/binding`: 409 where the pod has a node, is gated or is being deleted."""
        pod = self._existing(kind, key)
        node = text(binding, "target", "name")
        if not node:
            raise invalid(kind, key[1], ["target.name: Required value"])
        if text(pod, "spec", "nodeName"):
            raise conflict(
                kind, key[1], f'pod {key[1]} is already assigned to node "{pod["spec"]["nodeName"]}"'
            )
        if is_terminating(pod):
            raise conflict(kind, key[1], f"pod {key[1]} is being deleted, cannot be assigned to a host")
        if items(pod, "spec", "schedulingGates"):
            raise conflict(kind, key[1], f"pod {key[1]} has non-empty .spec.schedulingGates")
        bound = merge_patch(pod, {"spec": {"nodeName": node}})
        scheduled = {"status": {"conditions": [scheduled_condition("True")]}}
        self._store.put(kind, strategic_merge(bound, scheduled))
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _update(self, kind: Kind, old: Body, new: Body, subresource: str, causes: Rule) -> Body:
        self._check_version(kind, old, new)
        new = self._separated(kind, old, filled(kind, new), subresource)
        if kind.name == "ResourceClaim":
            new = without_lost_devices(old, new)
        judge = rules.status_changed if subresource == "status" else rules.changed
        if wrong := judge(kind, old, new) + causes(old, new):
            raise invalid(kind, name_of(old), wrong)
        if new == old:
            return old
        if kind.generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = (metadata_of(old).get("generation") or 0) + 1
        return self._commit(kind, new)

    def _commit(self, kind: Kind, new: Body) -> Body:
        stored = self._store.put(kind, new)
        metadata = metadata_of(stored)
        waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        if is_terminating(stored) and not waits and kind.name != "Namespace":
            return self._forget(kind, stored)
        if kind.name == "CustomResourceDefinition":
            self._kinds.register(stored)
        return stored

    def _forget(self, kind: Kind, body: Body) -> Body:
        last = self._store.remove(kind, key_of(body))
        if kind.name == "CustomResourceDefinition":
            for gone in self._kinds.unregister(body):
                for left in self._store.objects(gone):
                    self._store.remove(gone, key_of(left))
        return last

    def _delete_namespace(self, kind: Kind, old: Body) -> Body:
        if is_terminating(old):
            return old
        for inner in self._kinds:
            for body in self._store.objects(inner, name_of(old)) if inner.namespaced else []:
                self.delete(inner, key_of(body))
        metadata = metadata_of(old) | {"deletionTimestamp": now()}
        return self._store.put(kind, dict(old) | {"metadata": metadata, "status": {"phase": "Terminating"}})

    @staticmethod
    def _separated(kind: Kind, old: Body, new: Body, subresource: str) -> Body:
        """A write on `/status` changes only the status, any other write everything else (V70, L32)."""
        if subresource == "status":
            return dict(old) | ({"status": new["status"]} if new.get("status") is not None else {})
        metadata = metadata_of(new)
        for field in SERVER_METADATA:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        new["metadata"] = {name: value for name, value in metadata.items() if value not in (None, {}, [])}
        new |= {"apiVersion": kind.api_version, "kind": kind.name}
        if kind.status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return new

    @staticmethod
    def _check_version(kind: Kind, old: Body, new: Body) -> None:
        version, uid = metadata_of(new).get("resourceVersion"), uid_of(new)
        if uid and uid != uid_of(old):
            raise conflict(kind, name_of(old), _uid_conflict(uid, uid_of(old)))
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(kind, name_of(old))

    @staticmethod
    def _check_preconditions(kind: Kind, old: Body, preconditions: Body) -> None:
        uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
        if uid and uid != uid_of(old):
            raise conflict(kind, name_of(old), _uid_conflict(uid, uid_of(old)))
        if version and version != old["metadata"]["resourceVersion"]:
            current = old["metadata"]["resourceVersion"]
            raise conflict(
                kind,
                name_of(old),
                f"Precondition failed: ResourceVersion in precondition: {version}, in object meta: {current}",
            )

    def _check_namespace(self, kind: Kind, namespace: str) -> None:
        if not kind.namespaced:
            return
        home_kind = self._kinds.named("Namespace")
        home = self._store.find(home_kind, ("", namespace))
        if home is None:
            raise not_found(home_kind, namespace)
        if is_terminating(home):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise StatusError(403, message)

    def _generated(self, kind: Kind, body: Body) -> str:
        prefix = text(body, "metadata", "generateName")
        if not prefix:
            return ""
        for _ in range(NAME_ATTEMPTS):
            name = prefix[:58] + "".join(self._random.choices(SUFFIX_LETTERS, k=5))
            if self._store.find(kind, (namespace_of(body), name)) is None:
                return name
        raise exists(kind, prefix)

    def _existing(self, kind: Kind, key: Key) -> Body:
        found = self._store.find(kind, key)
        if found is None:
            raise not_found(kind, key[1])
        return found


def _grace_of(kind: Kind, body: Body, asked: int | None) -> int:
    """Only a pod that has a node and still runs is given time to end (seconds)."""
    ended = text(body, "status", "phase") in ("Succeeded", "Failed")
    if kind.name != "Pod" or ended or not text(body, "spec", "nodeName"):
        return 0
    return asked if asked is not None else int(part(body, "spec").get("terminationGracePeriodSeconds", 30))


def _uid_conflict(wanted: str, found: str) -> str:
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
