"""`dovetail plan`: what the operator would do with each waiting pod of some manifests."""

import enum
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from dovetail.api.text import readable_json
from dovetail.cli.feature_gates import read_features
from dovetail.cli.gathering import listed
from dovetail.cli.loading import Loaded, load
from dovetail.cli.mapping_notes import mapping_notes
from dovetail.cli.options import dual_mode_option, output_option, seconds_option
from dovetail.cli.plan_remarks import Remark, is_misspelt, remarks_on
from dovetail.cli.plan_report import as_json, outcome_of
from dovetail.cli.plan_text import print_plan, print_troubles
from dovetail.cli.refused import without_refused
from dovetail.core.budget import Budget
from dovetail.core.forecast import Forecast, forecast
from dovetail.core.planner import PlanSettings
from dovetail.services.settings import DualModeNodes

FAILED = ("doesNotFit", "cut", "error")
STEPS = 50_000_000


DUAL_MODES = (
    "What becomes of devices that a device plugin of their node offers as well: "
    "they are not given, or they are."
)


class Output(enum.StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Take fields that Kubernetes 1.37 does not know for notes instead of problems: "
        "for what other versions wrote.",
    ),
]


def plan(  # noqa: PLR0917 - typer passes options by name
    paths: Annotated[
        list[str], typer.Argument(metavar="FILE|DIR|-...", help="Manifests: YAML or JSON, Lists included.")
    ],
    output: Annotated[Output, output_option(Output, "For people, or for programs.")] = Output.TEXT,
    feature_gates: Annotated[
        str,
        typer.Option(
            metavar="GATE=true,…", help="Kubernetes feature gates that differ from 1.37's defaults."
        ),
    ] = "",
    lenient: Lenient = False,
    no_shipped_mappings: Annotated[
        bool, typer.Option("--no-shipped-mappings", help="Leave out the mappings that are built in.")
    ] = False,
    scheduler_names: Annotated[
        str, typer.Option(metavar="NAME,…", help="The schedulers whose pods are served.")
    ] = "default-scheduler",
    dual_mode_nodes: Annotated[DualModeNodes, dual_mode_option(DUAL_MODES)] = "exclude",
    decision_seconds: Annotated[
        float, seconds_option("How long the search for one pod may take.", 0.001)
    ] = 10.0,
) -> None:
    """Say what the operator would do with each pod that has no node yet, from manifests alone.

    The pods that workloads ask for are planned with them: Deployments,
    ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs (one run),
    ReplicationControllers, JobSets and LeaderWorkerSets.
    An object of a later file replaces that of an earlier one.

    Pods are served by priority, then age, then order in the input,
    each seeing what the earlier ones got.
    Nodes that only slices name are assumed to exist and be usable.

    Exit status: 2 with any problem in the input, else 1 with any pod that
    does not fit or cannot be served as it is, or that waits for an attribute
    whose name is misspelt, else 0: that a pod waits for others (their gate,
    their scheduler, a mapping) is no failure. 2 is also the status of a
    wrong command line.
    """
    features, idle = read_features(feature_gates)
    loaded = load(
        paths,
        features,
        shipped_mappings=not no_shipped_mappings,
        exclude_dual_mode=dual_mode_nodes == "exclude",
        lenient=lenient,
    )
    assumed = loaded.world.nodes.assumed
    names = (name.strip() for name in scheduler_names.split(","))
    settings = PlanSettings(frozenset(filter(None, names)))
    forecasts = list(_forecasts(loaded, settings, decision_seconds))
    remarks = tuple(remarks_on(loaded.world, forecasts))
    if output is Output.JSON:
        typer.echo(readable_json(as_json(forecasts, loaded.troubles, remarks, loaded.notes)))
    else:
        _print_text(loaded, forecasts, remarks, tuple(_notes(loaded, assumed, idle)))
    raise typer.Exit(_status(loaded, forecasts))


def _forecasts(loaded: Loaded, settings: PlanSettings, seconds: float) -> Iterator[Forecast]:
    budget = _budgets(seconds)
    for each in forecast(loaded.world, settings=settings, budget=budget, ending=loaded.ending):
        yield without_refused(each, loaded.refused)


def _print_text(
    loaded: Loaded, forecasts: list[Forecast], remarks: tuple[Remark, ...], notes: tuple[str, ...]
) -> None:
    from rich.console import Console

    print_troubles(Console(stderr=True), loaded.troubles)
    print_plan(Console(), forecasts, remarks, notes)


def _notes(loaded: Loaded, assumed: tuple[str, ...], idle: tuple[str, ...]) -> Iterator[str]:
    yield from loaded.notes
    yield from mapping_notes(loaded.world)
    if assumed:
        yield f"only slices name these nodes, which are assumed to exist and be usable: {listed(assumed)}."
    if idle:
        yield f"these feature gates change nothing here: {listed(idle)}."


def _status(loaded: Loaded, forecasts: list[Forecast]) -> int:
    if loaded.troubles:
        return 2
    failed = (outcome_of(each) in FAILED or is_misspelt(loaded.world, each) for each in forecasts)
    return int(any(failed))


def _budgets(seconds: float) -> Callable[[], Budget]:
    def budget() -> Budget:
        end = time.monotonic() + seconds
        return Budget(STEPS, lambda: time.monotonic() > end)

    return budget
