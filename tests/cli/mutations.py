"""Valid inputs of `dovetail plan` made invalid at random, and a process of bounded memory that plans them.

`python -m tests.cli.mutations 1 5000` plans the inputs of seeds 1 to 5000, and names those that went wrong.
"""

import copy
import io
import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import yaml

from dovetail.__main__ import main
from tests.cli.commands import SLICES
from tests.cli.test_plan_workloads import JOB, LWS, workload
from tests.planner.worlds import Body, allocated, claim, hardware, named, pod, template

MEMORY = 2 << 30
SECONDS = 10.0

CHUNKS: tuple[bytes, ...] = (
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    "\u200b".encode(),
    "\u202e".encode(),
    b"\x1b[2J",
    b"1e999999",
    b"9" * 5000,
    b"-1",
    b"1.5",
    b".inf",
    b"NaN",
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"[" * 5000,
    b'{"a":' * 3000,
    b"- " * 3000,
    b"x" * 100_000,
    b"\n---\n",
    b"\n...\n",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"{<<: [*a, *a]}",
    b"!!binary ",
    b"'",
    b'"',
    b"%YAML 9.9\n",
    b"\t",
    b"\r",
    b"? ",
    b": ",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    1 << 31,
    1 << 63,
    1 << 64,
    10**400,
    1.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\ud800",
    "a\0b",
    "\u200b\u202e",
    "x" * 70_000,
    "9" * 5000,
    "1e400Gi",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"name": {}},
    {"name": "x"},
    [1, "x", None, {}],
)


def worlds() -> list[list[Body]]:
    """Valid inputs: pods and claims, workloads of all kinds, slices of a real driver."""
    first: list[Body] = [
        *hardware("n1", "n2"),
        template(),
        claim("mine", status=allocated("n1", "dev-0", reserved=["b"])),
        pod("a", template="template", cpu="1"),
        pod("b", claims=[named("mine")]),
        {"kind": "Namespace", "metadata": {"name": "default", "labels": {"dovetail.dev/gate": "enabled"}}},
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100},
    ]
    plain = [
        workload(kind, kind.lower(), replicas=2)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet", "Job")
    ]
    second: list[Body] = [
        *hardware("n1"),
        template(),
        *plain,
        workload("CronJob", "cron", jobTemplate=JOB),
        workload("JobSet", "js", replicatedJobs=[{"name": "a", "replicas": 2, "template": JOB}]),
        workload("LeaderWorkerSet", "lws", replicas=2, leaderWorkerTemplate=LWS),
    ]
    real = list(yaml.safe_load_all((SLICES / "azure-gb300__dranet.yaml").read_text()))
    return [first, second, [*real, *hardware("n1"), template(), pod("a", template="template")]]


WORLDS = worlds()
VERSIONS = {
    "DerivedAttribute": "dovetail.dev/v1alpha1",
    "PriorityClass": "scheduling.k8s.io/v1",
}


def mutated(seed: int) -> bytes:
    """The input of a seed."""
    chance = random.Random(seed)
    bodies = copy.deepcopy(chance.choice(WORLDS))
    for body in bodies:
        body.setdefault("apiVersion", VERSIONS.get(body["kind"], "v1"))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        _change(chance, bodies)
    as_json = chance.random() < 0.5
    if as_json:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}).encode()
    else:
        text = "\n---\n".join(json.dumps(body) for body in bodies).encode()
        if chance.random() < 0.6:
            text = "---\n".join(_as_yaml(body) for body in bodies).encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((0, 0, 1, 3))):
        text = _damaged(chance, text)
    return text


def _as_yaml(body: Body) -> str:
    try:
        return str(yaml.safe_dump(body, allow_unicode=True))
    except ValueError:
        return json.dumps(body) + "\n"


def _change(chance: random.Random, bodies: list[Body]) -> None:
    """Another value for a random field, however deep."""
    places = list(_places(bodies))
    holder, key = chance.choice(places)
    match chance.randrange(4):
        case 0 if isinstance(holder, dict):
            holder[chance.choice(("name", "kind", "spec", "\ud800", "x" * 300, ""))] = holder.pop(key)
        case 1:
            other, place = chance.choice(places)
            holder[key] = copy.deepcopy(other[place])
        case _:
            holder[key] = copy.deepcopy(chance.choice(VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _damaged(chance: random.Random, text: bytes) -> bytes:
    """Bytes changed, left out, repeated or put in."""
    at = chance.randrange(len(text) + 1)
    to = min(len(text), at + chance.choice((1, 1, 2, 20, 500)))
    match chance.randrange(4):
        case 0:
            return text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]
        case 1:
            return text[:at] + text[to:]
        case 2:
            return text[:to] + text[at:to] * chance.choice((1, 3, 50)) + text[to:]
        case _:
            return text[:at] + chance.choice(CHUNKS) + text[at:]


def fault_of(seed: int, file: Path) -> str:
    """What is wrong with how the input of a seed was planned; nothing where all is well."""
    file.write_bytes(mutated(seed))
    out, began = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), time.process_time()
    sys.argv = ["dovetail", "plan", str(file), *(["-o", "json"] if seed % 2 else [])]
    code: object = None
    try:
        with redirect_stdout(out), redirect_stderr(out):
            main()
    except SystemExit as error:
        code = error.code or 0
    except BaseException:  # noqa: BLE001 - a traceback is what is looked for
        return traceback.format_exc()[-1500:]
    took = time.process_time() - began
    out.flush()
    shown = out.buffer.getvalue().decode()
    unseen = [each for each in ("\x1b", "\u200b", "\u202e", "\0") if each in shown]
    if code not in (0, 1, 2) or took > SECONDS or unseen:
        return f"status {code}, {took:.1f} s, {unseen} reached the terminal"
    return ""


def run(first: int, last: int) -> list[str]:
    """Plan all inputs from one seed to another, with bounded memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        faults = ((seed, fault_of(seed, Path(folder) / "x")) for seed in range(first, last + 1))
        return [f"seed {seed}: {fault}" for seed, fault in faults if fault]


if __name__ == "__main__":
    found = run(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
