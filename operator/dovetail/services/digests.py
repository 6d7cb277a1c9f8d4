"""Short names for what objects say, each worked out once for a version of an object.

Many pods, and many entries of one pod, can name the same claim: it is written out once, not once for each.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from dovetail.services.journal import content_of

MOST = 16_384
"""Objects that are remembered; the one that was asked about longest ago goes first."""

_written = json.JSONEncoder(sort_keys=True).encode
_NOTHING = content_of("")

_Version = tuple[str, str, str]


class Digests:
    """Remembers digests by kind, uid and resourceVersion; used by one thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[_Version, bytes] = OrderedDict()

    def of(self, kind: str, body: Mapping[str, Any] | None) -> bytes:
        """The digest of what a claim or template asks for: equal for equal ones, whatever their names."""
        if body is None:
            return _NOTHING
        return self._remembered(kind, body, body["spec"].get("spec", body["spec"]))

    def place(self, pod: Mapping[str, Any]) -> bytes:
        """The digest of where a pod may go."""
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity")
        return self._remembered("place", pod, [pod["spec"].get("nodeSelector"), affinity])

    def _remembered(self, kind: str, body: Mapping[str, Any], part: Any) -> bytes:
        metadata = body["metadata"]
        version = (kind, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))
        known = self._known.get(version)
        if known is None:
            known = content_of(_written(part))
            if version[1] and version[2]:
                self._known[version] = known
                if len(self._known) > self._most:
                    self._known.popitem(last=False)
        else:
            self._known.move_to_end(version)
        return known
