"""The rule that keeps a device which two claims hold from a third."""

import asyncio
from collections import deque
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.api.kinds import CLAIM, TAINT_RULE
from dovetail.cluster.pen import Pen
from dovetail.cluster.wire import Wire
from dovetail.core.ownership import left_over
from dovetail.core.quarantine import quarantine_rule, quarantined, rule_name
from dovetail.core.values import DeviceKey
from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.bodies import copied
from dovetail.embedded.store import Change as StoreChange
from dovetail.services import waiting
from dovetail.services.clashes import Clashes
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Picture
from dovetail.services.quarantine import Quarantine
from tests.operator.worlds import claim
from tests.support.servers import connected

DEVICE = DeviceKey("gpu.example.com", "n1", "gpu-0")
CLAIMS = ("a", "b")


class Event(Enum):
    """What can happen while a rule is being written or deleted."""

    GIVE_A = ("a", True)
    GIVE_B = ("b", True)
    TAKE_A = ("a", False)
    TAKE_B = ("b", False)
    RULE_GOES = "somebody deletes the rule"
    WATCH = "the watch shows all that happened"


def test_a_rule_is_about_one_device() -> None:
    """Device to rule and back; another device has another rule."""
    assert quarantined(quarantine_rule(DEVICE)) == DEVICE
    assert rule_name(DEVICE) != rule_name(DeviceKey("gpu.example.com", "n1", "gpu-1"))


def test_rules_of_others_are_no_quarantine() -> None:
    """Neither a rule without the label, nor one whose name and device do not belong together."""
    rule = quarantine_rule(DEVICE)
    assert quarantined(rule | {"metadata": {"name": rule["metadata"]["name"]}}) is None
    assert quarantined(rule | {"spec": rule["spec"] | {"deviceSelector": {"driver": "other"}}}) is None


def test_ownerships_leave_it_alone() -> None:
    """It belongs to no DeviceOwnership, so that none deletes it."""
    assert left_over("gpus", [quarantine_rule(DEVICE)], frozenset()) == ()


class Scene:
    """A quarantine at work on an API server; the picture learns of changes when the test lets it.

    `events` are what others do and the watch brings, each one just before the next write of ours is served,
    or when nothing is left to be written; those `during` come together, before a delete.
    """

    def __init__(
        self, server: EmbeddedCluster, wire: Wire, events: Sequence[Event], during: Sequence[Event]
    ) -> None:
        self.server = server
        self.picture = Picture()
        self.clashes = Clashes()
        self.metrics = Metrics()
        self.quarantine = Quarantine(
            picture=self.picture,
            pen=Pen(wire, permit=lambda: None),
            clashes=self.clashes,
            metrics=self.metrics,
            serves_rules=lambda: True,
            clock=monotonic,
        )
        self.picture.follow(self.clashes.follow)
        self.picture.follow(self.quarantine.follow)
        self._events = deque(events)
        self._unseen: deque[StoreChange] = deque()
        server.store.listen(self._unseen.append)
        for name in CLAIMS:
            server.create(claim(name))
        self._happen(Event.WATCH)
        server.faults.before("", "devicetaintrules", self.step, times=1000)
        server.faults.before("DELETE", "devicetaintrules", lambda: [*map(self._happen, during)])

    def step(self) -> bool:
        """Let the next event happen; False where none is left."""
        if not self._events:
            return False
        self._happen(self._events.popleft())
        return True

    def _happen(self, event: Event) -> None:
        if event is Event.WATCH:
            while self._unseen:
                self._hear(self._unseen.popleft())
        elif event is Event.RULE_GOES:
            for rule in self.server.objects("DeviceTaintRule"):
                self.server.delete("DeviceTaintRule", rule["metadata"]["name"])
        else:
            name, is_given = event.value
            device = {"driver": DEVICE.driver, "pool": DEVICE.pool, "device": DEVICE.device}
            result = {"request": "gpu", **device}
            status = {"allocation": {"devices": {"results": [result]}}} if is_given else {}
            self.server.replace(self.server.get("ResourceClaim", name) | {"status": status}, status=True)

    def _hear(self, change: StoreChange) -> None:
        kind = {"ResourceClaim": CLAIM, "DeviceTaintRule": TAINT_RULE}.get(change.kind.name)
        if kind is not None:
            see = self.picture.forget if change.type == "DELETED" else self.picture.see
            see(kind, copied(change.body))

    async def idle(self) -> None:
        """Nothing is marked, under way, or still to come."""
        while True:
            while not self.quarantine.desk.queue.is_idle:  # noqa: ASYNC110 - the queue tells nobody
                await asyncio.sleep(0.001)
            if not self.step() and not self._unseen:
                return
            if not self._events:
                self._happen(Event.WATCH)


async def _play(events: Sequence[Event], during: Sequence[Event] = ()) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "BURST", 1000)
        async with EmbeddedCluster() as server:
            patch.setenv("KUBECONFIG", str(server.kubeconfig(Path(directory) / "kubeconfig")))
            async with connected() as wire:
                scene = Scene(server, wire, events, during)
                scene.quarantine.desk.open()
                work = asyncio.create_task(scene.quarantine.desk.run())
                try:
                    async with asyncio.timeout(10):
                        await scene.idle()
                finally:
                    work.cancel()
                _judge(scene)


def _judge(scene: Scene) -> None:
    held = sum("allocation" in body.get("status", {}) for body in scene.server.objects("ResourceClaim"))
    rules = scene.server.objects("DeviceTaintRule")
    if held != 1:
        assert len(rules) == (1 if held else 0)
    failed = [
        sample for metric in scene.metrics.failures.collect() for sample in metric.samples if sample.value
    ]
    assert not failed


CLASH = (Event.GIVE_A, Event.GIVE_B, Event.WATCH)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(Event), max_size=14))
def test_the_taint_follows_the_holders_whatever_happens_during_a_write(events: list[Event]) -> None:
    """Held by two: a rule; by nobody: none; nothing fails, wherever claims and watches come in between."""
    asyncio.run(_play(events))


@pytest.mark.parametrize(
    "during",
    [
        (Event.WATCH,),
        (Event.GIVE_A, Event.WATCH, Event.TAKE_A, Event.WATCH),
        (Event.GIVE_A, Event.GIVE_B, Event.WATCH),
        (Event.RULE_GOES, Event.WATCH),
    ],
    ids=lambda during: "-".join(event.name for event in during),
)
def test_what_the_watch_shows_during_the_delete_is_not_lost(during: tuple[Event, ...]) -> None:
    """Both holders have let go and the rule is being deleted when the watch shows the device again."""
    asyncio.run(_play([*CLASH, Event.TAKE_A, Event.TAKE_B, Event.WATCH], during))
