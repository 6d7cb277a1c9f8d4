"""An admission webhook that holds requests of the API server until a test lets them go."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

from e2e.harness.identity import Identities
from e2e.harness.kube import Object
from e2e.harness.processes import free_port


class Webhook:
    """Sees requests for a resource (`pods/binding`), holds them, and always allows them in the end.

    The API server waits 30 s at most and then refuses the request.
    `seen` has the admission requests, in the order of their arrival.
    """

    def __init__(self, name: str, resource: str, operations: tuple[str, ...], identities: Identities) -> None:
        self.name = name
        self.seen: list[Object] = []
        self._resource = resource
        self._operations = operations
        self._identities = identities
        self._port = free_port()
        self._free = asyncio.Event()
        self._free.set()
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def start(self) -> Self:
        """Listen; the API server calls once the configuration is applied."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._identities.path("server.crt"), self._identities.path("server.key"))
        app = web.Application()
        app.router.add_post("/", self._review)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context).start()
        return self

    async def stop(self) -> None:
        """Let everything go and stop listening."""
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def configuration(self) -> Object:
        """The ValidatingWebhookConfiguration that sends requests here."""
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name},
            "webhooks": [
                {
                    "name": f"{self.name}.e2e.dovetail.dev",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "timeoutSeconds": 30,
                    "failurePolicy": "Fail",
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{self._port}/",
                        "caBundle": base64.b64encode(self._identities.ca.encode()).decode(),
                    },
                    "rules": [
                        {
                            "apiGroups": ["*"],
                            "apiVersions": ["*"],
                            "resources": [self._resource],
                            "operations": list(self._operations),
                        }
                    ],
                }
            ],
        }

    def hold(self) -> None:
        """Keep requests that arrive from now on."""
        self._free.clear()

    def release(self) -> None:
        """Let all requests go, those that are held and those that come."""
        self._free.set()

    async def arrived(self, predicate: Callable[[Object], bool], *, within: float = 30) -> Object:
        """Wait until a request that satisfies the predicate has come; return it."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: any(map(predicate, self.seen)))
        return next(filter(predicate, self.seen))

    async def _review(self, request: web.Request) -> web.Response:
        review: dict[str, Any] = await request.json()
        self.seen.append(review["request"])
        async with self._arrived:
            self._arrived.notify_all()
        await self._free.wait()
        verdict = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": verdict}
        )
