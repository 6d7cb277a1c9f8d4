"""Why a pod has to wait, cannot be served, or is none of ours: the reasons that users see."""

import enum


class Reason(enum.StrEnum):
    """The reason of a decision, as the condition `dovetail.dev/Allocated` and Events carry it."""

    NO_MAPPING = "NoMapping"
    """A constraint names an attribute that no mapping, native entry or published attribute supplies."""

    OTHER_GATES = "OtherGates"
    """The pod carries scheduling gates of others; nothing is allocated until they are gone."""

    SCHEDULER_NOT_SUPPORTED = "SchedulerNotSupported"
    """The pod names a scheduler that Dovetail is not configured to work with."""

    CLAIMS_NOT_CREATED = "ClaimsNotCreated"
    """A claim of the pod, or its template, does not exist yet."""

    POD_GROUP_UNSUPPORTED = "PodGroupUnsupported"
    """A claim belongs to a PodGroup, which Dovetail does not serve."""

    CLAIM_BEING_DELETED = "ClaimBeingDeleted"
    """A claim of the pod is being deleted; kube-scheduler refuses such pods as well (S13)."""

    CLAIM_MALFORMED = "ClaimMalformed"
    """A claim of the pod cannot be read."""

    SHARED_CLAIM_NOT_GATED = "SharedClaimNotGated"
    """kube-scheduler could allocate the claim as well, and a pod that uses it is not gated."""

    CONSUMER_LIMIT = "ConsumerLimit"
    """A claim has as many consumers as `reservedFor` can hold (256)."""

    NOTHING_FITS = "NothingFits"
    """No node that the pod can use has devices that satisfy all its claims together."""

    NO_NODE_USABLE = "NoNodeUsable"
    """The pod can use no node at all, whatever its claims ask for."""

    INVALID_CLAIM = "InvalidClaim"
    """A claim, or the class it names, cannot be served as it is written."""

    INVALID_POD = "InvalidPod"
    """The pod contradicts itself: a container uses a claim that the pod lacks."""

    HELD_FOR_ANOTHER = "HeldForAnother"
    """The devices that the pod could have are held, for a while, for one of higher priority, or older."""

    SEARCH_CUT = "SearchCut"
    """The search ran out of its budget; nothing is known, and it is tried again."""

    COSTS_TOO_MUCH = "CostsTooMuch"
    """Deciding about the pod's claims had to be ended from outside; they are left alone for a while."""
