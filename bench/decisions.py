"""What the limits of a decision cost: the same decision with and without watchdog and journal."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time, sleep

from dovetail.api.pods import Pod
from dovetail.core.budget import Budget
from dovetail.core.decisions import Decision, Place
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.world import World
from dovetail.services.costs import Limits, Restraint, content_of_claims
from dovetail.services.digests import Digests
from tests.operator.worlds import claim, pairs, pod

ROUNDS = 61
"""Short and many: what else the machine does falls on both alike."""

LIMITS = Limits(2_000_000, 2.0)


def main() -> int:
    """Measure, print, write; 0 where a decision costs at most a tenth more."""
    options = argparse.ArgumentParser()
    options.add_argument("--decisions", type=int, default=50)
    count = options.parse_args().decisions
    world, raw, digests = World(Features()), pod(claim="mine"), Digests()
    raw["metadata"]["uid"] = "p"
    wish = claim("mine")
    # As the API server gives them out: what a claim asks for is worked out once for each version.
    wish["metadata"] |= {"uid": "c", "resourceVersion": "1"}
    for body in (*pairs(8), wish, raw):
        world.put(body["kind"], body)
    settings, restraint = PlanSettings(), Restraint()

    def bare() -> Decision:
        return plan_pod(world, Pod.parse(raw), settings=settings, budget=Budget(LIMITS.steps))

    def limited() -> Decision:
        content = content_of_claims(world, raw, digests)
        restraint.rest(content)
        return restraint.decide(world, content, LIMITS, bare)

    if not isinstance(limited(), Place):
        return 1
    rounds = [(_microseconds(bare, count), _microseconds(limited, count)) for _ in range(ROUNDS)]
    without = median(pair[0] for pair in rounds)
    ratio = median(pair[1] / pair[0] for pair in rounds)
    figures = {
        "without_us": round(without, 2),
        "more_us": round(median(pair[1] - pair[0] for pair in rounds), 2),
        "ratio": round(ratio, 3),
        "idle_cpu": _idle(),
    }
    print(json.dumps(figures))
    target = Path("build/bench/decisions.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(figures))
    restraint.close()
    return 0 if ratio <= 1.1 else 1


def _microseconds(work: Callable[[], Decision], count: int) -> float:
    before = process_time()
    for _ in range(count):
        work()
    return (process_time() - before) / count * 1e6


def _idle(seconds: float = 5.0) -> float:
    """The part of a CPU that is used while nothing is decided."""
    before = process_time()
    sleep(seconds)
    return round((process_time() - before) / seconds, 5)


if __name__ == "__main__":
    raise SystemExit(main())
