"""Running `dovetail plan` on manifests."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from dovetail.cli.app import app
from tests.planner.worlds import Body

SLICES = Path(__file__).parents[1] / "data" / "slices"


def plan(*arguments: str, stdin: str | None = None) -> Result:
    """The command with these arguments, in this process."""
    return CliRunner().invoke(app, ["plan", *arguments], input=stdin)


def plan_json(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    """The answer for a folder, as JSON; the exit status has to be the given one."""
    result = plan(str(folder), "-o", "json", *arguments)
    assert result.exit_code == status, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def only_pod(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    """What is said of the only pod."""
    answer = plan_json(folder, *arguments, status=status)
    assert answer["problems"] == []
    (pod,) = answer["pods"]
    assert isinstance(pod, dict)
    return pod


def write(folder: Path, *bodies: Body, name: str = "objects.yaml") -> Path:
    """A file with these objects, one document each, in a folder; gives the folder."""
    text = yaml.safe_dump_all([{"apiVersion": _version(body), **body} for body in bodies], sort_keys=False)
    (folder / name).write_text(text)
    return folder


def published(folder: Path, *names: str) -> Path:
    """Slices of real drivers, by the names of their files."""
    for name in names:
        (folder / f"{name}.yaml").write_text((SLICES / f"{name}.yaml").read_text())
    return folder


def devices(pod: Body) -> list[str]:
    """The devices of all claims of a pod, as driver/device."""
    return [
        f"{result['driver']}/{result['device']}"
        for claim in pod["claims"]
        for result in claim["allocation"]["devices"]["results"]
    ]


def alignments(pod: Body) -> list[Body]:
    """What the devices of all claims of a pod have in common."""
    return [entry for claim in pod["claims"] for entry in claim["alignment"]]


def names(answer: Body) -> list[str]:
    """The pods of an answer, in its order."""
    return [pod["name"] for pod in answer["pods"]]


def outcomes(answer: Body) -> dict[str, str]:
    """The outcome of each pod of an answer."""
    return {pod["name"]: pod["outcome"] for pod in answer["pods"]}


def as_lines(text: str) -> Iterable[str]:
    """The lines of a text, without empty ones."""
    return [line for line in text.splitlines() if line.strip()]


def _version(body: Body) -> str:
    known = {"DerivedAttribute": "dovetail.dev/v1alpha1", "PriorityClass": "scheduling.k8s.io/v1"}
    return known.get(body["kind"], "v1")
