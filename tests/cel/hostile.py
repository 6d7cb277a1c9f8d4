"""Hostile expressions on hostile devices: none may take much more than its budget; `make fuzz-hostile N=…`.

Each is compiled and run under a budget of `BUDGET` seconds of CPU time.
It fails that takes more than `MOST_SECONDS`, or more than `MOST_MEGABYTES` on top of what the process had.
The work is done in a child process whose address space is bounded, so that what blows up ends the child,
and not the machine; the child says before each expression which it is.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Final

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import Failure, FailureKind, compile_attribute, compile_selector
from dovetail.core.cel.engine import UNFORESEEN, forget_compiled
from dovetail.core.devices import DeviceView
from dovetail.core.quantity import Quantity
from dovetail.core.values import AttributeValue, DeviceKey, Kind
from dovetail.errors import ExpressionInvalid
from tests.cel.devices import DOMAIN, LISTS
from tests.cel.hostile_grammar import Hostile

BUDGET: Final = 0.2
MOST_SECONDS: Final = 0.5
MOST_MEGABYTES: Final = 200
TRIES: Final = 3
"""What takes too long is tried again: CPU time grows, too, where others use caches and cores."""

GIVEN_UP_AFTER: Final = 20
"""Seconds after which an expression that does not end is killed."""


# -- Devices --------------------------------------------------------------------------------------


def hostile_devices() -> tuple[DeviceView, ...]:
    """Devices with all that the API allows: 32 attributes, texts of 64 characters, lists of 64."""
    return tuple(_device(text) for text in ("a" * 64, "😀" * 16, 'a"\\\n' * 16, ""))


def _device(text: str) -> DeviceView:
    version = "1.0.0-" + "1.a" * 19
    attributes = {
        f"{DOMAIN}/text": AttributeValue(Kind.STRING, (text,)),
        f"{DOMAIN}/number": AttributeValue(Kind.INT, ((1 << 63) - 1,)),
        f"{DOMAIN}/flag": AttributeValue(Kind.BOOL, (True,)),
        f"{DOMAIN}/version": AttributeValue(Kind.VERSION, (version,)),
        f"{DOMAIN}/texts": AttributeValue(Kind.STRING, (text,) * 64, True),
        f"{DOMAIN}/numbers": AttributeValue(Kind.INT, tuple(range(64)), True),
        f"{DOMAIN}/versions": AttributeValue(Kind.VERSION, (version,) * 64, True),
    }
    attributes |= {f"d{index}.example.com/a": AttributeValue(Kind.STRING, (text,)) for index in range(25)}
    capacity = {f"{DOMAIN}/c{index}": Quantity.parse("1e4000" if index else "80Gi") for index in range(32)}
    return DeviceView(DeviceKey(DOMAIN, "pool", "gpu"), attributes, capacity)


# -- One expression -------------------------------------------------------------------------------


OUTCOMES: Final = ("refused", "value", "error", "costs too much", "unforeseen")
"""How an expression ends on its devices; the last that occurs is told. Or it is `cut`."""


def outcome(expression: str, devices: Sequence[DeviceView], seconds: float = BUDGET) -> str:
    """How an expression ends under a budget of so many seconds of CPU time."""
    end = time.process_time() + seconds
    budget = Budget(steps=1 << 60, is_over=lambda: time.process_time() > end)
    kinds = []
    try:
        for compiler in (compile_attribute, compile_selector):
            with contextlib.suppress(ExpressionInvalid):
                program = compiler(expression, LISTS, budget)
                evaluate = program.derive if compiler is compile_attribute else program.matches
                kinds += [_kind(evaluate(device, budget)) for device in devices]
    except BudgetSpent:
        return "cut"
    return max(kinds, default=OUTCOMES[0], key=OUTCOMES.index)


def _kind(found: object) -> str:
    if not isinstance(found, Failure):
        return "value"
    if UNFORESEEN in found.message:
        return "unforeseen"
    return "costs too much" if found.kind is FailureKind.COST else "error"


@dataclass(slots=True)
class Worst:
    """What was found: how expressions ended, the worst figures, and whatever broke a limit."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    megabytes: float = 0.0
    broken: list[str] = field(default_factory=list)

    def add(self, expression: str, ended: str, seconds: float, megabytes: float) -> None:
        """Take one expression in."""
        self.outcomes[ended] += 1
        self.seconds, self.megabytes = max(self.seconds, seconds), max(self.megabytes, megabytes)
        if ended == "unforeseen" or seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES:
            self.broken.append(f"{ended}, {seconds:.2f} s, {megabytes:.0f} MB: {expression}")


def _work(seed: int, count: int, to: Connection) -> None:
    """In the child: say each expression, try it, say what it took."""
    devices, hostile = hostile_devices(), Hostile(Random(seed))
    outcome("device.driver == 'a'", devices, 60)
    bound_memory()
    for _ in range(count):
        expression = hostile.expression()
        to.send(expression)
        tries = [_tried(expression, devices)]
        while tries[-1][1] > MOST_SECONDS and len(tries) < TRIES:
            tries.append(_tried(expression, devices))
        to.send(min(tries, key=lambda tried: tried[1]))
    to.send(None)


def _tried(expression: str, devices: Sequence[DeviceView]) -> tuple[str, float, float]:
    """How it ended, seconds of CPU time, megabytes."""
    forget_compiled()
    before, started = peak(), time.process_time()
    ended = outcome(expression, devices)
    return ended, time.process_time() - started, peak() - before


def bound_memory() -> None:
    """Let the process take so much more than it has; what takes more than that fails with MemoryError."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + 3 * MOST_MEGABYTES * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak() -> float:
    """The most memory that the process has ever had, in megabytes, the counter set back by reading it."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return int(lines["VmHWM"].split()[0]) / 1000


def run(seed: int, count: int, worst: Worst) -> None:
    """Try so many expressions of a seed, in a child process that is given up where it does not end."""
    context = get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_work, args=(seed, count, there), daemon=True)
    child.start()
    there.close()
    expression = ""
    try:
        while here.poll(GIVEN_UP_AFTER):
            said = here.recv()
            if said is None:
                return
            if isinstance(said, str):
                expression = said
            else:
                worst.add(expression, *said)
        worst.broken.append(f"does not end: {expression}")
    except EOFError:
        worst.broken.append(f"the process died: {expression}")
    finally:
        child.kill()
        child.join()


def main(argv: Sequence[str] | None = None) -> int:
    """Try so many hostile expressions; the status says whether all kept the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    worst = Worst()
    for start in range(0, options.count, 500):
        run(seed + start, min(500, options.count - start), worst)
        print(f"{worst.outcomes.total()} done, {len(worst.broken)} broke a limit", flush=True)
    for broken in sorted(worst.broken, key=len)[:20]:
        print(broken[:2000])
    print(
        f"{worst.outcomes.total()} expressions: {dict(worst.outcomes.most_common())}; "
        f"at most {worst.seconds:.2f} s of CPU and {worst.megabytes:.0f} MB; "
        f"{len(worst.broken)} broke a limit"
    )
    return 1 if worst.broken else 0


if __name__ == "__main__":
    sys.exit(main())
