"""What happens when, decided by the seed alone: the same seed and duration give the same script."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from typing_extensions import override

from e2e.chaos.attacks import Attack

NODES = ("n0", "n1", "n2", "n3")
SHARED_CLAIMS = ("shared-0", "shared-1")
REPLICAS = ("a", "b")
MOST_PODS = 26
"""More than the devices suffice for, so that some always wait."""

ATTACK_SECONDS = (4.0, 12.0)
"""How long after one attack the next one comes."""

BREATHER_SECONDS = 6.0
"""The pause between the beginnings of two disturbances."""


class Action(enum.StrEnum):
    """What can happen; the subject is a pod, a node, a replica, or empty."""

    CREATE = "create pod"
    DELETE = "delete pod"
    FINISH = "let pod succeed"
    CORDON = "cordon node"
    UNCORDON = "uncordon node"
    TAKE_NODE = "take node away"
    RETURN_NODE = "bring node back"
    RENEW_SLICES = "publish slices anew"
    WIPE_DRIVER = "wipe driver's slices"
    PUBLISH_DRIVER = "publish driver's slices"
    KILL_OPERATOR = "kill operator"
    START_OPERATOR = "start operator"
    FREEZE_OPERATOR = "freeze operator"
    WAKE_OPERATOR = "wake operator"
    RESTART_SCHEDULER = "restart kube-scheduler"
    RESTART_CONTROLLERS = "restart kube-controller-manager"
    RESTART_APISERVER = "restart kube-apiserver"
    COMPACT = "compact history and break watches"
    SILENCE = "silence watches"
    TALK = "let watches talk"
    REFUSE = "refuse writes"
    LOSE = "lose answers"
    DELAY = "delay writes"
    CALM = "pass everything"
    ATTACK = "tenant attacks"
    RETREAT = "tenant withdraws"


class Shape(enum.StrEnum):
    """What a pod wants."""

    PAIR = "one aligned pair"
    TWO = "two aligned pairs, two claims"
    WIDE = "two pairs, all on one NUMA node"
    BESIDE = "an aligned pair, and a plain claim"
    PLAIN = "a plain claim"
    SHARED = "a pair that others share"
    UNGATED = "an aligned pair, without the gate"
    IMPOSSIBLE = "more than any NUMA node has"


_WEIGHTS: Mapping[Shape, int] = {
    Shape.PAIR: 6,
    Shape.TWO: 2,
    Shape.WIDE: 2,
    Shape.BESIDE: 3,
    Shape.PLAIN: 2,
    Shape.SHARED: 3,
    Shape.UNGATED: 1,
    Shape.IMPOSSIBLE: 1,
}


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """One thing that happens, so many seconds after the beginning."""

    at: float
    action: Action
    subject: str = ""
    shape: Shape | None = None
    claim: str = ""
    """The shared claim that the pod uses."""
    attack: Attack | None = None
    is_gated: bool = True

    @override
    def __str__(self) -> str:
        what = self.shape or self.attack
        words = [f"{self.at:7.1f} s  {self.action}", self.subject, f"({what})" if what else ""]
        return " ".join(filter(None, words))


def write_script(seed: int, duration: float) -> tuple[Step, ...]:
    """The script of a run; whatever a disturbance takes away is back before the end."""
    rng = Random(seed)
    disturbances = list(_Disturbances(rng).steps(duration))
    attacks = sorted(_attacks(Random(f"attacks {seed}"), duration))
    return tuple(heapq.merge(_crowd(rng, duration), sorted(disturbances), attacks, key=lambda step: step.at))


def _crowd(rng: Random, duration: float) -> Iterator[Step]:
    """Pods come, are deleted and finish."""
    alive: list[str] = []
    at = 0.0
    number = 0
    while (at := at + rng.expovariate(1.6)) < duration:
        if alive and (len(alive) >= MOST_PODS or rng.random() < 0.42):
            # The old ones go first as a rule, but not always.
            subject = alive.pop(min(int(rng.expovariate(0.25)), len(alive) - 1))
            yield Step(at, Action.FINISH if rng.random() < 0.25 else Action.DELETE, subject)
            continue
        (shape,) = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        claim = rng.choice(SHARED_CLAIMS) if shape is Shape.SHARED else ""
        alive.append(f"p{number}")
        yield Step(at, Action.CREATE, alive[-1], shape, claim)
        number += 1


def _attacks(rng: Random, duration: float) -> Iterator[Step]:
    """A hostile tenant's pods come, each kind before any comes again, and most go again; gated or not."""
    at = 0.0
    number = 0
    bag: list[Attack] = []
    while (at := at + rng.uniform(*ATTACK_SECONDS)) < duration:
        if not bag:
            bag = list(Attack)
            rng.shuffle(bag)
        name = f"attacker-{number}"
        yield Step(at, Action.ATTACK, name, attack=bag.pop(), is_gated=rng.random() < 0.5)
        if (end := at + rng.uniform(10, 60)) < duration:
            yield Step(end, Action.RETREAT, name)
        number += 1


@dataclass(slots=True)
class _Disturbances:
    """Draws them from a bag, so that each kind happens before any happens again."""

    rng: Random
    bag: list[Callable[[float], list[Step]]] = field(default_factory=list)

    def steps(self, duration: float) -> Iterator[Step]:
        """Every disturbance and its end; the last ones begin early enough to be over."""
        at = BREATHER_SECONDS / 2
        while at < duration - BREATHER_SECONDS:
            if not self.bag:
                self.bag = list(self._kinds)
                self.rng.shuffle(self.bag)
            found = self.bag.pop()(at)
            end = max(step.at for step in found)
            if end < duration:
                yield from found
            at = max(at + BREATHER_SECONDS, end - BREATHER_SECONDS / 2)

    @property
    def _kinds(self) -> tuple[Callable[[float], list[Step]], ...]:
        return (
            lambda at: self._between(at, Action.KILL_OPERATOR, Action.START_OPERATOR, REPLICAS, (1, 6)),
            lambda at: self._between(at, Action.FREEZE_OPERATOR, Action.WAKE_OPERATOR, REPLICAS, (5, 9)),
            lambda at: self._between(at, Action.CORDON, Action.UNCORDON, NODES, (3, 9)),
            lambda at: self._between(at, Action.TAKE_NODE, Action.RETURN_NODE, NODES, (3, 9)),
            lambda at: self._between(at, Action.WIPE_DRIVER, Action.PUBLISH_DRIVER, NODES, (2, 8)),
            lambda at: [Step(at, Action.RENEW_SLICES, self.rng.choice(NODES))],
            lambda at: [Step(at, Action.RESTART_SCHEDULER)],
            lambda at: [Step(at, Action.RESTART_CONTROLLERS)],
            lambda at: [Step(at, Action.RESTART_APISERVER)],
            lambda at: [Step(at, Action.COMPACT)],
            lambda at: self._between(at, Action.SILENCE, Action.TALK, ("",), (3, 8)),
            lambda at: self._between(at, Action.REFUSE, Action.CALM, ("",), (3, 6)),
            lambda at: self._between(at, Action.LOSE, Action.CALM, ("",), (3, 6)),
            lambda at: self._between(at, Action.DELAY, Action.CALM, ("",), (3, 6)),
        )

    def _between(
        self, at: float, begins: Action, ends: Action, subjects: tuple[str, ...], lasts: tuple[float, float]
    ) -> list[Step]:
        subject = self.rng.choice(subjects)
        return [Step(at, begins, subject), Step(at + self.rng.uniform(*lasts), ends, subject)]
