"""A small API server in this process, for the demo and for fast tests.

::

    async with EmbeddedCluster(claim_controller=True, scheduler=True, kubelet=True) as cluster:
        cluster.kubeconfig(tmp_path / "kubeconfig")     # or use cluster.url: plain HTTP on 127.0.0.1
        cluster.load(node, *slices)                     # a picture, taken over as it is (status, UIDs)
        cluster.create(template)
        cluster.create(pod)
        claim = await cluster.wait_for("ResourceClaim", lambda claim: claim["status"].get("allocation"))

Objects
    `create`, `load`, `find`, `get`, `objects`, `replace`, `patch`, `delete`, by kind and name
    (`cluster.get("Pod", "trainer")`).
    They act at once and bypass HTTP, its faults and its journal.
Waiting, without polling
    `wait_for(kind, predicate)`, `wait_gone(kind, name)`.
Trouble
    `cluster.faults.fail("PUT", "resourceclaims/status", status=409)`, `.delay`, `.hold` (until released),
    `.drop_answer` (done, but not answered), `.before` (somebody writes first), `.deny` (a right is missing:
    requests get 403, access reviews say no).
    A fault matches a method (`PUT`) or a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`)
    and a resource (`pods`, `pods/status`); an empty string matches all.
Watches
    `cluster.watches.close()`, `with cluster.watches.silenced(lose=True)`, `cluster.compact()` (what is older
    answers 410).
Journal
    `cluster.journal`, `cluster.writes("resourceclaims/status")`: method, verb, path, agent, body, status.
Stand-ins, off unless asked for
    `claim_controller` (generates, reserves for bound pods, releases), `scheduler` (binds ungated pods whose
    claims are allocated), `kubelet` (bound pods run, terminating pods go).
On unless refused
    `garbage_collector`, `definitions` (the kinds of dovetail.dev).

Where it differs from a real API server
---------------------------------------
* Authentication is absent, and authorization is only what `faults.deny` takes away.
* One process, one event loop, no storage: each write is atomic, and nothing is ever stale.
* Objects are kept as they are sent: no schema, no pruning, no conversion, and few defaults (`defaults.py`).
  Over HTTP, a field of another type than its kind says is refused (`reading.py`), as far as Dovetail's own
  models know the kind; of other kinds the metadata, `spec` and `status` are looked at.
  CustomResourceDefinitions register kinds but validate nothing (DerivedAttribute alone keeps `spec.attribute`
  immutable).
* What means nothing is answered with 4xx, also where a real server takes it for a fault of its own
  (`watch=true&resourceVersion=x`); `timeoutSeconds` may have a fraction.
* Validation covers `rules*.py`: ResourceClaims and templates (V1, V2, V20, V21, V60 to V64, V66, limits),
  slices (V80), Pods (what is immutable, gates only go, claim statuses), Events, finalizers, names.
  Quantities, CEL, drivers' names, toleration fields and label syntax pass unchecked.
  Admission (quota, taints of new nodes, service accounts, policies, webhooks, admin access) does not exist.
* Server-side apply remembers per manager what it applied last.
  There is no `metadata.managedFields`, and writers by PUT or by other patches own nothing.
* A paged LIST shows later pages as they are then, under the version of the first page; a watch from that
  version brings the rest, so that a client ends with the same picture.
* Protobuf, tables, `pods/eviction`, OpenAPI documents and foreground or orphaning deletion are not served;
  a dry run is refused with 400.
* Stand-ins see every change at once, without informer lag: races between controllers need `faults.hold`.
"""

from dovetail.embedded.answers import StatusError
from dovetail.embedded.cluster import EmbeddedCluster
from dovetail.embedded.faults import Faults, Held, Request
from dovetail.embedded.writing import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE",
    "EmbeddedCluster",
    "Faults",
    "Held",
    "Request",
    "StatusError",
]
