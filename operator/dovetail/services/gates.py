"""Taking our scheduling gate away; the gates of others stay."""

from collections.abc import Mapping
from typing import Any

from dovetail.api.kinds import POD
from dovetail.api.mappings import GATE
from dovetail.cluster.pen import Pen
from dovetail.errors import NotFound
from dovetail.services.picture import Picture, key_of


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether the pod carries our gate."""
    return any(gate.get("name") == GATE for gate in pod["spec"].get("schedulingGates") or ())


async def ungate(pen: Pen, pod: Mapping[str, Any], picture: Picture | None = None) -> bool:
    """Take our gate from exactly this pod; False where it is gone.

    Raises `Conflict` where somebody wrote at the same time, or another pod took its name.
    """
    patch = {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
    try:
        body = await pen.merge_strategically(POD, *key_of(pod), patch)
    except NotFound:
        return False
    if picture is not None:
        picture.see(POD, body)
    return True
