"""What time it is, in the forms that Kubernetes wants."""

from datetime import UTC, datetime


def now_text() -> str:
    """Now, as RFC 3339 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(text: str) -> float:
    """How long ago a time in the form of `now_text` was; infinite for anything else."""
    try:
        then = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return float("inf")
    return (datetime.now(UTC) - then).total_seconds()
