"""What Kopf hands to every handler: the one operation of this process."""

import asyncio
from collections.abc import Callable
from typing import Self

from dovetail.services.operation import Operation, make_operation
from dovetail.services.settings import Settings


class Context:
    """Kopf copies its memo for every object; this one is shared by all."""

    def __init__(self, settings: Settings, *, stop: asyncio.Event | None = None) -> None:
        self.settings = settings
        self.operation: Operation | None = None
        self.stop = stop or asyncio.Event()
        """Ends the operator when it is set."""
        self.has_failed = False
        self.when_failed: Callable[[], None] = self.stop.set

    def __copy__(self) -> Self:
        return self

    async def begin(self) -> None:
        """Connect and start; raises where the cluster cannot be served."""
        self.operation = await make_operation(self.settings, failed=self.fail)
        await self.operation.begin()

    async def end(self) -> None:
        """Stop, whatever was started."""
        if self.operation is not None:
            await self.operation.end()

    def fail(self) -> None:
        """End the process: another one may do better."""
        self.has_failed = True
        self.when_failed()


def context_in(memo: object) -> Context:
    """The context: the memo itself under `dovetail run`, kept in Kopf's own memo under `kopf run`."""
    if isinstance(memo, Context):
        return memo
    context = getattr(memo, "context", None)
    if not isinstance(context, Context):
        raise TypeError("the operator has not been started")
    return context
