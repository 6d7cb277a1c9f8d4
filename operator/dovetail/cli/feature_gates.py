"""The option `--feature-gates`: which gates of Kubernetes are on."""

import typer

from dovetail.core.features import GATES, Features

WITHOUT_EFFECT = frozenset(
    {
        "DynamicResourceAllocation",
        "DRAResourceClaimGranularStatusAuthorization",
        "DRAResourcePoolStatus",
        "DRASchedulerFilterTimeout",
        "GenericWorkload",
        "KubeletPodResourcesDynamicResources",
        "KubeletPodResourcesGet",
        "ResourceHealthStatus",
        "TopologyAwareWorkloadScheduling",
    }
)
"""Gates around devices that change nothing of what is planned here."""

UNBUILT = frozenset({"DRAWorkloadResourceClaims"})
"""Gates that are known, and whose claims are refused with a reason whether they are on or off."""


def read_features(text: str) -> tuple[Features, tuple[str, ...]]:
    """The gates of 1.37 with those of the option, and which of these change nothing, sorted.

    Raises `typer.BadParameter` for a gate or value that is not known.
    """
    gates: dict[str, bool] = {}
    idle: set[str] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise typer.BadParameter(
                f"{part!r}: GATE=true or GATE=false is expected", param_hint="--feature-gates"
            )
        if name in GATES:
            gates[name] = value.lower() == "true"
        elif name in WITHOUT_EFFECT:
            idle.add(name)
        else:
            known = ", ".join(sorted(GATES))
            raise typer.BadParameter(
                f"unknown gate {name!r}; known are {known}", param_hint="--feature-gates"
            )
    idle |= gates.keys() & UNBUILT
    return Features().with_gates(gates), tuple(sorted(idle))
