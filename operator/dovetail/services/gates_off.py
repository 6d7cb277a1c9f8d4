"""Feature gates that turn out to be off: the API server drops what belongs to them (V69, R-B13)."""

from collections.abc import Callable, Iterable, Mapping

import structlog

from dovetail.services.allocation import Dropped
from dovetail.services.mind import Mind

log = structlog.get_logger(__name__)

GATE_OF: Mapping[str, str] = {
    "adminAccess": "DRAAdminAccess",
    "tolerations": "DRADeviceTaints",
    "shareID": "DRAConsumableCapacity",
    "consumedCapacity": "DRAConsumableCapacity",
    "bindingConditions": "DRADeviceBindingConditions",
    "bindingFailureConditions": "DRADeviceBindingConditions",
    "skipNodeOperations": "DRAOptionalNodeOperations",
}
"""The gate that a field of an allocation's result belongs to."""


class GatesOff:
    """Learns from what came back: a gate that is off is not relied on any more until the next start.

    `found_off` is told each such gate.
    """

    def __init__(self, *, mind: Mind, found_off: Callable[[str], None]) -> None:
        self._mind = mind
        self._found_off = found_off

    async def learn(self, dropped: Iterable[Dropped]) -> str:
        """Take in what the API server did not keep; returns it as a sentence for the pod."""
        words: list[str] = []
        for drop in dropped:
            gates = sorted({GATE_OF[field] for field in drop.fields if field in GATE_OF})
            for gate in gates:
                await self._mind.turn_off(gate)
                self._found_off(gate)
            log.error("feature_gate_off", gates=gates, claim="/".join(drop.claim), fields=drop.fields)
            named = f"feature gate {', '.join(gates)} is off" if gates else "a feature gate is off"
            words.append(f"{', '.join(drop.fields)} of claim {'/'.join(drop.claim)}: {named}")
        return f"the API server dropped {'; '.join(words)}"
