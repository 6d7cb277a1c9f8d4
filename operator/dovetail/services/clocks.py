"""What time it is, in the forms that Kubernetes wants."""

from datetime import UTC, datetime


def now_text() -> str:
    """Now, as RFC 3339 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
