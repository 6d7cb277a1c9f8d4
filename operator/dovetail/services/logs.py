"""Logging: structlog events as JSON lines or for people, everything that others log included."""

import logging
import sys
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, WrappedLogger

from dovetail.api.text import harmless, harmless_lines, harmless_value

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

QUIET = {"kopf": logging.WARNING, "aiohttp": logging.WARNING, "asyncio": logging.WARNING}
"""Libraries that speak less than we do."""


def _without_controls(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Nothing that a tenant writes reaches the log raw."""
    return {
        harmless(str(key)): harmless_lines(str(value)) if key == "exception" else harmless_value(value)
        for key, value in event.items()
    }


def set_up_logging(*, form: Literal["json", "console"], level: str) -> None:
    """Send all logging of this process to standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_controls,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer(default=str)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    for name, quiet in QUIET.items():
        logging.getLogger(name).setLevel(max(quiet, _LEVELS[level]))
