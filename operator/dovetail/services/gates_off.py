"""Feature gates that turn out to be off: the API server drops what belongs to them (V69, R-B13)."""

from collections.abc import Callable, Iterable, Mapping

import structlog

from dovetail.core.features import Features
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


FIRST_SURVEYS, MOST_SURVEYS = 1, 32
"""For how many surveys a gate that was found off is done without, the first time and at most.

Each time that it is found off again the number doubles: an API server that drops the field for good costs
one vain write per pod concerned now and then, one that was started anew with the gate on is used again.
"""


class GatesOff:
    """Learns from what came back: a gate that is found off is not relied on until it is tried again.

    `found` is told of each such gate that it is off, and later that it is no longer taken to be so.
    """

    def __init__(self, *, mind: Mind, features: Features, found: Callable[[str, bool], None]) -> None:
        """`features`: what the examination of the cluster says."""
        self._mind = mind
        self._features = features
        self._found = found
        self._left: dict[str, int] = {}
        """By gate that is done without, for how many surveys more."""
        self._pauses: dict[str, int] = {}

    async def learn(self, dropped: Iterable[Dropped]) -> str:
        """Take in what the API server did not keep; returns it as a sentence for the pod."""
        words: list[str] = []
        for drop in dropped:
            gates = sorted({GATE_OF[field] for field in drop.fields if field in GATE_OF})
            for gate in gates:
                await self._do_without(gate)
            log.error("feature_gate_off", gates=gates, claim="/".join(drop.claim), fields=drop.fields)
            named = f"feature gate {', '.join(gates)} is off" if gates else "a feature gate is off"
            words.append(f"{', '.join(drop.fields)} of claim {'/'.join(drop.claim)}: {named}")
        return f"the API server dropped {'; '.join(words)}"

    async def survey(self, features: Features) -> bool:
        """The cluster was examined anew: gates may be others, and what was learnt grows old.

        Returns whether decisions rely on other gates from now on.
        """
        self._left = {gate: left - 1 for gate, left in self._left.items()}
        over = sorted(gate for gate, left in self._left.items() if left <= 0)
        for gate in over:
            del self._left[gate]
            self._found(gate, False)
            log.info("feature_gate_tried_again", gate=gate)
        if features != self._features:
            log.info("feature_gates_changed", gates=features.gates)
        is_news = bool(over) or features != self._features
        if is_news:
            self._features = features
            await self._apply()
        return is_news

    async def _do_without(self, gate: str) -> None:
        if gate not in self._left:
            pause = min(self._pauses.get(gate, FIRST_SURVEYS / 2) * 2, MOST_SURVEYS)
            self._pauses[gate] = self._left[gate] = int(pause)
        await self._apply()
        self._found(gate, True)

    async def _apply(self) -> None:
        features = self._features.with_gates(dict.fromkeys(self._left, False))
        await self._mind.set_features(features)
