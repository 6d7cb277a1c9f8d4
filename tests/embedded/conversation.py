"""A conversation with an API server that touches every rule on which Dovetail relies.

The same requests are sent to the embedded server and to a real one.
What each answers is reduced to what a client may count on: status, reason, fields that are wrong,
and the parts of the object that a step names.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from tests.embedded.steps import MERGE, NAMESPACE, Body, Memory, Step
from tests.embedded.steps_claims import CLAIM_STEPS
from tests.embedded.steps_customs import CUSTOM_STEPS, MORE_STEPS
from tests.embedded.steps_pods import OTHER_STEPS, POD_STEPS, SETUP

CONVERSATION = (*SETUP, *CLAIM_STEPS, *POD_STEPS, *OTHER_STEPS, *CUSTOM_STEPS, *MORE_STEPS)
NOT_YET = (404, 429)
PATIENT_ATTEMPTS = 50
PATIENT_SECONDS = 0.2
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


async def converse(session: aiohttp.ClientSession, server: str) -> dict[str, Any]:
    """Send every request in turn; the answers, reduced, by the name of the step."""
    memory: Memory = {}
    heard: dict[str, Any] = {}
    for step in CONVERSATION:
        status, answer = await _answered(session, server, step, memory)
        memory[step.name] = answer
        heard[step.name] = reduced(step, status, answer, memory)
    return heard | {"watch": await watched(session, server)}


async def _answered(
    session: aiohttp.ClientSession, server: str, step: Step, memory: Memory
) -> tuple[int, Body]:
    body = step.body(memory) if callable(step.body) else step.body
    headers = {"Content-Type": step.content_type, "Accept": "application/json"}
    for _ in range(PATIENT_ATTEMPTS if step.patient else 1):
        async with session.request(step.method, server + step.path, json=body, headers=headers) as response:
            is_json = response.content_type == "application/json"
            answer = await response.json() if is_json else {}
        if response.status not in NOT_YET:
            break
        await asyncio.sleep(PATIENT_SECONDS)
    return response.status, answer


async def watched(session: aiohttp.ClientSession, server: str) -> list[list[str]]:
    """Type and name of the events of a watch by label, while objects come, enter, change, leave and go."""
    async with session.get(server + MAPS) as response:
        version = (await response.json())["metadata"]["resourceVersion"]
    await _say(session, "POST", server + MAPS, {"metadata": {"name": "first", "labels": {"side": "in"}}})
    await _say(session, "POST", server + MAPS, {"metadata": {"name": "second", "labels": {"side": "out"}}})
    for name, side in (
        ("second", "in"),
        ("second", "in"),
        ("first", "out"),
        ("first", "out"),
        ("first", "in"),
    ):
        patch = {"metadata": {"labels": {"side": side}}, "data": {"side": side}}
        await _say(session, "PATCH", f"{server}{MAPS}/{name}", patch)
    await _say(session, "PATCH", f"{server}{MAPS}/second", {"data": {"more": "yes"}})
    await _say(session, "DELETE", f"{server}{MAPS}/first", None)
    query = {"watch": "true", "labelSelector": "side=in", "resourceVersion": version, "timeoutSeconds": "1"}
    async with session.get(server + MAPS, params=query) as response:
        events = [json.loads(line) async for line in response.content]
    return [[event["type"], event["object"]["metadata"]["name"]] for event in events]


async def _say(session: aiohttp.ClientSession, method: str, url: str, body: Body | None) -> None:
    headers = {"Content-Type": MERGE if method == "PATCH" else "application/json"}
    async with session.request(method, url, json=body, headers=headers) as response:
        response.raise_for_status()


def reduced(step: Step, status: int, answer: Body, memory: Memory) -> Body:
    """What a client may count on in an answer."""
    if status >= 400:
        causes = answer.get("details", {}).get("causes", [])
        fields = sorted({cause.get("field", "") for cause in causes})
        return {"status": status, "reason": answer.get("reason", "")} | ({"fields": fields} if fields else {})
    return {"status": status} | {path: shown(answer, path, memory) for path in step.shows}


def shown(answer: Body, path: str, memory: Memory) -> Any:
    """The part of an answer that a path names; `how:path` tells less of it."""
    how, _, rest = path.rpartition(":")
    if how == "same":
        return answer["metadata"]["resourceVersion"] == memory[rest]["metadata"]["resourceVersion"]
    value: Any = answer
    for part in rest.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    match how:
        case "is":
            return bool(value)
        case "length":
            return len(value)
        case "reasons":
            return [[entry["type"], entry["status"], entry.get("reason")] for entry in value]
        case _:
            return value
