"""Fixtures of the tests that run on the real control plane."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from e2e import build
from e2e.harness.cluster import Cluster, ClusterFactory
from e2e.harness.controlplane import ControlPlane
from e2e.harness.oracle import Oracle
from e2e.harness.processes import end_all
from e2e.harness.programs import Options

_HERE = Path(__file__).parent
_KEPT_LOGS = _HERE.parent / "build" / "e2e-logs"
_FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run everything below `e2e/` in one event loop, and mark it."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the programs before the first test, so that no test's time limit counts it."""
    mine = any(_HERE in item.path.parents for item in session.items)
    if mine and not session.config.option.collectonly:
        build.bin_directory()
        if any(item.get_closest_marker("oldest") for item in session.items):
            build.bin_directory(build.OLDEST_KUBERNETES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember on the test whether it failed, for the fixtures that keep logs."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """Whatever a test forgot to end is ended with the session."""
    yield
    end_all()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[ControlPlane]:
    """The control plane that most tests share: default gates, all programs."""
    plane = await _started(Options())
    yield plane
    await plane.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(shared_plane: ControlPlane, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The shared control plane, empty but for what the chart installs, and emptied after the test."""
    mine = Cluster(shared_plane)
    yield mine
    await _put_away(mine, request)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _special_planes() -> AsyncIterator[list[ControlPlane]]:
    planes: list[ControlPlane] = []
    yield planes
    for plane in planes:
        await plane.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def cluster_with(
    _special_planes: list[ControlPlane], request: pytest.FixtureRequest
) -> AsyncIterator[ClusterFactory]:
    """Gives a test a cluster with options of its own.

    It is called as `await cluster_with(Options(gates={…}))`.
    The last such plane is kept for the next test that wants the same.
    """
    made: list[Cluster] = []

    async def give(options: Options) -> Cluster:
        if not _special_planes or _special_planes[0].options != options:
            if _special_planes:
                await _special_planes.pop().stop()
            _special_planes.append(await _started(options))
        made.append(Cluster(_special_planes[0]))
        return made[-1]

    yield give
    for mine in made:
        await _put_away(mine, request)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """kube-scheduler's allocator and CEL environment."""
    with Oracle() as asked:
        yield asked


async def _started(options: Options) -> ControlPlane:
    plane = ControlPlane(options)
    await plane.start()
    await Cluster(plane).install()
    return plane


async def _put_away(mine: Cluster, request: pytest.FixtureRequest) -> None:
    if request.node.stash.get(_FAILED, False):
        _keep_logs(mine, request)
    await mine.clean()


def _keep_logs(mine: Cluster, request: pytest.FixtureRequest) -> None:
    """Copy the logs of a failed test to where a person finds them, and show the operator's."""
    place = _KEPT_LOGS / re.sub(r"[^\w.-]+", "_", request.node.nodeid)
    shutil.copytree(mine.plane.home / "logs", place, dirs_exist_ok=True)
    for operator in mine.operators:
        request.node.add_report_section(
            "call", f"end of {operator.program.name}'s log", operator.program.tail()
        )
    request.node.add_report_section("teardown", "logs of all programs", str(place))
