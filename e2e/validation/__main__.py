"""Judge random objects beside the API server, with default gates and with all: `make fuzz-validation`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from dovetail.core.features import Features
from e2e.harness.controlplane import ControlPlane
from e2e.harness.programs import Options
from e2e.validation.comparison import compare
from e2e.validation.gates import ALL_ON, GATES, prepare


async def main(number: int, seed: int) -> int:
    """The number of objects on which the two differ."""
    found = 0
    for name, gates, features in (("default gates", {}, Features()), ("all gates on", GATES, ALL_ON)):
        options = Options(gates=gates, controllers=(), scheduler=False, kwok=False, audit=False)
        async with ControlPlane(options) as plane:
            await prepare(plane.kube)
            start = time.monotonic()
            differences, outcomes = await compare(plane.kube, features, seed, number)
        for difference in differences[:20]:
            print(difference)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        seconds = time.monotonic() - start
        print(f"{name}: {number} objects in {seconds:.0f} s ({counts}); {len(differences)} differ")
        found += len(differences)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(1 if asyncio.run(main(arguments.number, arguments.seed)) else 0)
