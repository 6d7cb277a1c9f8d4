"""How Kopf behaves: it only watches, alone and cluster-wide, and never gives up on a watch."""

import itertools
import logging
import os
import sys
import warnings
from typing import NoReturn

import kopf

from dovetail.handlers.bookkeeping import NoDiffBase, NoProgress

FIRST_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
LONGEST_PAUSE_SECONDS = 5.0
PATIENCE = 120
"""How many further tries a watch makes before the error ends the process."""


def behave(settings: kopf.OperatorSettings) -> None:
    """Set up Kopf for an operator that does everything else by itself."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    # Which kinds are served is found out at the start; no rights on CRDs and namespaces are needed.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = [
        *FIRST_PAUSES,
        *itertools.repeat(LONGEST_PAUSE_SECONDS, PATIENCE),
    ]
    settings.networking.connect_timeout = 5.0
    settings.watching.reconnect_backoff = 0.1
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5


def end_without_start() -> None:
    """The start failed, and the log has a sentence about it: let Kopf end without words of its own.

    It would repeat the sentence, and Python would warn of a task that Kopf made for later and never runs.
    """
    logging.getLogger("kopf.activities.startup").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)


def leave_at_once() -> NoReturn:
    """The start failed under `kopf run`, and the log has a sentence about it: end with status 1.

    Kopf's own way out ends in tracebacks, and nothing is open yet that could be closed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
