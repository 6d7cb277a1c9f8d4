"""The garbage collector: what has lost all its owners goes, and an emptied namespace that is to go."""

from typing import TYPE_CHECKING

from dovetail.embedded.bodies import Body, is_terminating, items, key_of, name_of, namespace_of

if TYPE_CHECKING:
    from dovetail.embedded.cluster import EmbeddedCluster


def collect_garbage(cluster: "EmbeddedCluster") -> None:
    """One pass over all objects. An owner is told by its UID alone."""
    kinds = cluster.store.kinds()
    alive = {body["metadata"]["uid"] for kind in kinds for body in cluster.store.objects(kind)}
    for kind in kinds:
        for body in cluster.store.objects(kind):
            if _is_orphan(body, alive) and not is_terminating(body):
                cluster.writer.delete(kind, key_of(body))
    _finish_namespaces(cluster)


def _is_orphan(body: Body, alive: set[str]) -> bool:
    owners = items(body, "metadata", "ownerReferences")
    return bool(owners) and not any(owner.get("uid") in alive for owner in owners)


def _finish_namespaces(cluster: "EmbeddedCluster") -> None:
    homes = cluster.kinds.named("Namespace")
    leaving = [body for body in cluster.store.objects(homes) if is_terminating(body)]
    if not leaving:
        return
    used = {namespace_of(body) for kind in cluster.store.kinds() for body in cluster.store.objects(kind)}
    for body in leaving:
        if name_of(body) not in used:
            cluster.store.remove(homes, key_of(body))
