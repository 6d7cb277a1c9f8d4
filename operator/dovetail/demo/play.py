"""The demo from its first line to its verdict."""

import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from dovetail.app import running
from dovetail.demo import world
from dovetail.demo.drawing import draw
from dovetail.demo.proof import Body, Evidence, condition_of, free_gpus, most_gpus, problems
from dovetail.demo.telling import told
from dovetail.demo.world import IMPOSSIBLE, NODES, WISHES
from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.store import Change
from dovetail.errors import DovetailError
from dovetail.services.settings import Settings

PATIENCE_SECONDS = 8.0
"""How long a pod may take to get where the story wants it."""


class DemoFailed(DovetailError):
    """The story cannot go on."""


class Voice:
    """Where the story is told. In a pipe lines are not broken, so that they can be searched."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str = "", style: str = "", *, indent: int = 0) -> None:
        """Tell one line."""
        if self._console.is_terminal:
            self._console.print(Padding(Text(line, style=style), (0, 0, 0, indent)))
        else:
            self._console.print(Text(" " * indent + line), soft_wrap=True)

    def show(self, picture: RenderableType) -> None:
        """Show a drawing."""
        self._console.print(picture)


def new_cluster() -> EmbeddedCluster:
    """The cluster of the demo, with everything that a real one brings along."""
    return EmbeddedCluster(claim_controller=True, scheduler=True, kubelet=True)


async def play(
    console: Console, cluster: EmbeddedCluster, *, patience_seconds: float = PATIENCE_SECONDS
) -> int:
    """Tell the story; 0 where everything that it shows is so, else 1."""
    began = time.monotonic()
    voice = Voice(console)
    try:
        async with cluster:
            _set_the_scene(voice, cluster)
            async with _operator(cluster):
                with _story(voice, cluster):
                    await _happen(voice, cluster, patience_seconds)
                evidence = gathered(cluster)
    except DovetailError as error:
        voice.say(f"The demo failed: {error}", "bold red")
        return 1
    return _conclude(voice, evidence, seconds=time.monotonic() - began)


def _set_the_scene(voice: Voice, cluster: EmbeddedCluster) -> None:
    cluster.load(*world.nodes(), *world.slices(), *world.classes())
    for template in world.templates():
        cluster.create(template)
    voice.say("Two nodes, as their drivers publish them:", "bold")
    for name, (machine, remark) in NODES.items():
        voice.say(f"{name} ({machine}): {remark}", indent=2)
    voice.say(f"Every pod wants its devices on one {world.ATTRIBUTE}.")
    voice.say()


@asynccontextmanager
async def _operator(cluster: EmbeddedCluster) -> AsyncIterator[None]:
    """The real operator, with its defaults, whatever the environment says."""
    defaults = {name: field.get_default() for name, field in Settings.model_fields.items()}
    settings = Settings(**(defaults | {"listen": "", "lease_namespace": "kube-system"}))
    with tempfile.TemporaryDirectory() as folder, _kubeconfig(cluster.kubeconfig(Path(folder) / "config")):
        async with running(settings):
            yield


@contextmanager
def _kubeconfig(path: Path) -> Iterator[None]:
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["KUBECONFIG"]
        else:
            os.environ["KUBECONFIG"] = before


@contextmanager
def _story(voice: Voice, cluster: EmbeddedCluster) -> Iterator[None]:
    """Tell every change that means something, at the moment it is written."""

    def tell(change: Change) -> None:
        if line := told(change.kind.name, change.before, change.body):
            voice.say(line, indent=2)

    cluster.store.listen(tell)
    try:
        yield
    finally:
        cluster.store.unlisten(tell)


async def _happen(voice: Voice, cluster: EmbeddedCluster, patience_seconds: float) -> None:
    for wish in WISHES:
        voice.say(f"Pod {wish.pod} arrives, gated: {wish.words}", "bold")
        cluster.create(world.pod(wish))
        await _seen(cluster, wish.pod, is_running, "does not run", patience_seconds)
    voice.say(f"Pod {IMPOSSIBLE.pod} arrives, gated: {IMPOSSIBLE.words}", "bold")
    cluster.create(world.pod(IMPOSSIBLE))
    await _seen(cluster, IMPOSSIBLE.pod, is_refused, "gets no reason why it has to wait", patience_seconds)


async def _seen(
    cluster: EmbeddedCluster, name: str, is_so: Callable[[Body], bool], failure: str, patience_seconds: float
) -> None:
    try:
        await cluster.wait_for(
            "Pod",
            lambda body: body["metadata"]["name"] == name and is_so(body),
            timeout_seconds=patience_seconds,
        )
    except TimeoutError as error:
        said = condition_of(cluster.get("Pod", name)).get("message", "no reason is given")
        raise DemoFailed(f"pod {name} {failure} ({said})") from error


def is_running(pod: Body) -> bool:
    """Whether the pod runs."""
    return bool(pod["status"].get("phase") == "Running")


def is_refused(pod: Body) -> bool:
    """Whether the pod has been told that it has to wait."""
    return bool(condition_of(pod).get("status") == "False")


def gathered(cluster: EmbeddedCluster) -> Evidence:
    """What the API server holds now."""
    return Evidence(
        pods=tuple(cluster.objects("Pod")),
        claims=tuple(cluster.objects("ResourceClaim")),
        slices=tuple(cluster.objects("ResourceSlice")),
        numa_nodes=world.numa_nodes(),
    )


def _conclude(voice: Voice, evidence: Evidence, *, seconds: float) -> int:
    voice.say()
    for panel in draw(evidence):
        voice.show(panel)
    refused = evidence.pod(IMPOSSIBLE.pod)
    voice.say()
    voice.say(f"Pod {IMPOSSIBLE.pod} waits for {IMPOSSIBLE.words} on one NUMA node:", "bold")
    voice.say(condition_of(refused).get("message", "") if refused else "", indent=2)
    voice.say()
    wrong = problems(evidence, wishes=WISHES, impossible=IMPOSSIBLE)
    for problem in wrong:
        voice.say(f"NOT SO: {problem}", "bold red")
    if not wrong:
        voice.say(_verdict(evidence, seconds), "bold green")
    return 1 if wrong else 0


def _verdict(evidence: Evidence, seconds: float) -> str:
    return (
        f"Checked against the API server: {len(WISHES)} pods run, each with all its devices on one NUMA node "
        f"of its own node; no device is given twice; {free_gpus(evidence)} GPUs are free, but no NUMA node "
        f"has more than {most_gpus(evidence)}. ({seconds:.1f} s)"
    )
