"""An embedded cluster and a client for each test."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from dovetail.embedded import EmbeddedCluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """An API server without stand-ins, apart from the garbage collector."""
    async with EmbeddedCluster() as running:
        yield running


@pytest.fixture
async def session(cluster: EmbeddedCluster) -> AsyncIterator[aiohttp.ClientSession]:
    """A client whose URLs begin at the server."""
    async with aiohttp.ClientSession(cluster.url) as client:
        yield client
