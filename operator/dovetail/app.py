"""The composition root: `dovetail run` and `kopf run -m dovetail.app` start the operator here."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import kopf
import structlog

from dovetail.api.depth import allow_deep_json
from dovetail.cluster.connection import read_credentials
from dovetail.errors import DovetailError
from dovetail.handlers import watching
from dovetail.handlers.conduct import behave, end_without_start, leave_at_once
from dovetail.handlers.context import Context, StoppedAtStart, context_in
from dovetail.services.journal import Journal
from dovetail.services.logs import set_up_logging
from dovetail.services.settings import Settings, settings_from_environment

__all__ = ["run", "watching"]

log = structlog.get_logger(__name__)

allow_deep_json()


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def operator_starts(settings: kopf.OperatorSettings, memo: object, **_: object) -> None:
    """Kopf is about to watch: everything else starts first."""
    behave(settings)
    try:
        if isinstance(memo, kopf.Memo):
            memo.context = _own_context()
        await context_in(memo).begin()
    except StoppedAtStart as stopped:
        end_without_start()
        raise kopf.PermanentError(str(stopped)) from stopped
    except DovetailError as error:
        log.error("operator_cannot_start", reason=str(error))  # noqa: TRY400 - the sentence says it all
        if isinstance(memo, kopf.Memo):
            leave_at_once()
        end_without_start()
        context_in(memo).fail()
        raise kopf.PermanentError(str(error)) from error


@kopf.on.cleanup()
async def operator_stops(memo: object, **_: object) -> None:
    """Kopf has stopped watching: everything else stops after it."""
    await context_in(memo).end()


@kopf.on.login()
async def operator_logs_in(**_: object) -> kopf.ConnectionInfo:
    """Kopf connects as the rest of Dovetail does."""
    found = await read_credentials()
    return kopf.ConnectionInfo(
        server=found.server,
        ca_path=found.ca_path,
        insecure=found.insecure,
        token=found.token,
        certificate_path=found.certificate_path,
        private_key_path=found.private_key_path,
        proxy_url=found.proxy_url,
    )


def run(settings: Settings, journal: Journal | None = None) -> int:
    """Run the operator until it is told to stop; the answer is the exit code."""
    set_up_logging(form=settings.log_format, level=settings.log_level)
    try:
        return asyncio.run(operate(Context(settings, journal)))
    except KeyboardInterrupt:
        return 0


async def operate(context: Context) -> int:
    """The same within a running event loop, which has to be the operator's own: Kopf ends its tasks."""
    context.is_stoppable = True
    try:
        await kopf.operator(memo=context, standalone=True, clusterwide=True, stop_flag=context.stop)
    except Exception as error:
        if context.is_stopping and not context.has_failed:
            return 0
        if not context.has_failed:
            log.error("operator_failed", reason=str(error.__cause__ or error), exc_info=error)  # noqa: TRY400
        return 1
    finally:
        # Kopf waits for the flag in a thread, which would outlive it.
        context.request_stop()
    return 1 if context.has_failed else 0


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Context]:
    """The operator in a thread, and an event loop, of its own while the block lasts.

    Entered when it is ready; raises `DovetailError` where it cannot start.
    """
    context = Context(settings)
    over = asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(operate(context)))
    ready = asyncio.wrap_future(context.ready)
    try:
        first: list[asyncio.Future[Any]] = [over, ready]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            raise DovetailError("the operator could not start; its log says why")
        yield context
    finally:
        context.request_stop()
        await over


def _own_context() -> Context:
    """The context under `kopf run`: settings come from the environment, and a failure ends the process."""
    # In the usual form until it is known what is wished for.
    set_up_logging(form="json", level="info")
    settings = settings_from_environment()
    set_up_logging(form=settings.log_format, level=settings.log_level)
    context = Context(settings)
    context.end_process = lambda: os.kill(os.getpid(), signal.SIGTERM)
    return context
