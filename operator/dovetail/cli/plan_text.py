"""What `dovetail plan` says, for people: readable with colours and without."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from dovetail.api.text import harmless
from dovetail.cli.manifests import Trouble
from dovetail.cli.plan_remarks import Remark
from dovetail.cli.plan_report import alignment_of, allocation_of, message_of, outcome_of
from dovetail.core.decisions import ObjectKey
from dovetail.core.forecast import Forecast, Served


@dataclass(frozen=True, slots=True)
class Words:
    """An outcome in words, of one pod and of several, and its colour."""

    one: str
    several: str
    style: str


WORDS: Mapping[str, Words] = {
    "fits": Words("fits", "fit", "bold green"),
    "doesNotFit": Words("does not fit", "do not fit", "bold red"),
    "cut": Words("was cut short", "were cut short", "bold yellow"),
    "waits": Words("waits", "wait", "bold yellow"),
    "error": Words("cannot be served", "cannot be served", "bold red"),
    "notOurs": Words("is not Dovetail's", "are not Dovetail's", "dim"),
}


def print_plan(
    console: Console, forecasts: Sequence[Forecast], remarks: Iterable[Remark], notes: Iterable[str]
) -> None:
    """One paragraph per pod, with what it is warned of, then what was assumed, then the sum."""
    warned: dict[ObjectKey, list[str]] = {}
    for remark in remarks:
        warned.setdefault(remark.pod.key, []).append(remark.message)
    for forecast in forecasts:
        warnings = warned.get(forecast.pod.key, ())
        _print(console, *_pod(forecast), *(Text("  warning: ", "yellow").append(each) for each in warnings))
    for note in notes:
        _print(console, Text(f"Note: {note}", "dim"))
    _print(console, Text(_sum(forecasts), "bold"))


def print_troubles(console: Console, troubles: Iterable[Trouble]) -> None:
    """One line per problem, with file and document."""
    for trouble in troubles:
        line = Text("problem: ", "bold red")
        line.append(str(trouble))
        _print(console, line)


def _print(console: Console, *lines: Text) -> None:
    """Lines are never folded where nobody looks: what reads them wants one fact per line.

    What somebody wrote into a manifest and cannot be seen never reaches the terminal.
    """
    for line in lines:
        line.plain = harmless(line.plain)
    console.print(Text("\n").join(lines), soft_wrap=not console.is_terminal, highlight=False)


def _pod(forecast: Forecast) -> Iterator[Text]:
    words = WORDS[outcome_of(forecast)]
    pod = forecast.pod.metadata
    line = Text(f"{pod.namespace}/{pod.name} ", "bold").append(words.one, words.style)
    if forecast.node is not None:
        line.append(" on ").append(forecast.node, "bold")
    yield line
    for served in forecast.served:
        yield from _claim(served)
    if message := message_of(forecast):
        yield Text(f"  {message}")


def _claim(served: Served) -> Iterator[Text]:
    name = f"claim {served.claim.metadata.name}" if served.exists else "claim to be generated"
    whose = (
        "" if served.planned is None or served.ours else ", allocated by kube-scheduler; devices may differ"
    )
    before = ", allocated already" if served.planned is None else ""
    yield Text(f"  {served.entry} ").append(f"({name}{before}{whose})", "dim")
    results = (allocation_of(served).get("devices") or {}).get("results") or []
    for request, devices in _by_request(results).items():
        count = f" ({len(devices)} devices)" if len(devices) > 1 else ""
        yield Text(f"    {request}{count}: ").append(", ".join(devices), "cyan")
    for entry in alignment_of(served):
        yield Text("    aligned: ").append(_alignment(entry), "green")


def _by_request(results: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for result in results:
        device = f"{result.get('driver')}/{result.get('pool')}/{result.get('device')}"
        found.setdefault(str(result.get("request", "")), []).append(device)
    return found


def _alignment(entry: Mapping[str, Any]) -> str:
    value = entry.get("value")
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    requests = entry.get("requests") or []
    over = f" ({', '.join(map(str, requests))})" if requests else ""
    return f"{entry.get('attribute')} = {shown}{over}"


def _sum(forecasts: Sequence[Forecast]) -> str:
    if not forecasts:
        return "No pod is waiting for a node."
    counts = Counter(outcome_of(forecast) for forecast in forecasts)
    parts = [
        f"{counts[outcome]} {words.one if counts[outcome] == 1 else words.several}"
        for outcome, words in WORDS.items()
        if counts[outcome]
    ]
    pods = "1 pod" if len(forecasts) == 1 else f"{len(forecasts)} pods"
    return f"{pods}: {', '.join(parts)}."
