"""Equal inputs give equal answers: in every process, and for everything that an answer says."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.explain import explain
from dovetail.core.outcome import DoesNotFit, RequestInvalid
from tests.support.cases import AllocationCase
from tests.support.worlds import make_world

ROOT = Path(__file__).parent.parent.parent
WORLDS = 80


def answers() -> str:
    """Everything that is said about some worlds: allocations with share identities, reasons, sentences."""
    told = []
    for seed in range(WORLDS):
        world = make_world(Random(seed), size=1 + seed % 2)
        case = AllocationCase(str(seed), {**world, "node": world["nodes"][0]})
        nodes = tuple(node["metadata"]["name"] for node in world["nodes"])
        try:
            outcome = place(case.inventory(world["nodes"]), case.claims(), nodes, budget=Budget.unlimited())
        except RequestInvalid as invalid:
            told.append(str(invalid))
            continue
        told.append(repr(outcome))
        if isinstance(outcome, DoesNotFit):
            told.append(explain(outcome))
    return "\n".join(told)


def test_no_answer_depends_on_the_hash_seed() -> None:
    """Two processes whose sets and dictionaries are in other orders say the same, word for word."""
    said = [_said_with(seed) for seed in ("1", "2024")]

    assert said[0].count("\n") >= WORLDS - 1
    assert said[0] == said[1]


def _said_with(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"}
    code = "from tests.core.test_determinism import answers; print(answers())"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True, cwd=ROOT
    )
    return run.stdout


def test_a_repeated_decision_is_the_same_to_the_last_share_id() -> None:
    """Identities of shares follow from the claim, so that writing a decision twice is harmless."""
    assert answers() == answers()
