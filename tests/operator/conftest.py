"""The real operator, in a thread of its own, against the embedded API server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dovetail.app import running
from dovetail.embedded import EmbeddedCluster
from dovetail.handlers.context import Context
from dovetail.services.settings import Settings

OperatorStarter = Callable[..., Awaitable[Context]]

QUICK: dict[str, Any] = {
    "listen": "",
    "claim_generation": "always",
    "release": "never",
    "lease_seconds": 6.0,
    "log_level": "warning",
}
"""Settings that make a test quick; a test names those that it is about."""


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """An API server with a scheduler and a kubelet, and without a claim controller."""
    async with EmbeddedCluster(scheduler=True, kubelet=True) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        yield server


@pytest.fixture
async def controlled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """The same with a claim controller, as kube-controller-manager has one."""
    async with EmbeddedCluster(scheduler=True, kubelet=True, claim_controller=True) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        yield server


@pytest.fixture
async def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """The API server alone: nobody binds, runs or frees anything but the test."""
    async with EmbeddedCluster() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        yield server


@pytest.fixture
async def operator() -> AsyncIterator[OperatorStarter]:
    """Starts operators that stop with the test; a test may set `release` and the like."""
    async with AsyncExitStack() as stack:

        async def start(**settings: Any) -> Context:
            return await stack.enter_async_context(running(Settings(**QUICK | settings)))

        yield start
