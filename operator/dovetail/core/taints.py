"""Taints of devices: which rules add them, and which of them block a request (allocation-rules 2.7)."""

from collections.abc import Collection, Iterable, Iterator

from dovetail.api.selection import Taint, Toleration
from dovetail.api.slices import DeviceTaintRule, DeviceTaintSelector
from dovetail.core.pools import PoolOffer
from dovetail.core.values import DeviceKey

_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


class TaintRules:
    """The rules of administrators that add taints."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}
        self.active = True

    def put(self, rule: DeviceTaintRule) -> bool:
        """Take in a rule; False where nothing changed."""
        before = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        return before is None or before.spec != rule.spec

    def drop(self, name: str) -> bool:
        """Forget a rule; False where it was not there."""
        return self._rules.pop(name, None) is not None

    def on(self, device: DeviceKey, *, without: Collection[str] = ()) -> Iterator[Taint]:
        """The taints that rules add to a device; rules named in `without` do not count."""
        for name, rule in self._rules.items() if self.active else ():
            selector = rule.spec.device_selector
            if name not in without and selector is not None and selects(selector, device):
                yield rule.spec.taint

    def taints_of(self, pool: PoolOffer) -> Iterator[tuple[int, Taint]]:
        """Each taint that a rule adds to a device of the pool, with the device's number there."""
        if not self.active:
            return
        for _, rule in sorted(self._rules.items()):
            selector = rule.spec.device_selector
            if selector is None or not _may_select(selector, pool):
                continue
            for position in range(len(pool.devices)):
                if selects(selector, pool.key_of(position)):
                    yield position, rule.spec.taint


def selects(selector: DeviceTaintSelector, device: DeviceKey) -> bool:
    """Whether a rule's selector takes the device: all parts that are given agree."""
    return (
        selector.driver in (None, device.driver)
        and selector.pool in (None, device.pool)
        and selector.device in (None, device.device)
    )


def blocking_taint(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that keeps the device from the request, if any."""
    tolerated = tuple(tolerations)
    for taint in taints:
        if taint.effect in _BLOCKING and not any(tolerates(given, taint) for given in tolerated):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _may_select(selector: DeviceTaintSelector, pool: PoolOffer) -> bool:
    return selector.driver in (None, pool.key.driver) and selector.pool in (None, pool.key.pool)
