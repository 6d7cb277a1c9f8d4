"""Devices for the claims of one pod: on one node, or on the best of several."""

from collections.abc import Sequence

from dovetail.api.claims import ResourceClaim
from dovetail.core.budget import Budget
from dovetail.core.inventory import Inventory
from dovetail.core.outcome import Cut, DoesNotFit, Fits, Placement


def allocate(
    inventory: Inventory, claims: Sequence[ResourceClaim], node: str, *, budget: Budget
) -> Fits | DoesNotFit | Cut:
    """Devices for these claims together on one node, as kube-scheduler's allocator would choose them.

    `claims` are the unallocated claims of one pod, in the pod's order.
    A node that was never put into the inventory exists, with no labels but its name.
    Neither the inventory nor the claims are changed: put the claim back, allocated, to take its devices.
    Raises `RequestInvalid` where a claim or its class is wrong as it is written.
    """
    raise NotImplementedError


def place(
    inventory: Inventory, claims: Sequence[ResourceClaim], nodes: Sequence[str], *, budget: Budget
) -> Placement | DoesNotFit | Cut:
    """The best of several nodes: by the score of allocation-rules 2.6, then in the order given.

    Nodes that offer the same, with the same in use, are searched once.
    Pass the same tuple again where the candidates have not changed: what was found out about it is kept.
    Raises `RequestInvalid` as `allocate` does.
    """
    raise NotImplementedError
