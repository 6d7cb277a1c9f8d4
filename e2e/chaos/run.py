"""One run from beginning to end, and its verdict."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from typing_extensions import override

from e2e.chaos import world
from e2e.chaos.judge import Judge, Snapshot
from e2e.chaos.ledger import Account, close_account
from e2e.chaos.script import SHARED_CLAIMS, Action, Shape, Step, write_script
from e2e.chaos.stage import Stage
from e2e.harness import OPERATOR_USER, Cluster, Object, allocated, condition, running
from e2e.tests.claims import reserved_for

SETTLE_SECONDS = 150.0
"""How long it may take until every pod that can run runs; a pod is given devices four times a minute."""

CLEAN_SECONDS = 60.0


@dataclass(slots=True)
class Verdict:
    """What happened and what was wrong."""

    pods: int = 0
    ran: int = 0
    steps: int = 0
    audits: int = 0
    megabytes: int = 0
    """The most that an operator took."""
    account: Account | None = None
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Nothing was wrong."""
        return not self.wrong

    @override
    def __str__(self) -> str:
        pods = f"{self.pods} pods of which {self.ran} were seen running"
        lines = [
            f"{self.steps} steps, {pods}, {self.audits} audits; an operator took {self.megabytes} MB at most",
            str(self.account),
            *(f"WRONG: {sentence}" for sentence in self.wrong),
        ]
        return "\n".join([*lines, "all held" if self.holds else "NOT all held"])


class Run:
    """A run on a cluster that it has to itself; `say` is told of every step."""

    def __init__(self, cluster: Cluster, *, seed: int, duration: float, say: Callable[[str], None]) -> None:
        self.script = write_script(seed, duration)
        pods = sum(step.shape is not None for step in self.script)
        self.verdict = Verdict(pods=pods, steps=len(self.script))
        self._cluster = cluster
        self._stage = Stage(cluster)
        self._judge = Judge(cluster.kube, self._stage.absent)
        self._say = say

    async def __call__(self) -> Verdict:
        """Play the script, let everything come to rest, and judge."""
        await self._stage.set()
        mark = self._cluster.plane.audit.mark()
        watching = [asyncio.create_task(each) for each in (self._judge.run(), self._stage.watch_memory())]
        try:
            await self._play()
            self._say("the disturbances end")
            await self._stage.end_disturbances()
            await self._come_to_rest()
        finally:
            for task in watching:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*watching)
        events = [operator.events for operator in self._stage.operators.values()]
        account = close_account(
            self._cluster.plane.audit.writes(OPERATOR_USER, since=mark),
            events,
            interruptions=self._stage.interruptions,
            consumers=Counter(step.claim for step in self.script if step.claim),
        )
        self.verdict.account = account
        self.verdict.audits = self._judge.audits
        self.verdict.megabytes = round(self._stage.most_memory)
        self.verdict.ran = len(self._judge.ran)
        self.verdict.wrong += self._judge.wrong
        if not account.holds:
            self.verdict.wrong.append(f"too many writes: {account}")
        return self.verdict

    async def _play(self) -> None:
        """Pods, disturbances and attacks are lines of steps of their own: none waits for another."""
        began = monotonic()
        attacks = [step for step in self.script if step.action in (Action.ATTACK, Action.RETREAT)]
        crowd = [step for step in self.script if step.subject.startswith("p")]
        rest = [step for step in self.script if step not in {*crowd, *attacks}]
        async with asyncio.TaskGroup() as group:
            for steps in (crowd, rest, attacks):
                group.create_task(self._follow(steps, began))

    async def _follow(self, steps: Sequence[Step], began: float) -> None:
        for step in steps:
            await asyncio.sleep(max(began + step.at - monotonic(), 0))
            self._say(str(step))
            await self._stage.perform(step)

    async def _come_to_rest(self) -> None:
        """Whoever can run runs; those that ran make room, until only those are left that never can."""
        while True:
            pods = await self._until_nobody_could_run()
            done = [body["metadata"]["name"] for body in pods if running(body) or world.is_over(body)]
            waiting = [body for body in pods if body["metadata"]["name"] not in done]
            if self.verdict.wrong or all(world.shape_of(body) is Shape.IMPOSSIBLE for body in waiting):
                break
            self._say(f"{len(done)} pods run and go, {len(waiting)} wait for what they have")
            await self._stage.delete_pods(done)
        self._check_reasons(waiting)
        self.verdict.wrong += self._stage.oversize
        await self._stage.end_attacks()
        await self._stage.delete_pods([body["metadata"]["name"] for body in pods])
        await self._until_all_is_free()

    async def _until_nobody_could_run(self) -> tuple[Object, ...]:
        deadline = monotonic() + SETTLE_SECONDS
        while True:
            found = await self._judge.look()
            pods = tuple(self._mine(found, "Pod"))
            late = world.could_run(pods, found["ResourceClaim"])
            if not late:
                return pods
            if monotonic() > deadline:
                self.verdict.wrong += [f"pod {name} could run, and does not" for name in late]
                return pods
            await asyncio.sleep(1)

    def _check_reasons(self, waiting: Sequence[Object]) -> None:
        """A pod that cannot run says why."""
        for body in waiting:
            told = condition(body, "dovetail.dev/Allocated") or {}
            if told.get("status") != "False" or not told.get("message"):
                self.verdict.wrong.append(f"pod {body['metadata']['name']} waits without a reason")

    async def _until_all_is_free(self) -> None:
        """Generated claims go, shared ones are free, and the audit finds nothing at all."""
        deadline = monotonic() + CLEAN_SECONDS
        while True:
            found = await self._judge.look()
            left = [claim for claim in self._mine(found, "ResourceClaim") if _is_left_over(claim)]
            if not left and self._judge.is_clean:
                return
            if monotonic() > deadline:
                names = ", ".join(claim["metadata"]["name"] for claim in left) or "see the audit"
                self.verdict.wrong.append(f"not free though all pods are gone: {names}")
                return
            await asyncio.sleep(1)

    def _mine(self, found: Snapshot, kind: str) -> list[Object]:
        return [item for item in found[kind] if item["metadata"]["namespace"] == self._stage.namespace]


def _is_left_over(claim: Object) -> bool:
    is_shared = claim["metadata"]["name"] in SHARED_CLAIMS
    return not is_shared or allocated(claim) or bool(reserved_for(claim))
