"""Record what a real API server answers: `python -m tests.embedded.record`.

Needs the programs of `e2e/controlplane`; etcd and kube-apiserver run while it lasts, on the loopback.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp

from e2e.harness.controlplane import ControlPlane
from e2e.harness.programs import Options
from tests.embedded.conversation import converse

RECORDED = Path(__file__).parent.parent / "data" / "embedded" / "conversation.json"

ALONE = Options(controllers=(), scheduler=False, kwok=False, audit=False)
"""An API server by itself: nothing else answers to what is written."""


async def real_answers() -> dict[str, Any]:
    """The conversation with a real API server that this starts and ends."""
    async with ControlPlane(ALONE) as plane:
        headers = {"Authorization": f"Bearer {plane.kube.token}"}
        connector = aiohttp.TCPConnector(ssl=False)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            return await converse(session, plane.server)


if __name__ == "__main__":
    answers = asyncio.run(real_answers())
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")
