"""Usual pods beside pods whose searches are cut: `make bench-fairness`.

Twenty older pods have claims for which no search ends in time, in another namespace, in the same one, or not
at all; meanwhile usual pods come one after the other.
The operator is a process of its own, the API server is the embedded one.
Figures go to `build/bench/fairness.json`; the exit status says whether the bars hold.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from dovetail.embedded import EmbeddedCluster
from tests.operator.worlds import Body, claim, hard_claim, hard_hardware, is_gated, pairs, pod, waits_for

ROOT: Final = Path(__file__).parent.parent
REPORT: Final = ROOT / "build" / "bench" / "fairness.json"

CUT_PODS: Final = 20
PODS: Final = 40
PAUSE_SECONDS: Final = 0.5
TIMES_ALONE: Final = 2.0
"""How much longer a usual pod may take beside pods whose searches are cut, by the median."""


@dataclass(frozen=True, slots=True)
class Row:
    """One arm: seconds from the creation of a usual pod until its gate is gone."""

    beside: str
    median: float
    p90: float
    longest: float
    ratio: float = 1.0

    @property
    def holds(self) -> bool:
        """Whether the bar holds."""
        return self.ratio <= TIMES_ALONE


def main() -> int:
    """Measure all arms, tell them, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    pods = parser.parse_args().pods
    rows = [asyncio.run(_measure(beside, pods)) for beside in ("nobody", "another namespace", "the same one")]
    rows = [Row(**asdict(row) | {"ratio": round(row.median / rows[0].median, 2)}) for row in rows]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    for row in rows:
        verdict = "holds" if row.holds else f"FAILS: at most {TIMES_ALONE}"
        print(
            f"{CUT_PODS} cut pods in {row.beside}: median {row.median:.3f} s, p90 {row.p90:.3f} s, "
            f"longest {row.longest:.3f} s, {row.ratio} times alone: {verdict}"
        )
    return 0 if all(row.holds for row in rows) else 1


async def _measure(beside: str, pods: int) -> Row:
    async with EmbeddedCluster() as cluster, _operator(cluster):
        cluster.load(*pairs(pods), *hard_hardware())
        if beside != "nobody":
            await _cut_pods(cluster, "default" if beside == "the same one" else "other")
        taken = sorted([await _time(cluster, index) for index in range(pods)])
    return Row(beside, statistics.median(taken), taken[int(0.9 * len(taken))], taken[-1])


async def _cut_pods(cluster: EmbeddedCluster, namespace: str) -> None:
    if namespace != "default":
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for body in _hard_pods():
        cluster.create(body | {"metadata": body["metadata"] | {"namespace": namespace}})
    await cluster.wait_for("Pod", waits_for("SearchCut"), timeout_seconds=60)


def _hard_pods() -> Iterator[Body]:
    for index in range(CUT_PODS):
        yield hard_claim(f"hard-{index}", index)
        yield pod(f"hard-{index}", claim=f"hard-{index}")


async def _time(cluster: EmbeddedCluster, index: int) -> float:
    """How long one usual pod waits for its devices."""
    name = f"usual-{index}"
    await asyncio.sleep(PAUSE_SECONDS)
    cluster.create(claim(name))
    began = perf_counter()
    cluster.create(pod(name, claim=name))
    await cluster.wait_for(
        "Pod", lambda body: body["metadata"]["name"] == name and not is_gated(body), timeout_seconds=120
    )
    return perf_counter() - began


@asynccontextmanager
async def _operator(cluster: EmbeddedCluster) -> AsyncIterator[None]:
    """`dovetail run` as a process while the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "KUBECONFIG": str(cluster.kubeconfig(Path(folder) / "kubeconfig")),
            "DOVETAIL_LISTEN": "",
            "DOVETAIL_LEADER_ELECTION": "false",
            "DOVETAIL_LOG_LEVEL": "warning",
            "DOVETAIL_CLAIM_GENERATION": "always",
            "DOVETAIL_RELEASE": "never",
        }
        process: Any = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dovetail", "run", env=environment
        )
        try:
            yield
        finally:
            process.terminate()
            await process.wait()


if __name__ == "__main__":
    sys.exit(main())
