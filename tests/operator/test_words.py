"""What tenants write reaches logs, events and conditions harmless; events are few."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import structlog

from dovetail.cluster.connection import connect
from dovetail.cluster.pen import Pen
from dovetail.cluster.wire import Wire
from dovetail.core.conditions import Condition
from dovetail.core.mapping_status import DriverCoverage
from dovetail.embedded import EmbeddedCluster
from dovetail.services.logs import set_up_logging
from dovetail.services.notices import Notices
from dovetail.services.text import MESSAGE_LIMIT, harmless, sentence

EVIL = "a\x1b[31mb\nc\u202ed\x00"


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Where the log of the test goes; the configuration is put back."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    set_up_logging(form="json", level="info")
    stream = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
    structlog.reset_defaults()


def test_control_characters_are_replaced() -> None:
    """No escape sequence, no forged line, no reversed text."""
    assert harmless(EVIL) == "a\ufffd[31mb c\ufffdd\ufffd"


def test_conditions_of_our_own_objects_are_harmless() -> None:
    """Drivers choose the values that a mapping complains of."""
    condition = Condition("Covered", "False", "Failed", f"device {EVIL}")
    assert condition.dated(None, generation=1, now="now")["message"] == f"device {harmless(EVIL)}"
    coverage = DriverCoverage("gpu.example.com", 1, 0, 0, 0, 1, example=EVIL)
    assert coverage.as_json()["example"] == harmless(EVIL)


def _raise(words: str) -> None:
    raise ValueError(words)


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_is_harmless(form: Literal["json", "console"]) -> None:
    """What was raised may carry what a tenant wrote; its lines stay lines."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    set_up_logging(form=form, level="info")
    handler, stream = root.handlers[0], io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    try:
        _raise(EVIL)
    except ValueError:
        structlog.get_logger("t").exception("failed")
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        structlog.reset_defaults()
    assert "ValueError: a" in stream.getvalue()
    assert not set(stream.getvalue()) & set("\x1b\u202e\x00")


def test_a_sentence_fits_into_an_event() -> None:
    """A longer one ends with an ellipsis."""
    assert len(sentence("x" * 5000)) == MESSAGE_LIMIT
    assert sentence("x" * 5000).endswith("…")


def test_a_log_line_is_one_json_object_without_controls(log_lines: io.StringIO) -> None:
    """Event names, keys and nested values alike; messages of libraries too."""
    structlog.get_logger("t").info("seen", name=EVIL, nested={"list": [EVIL]})
    logging.getLogger("library").warning("says %s", EVIL)

    lines = log_lines.getvalue().splitlines()
    assert len(lines) == 2
    for line in lines:
        entry = json.loads(line)
        assert entry["level"]
        assert not any(ord(character) < 32 for character in json.dumps(entry, ensure_ascii=False))
        assert "\x1b" not in str(entry)


class Teller:
    """Events about one pod, written one after another."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.clock = 0.0
        self.regarding: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        }

    async def tell(self, *words: tuple[str, str]) -> list[dict[str, Any]]:
        """Say reasons and messages; the answer is the events that there are then."""
        wire = Wire(await connect(), timeout_seconds=2)
        notices = Notices(
            Pen(wire, permit=lambda: None), now=lambda: "2026-01-01T00:00:00Z", clock=lambda: self.clock
        )
        running = asyncio.create_task(notices.run())
        for reason, message in words:
            notices.say(self.regarding, "Warning", reason, message)
            self.clock += 1
        await notices.written()
        running.cancel()
        await wire.close()
        return self.cluster.objects("Event")


async def test_the_same_words_again_are_one_event(bare: EmbeddedCluster) -> None:
    """However often they are said within ten minutes (R-E4)."""
    events = await Teller(bare).tell(*[("NothingFits", "no GPU")] * 20)

    assert [(event["reason"], event["count"]) for event in events] == [("NothingFits", 1)]


async def test_new_words_for_a_reason_are_counted_in_one_event(bare: EmbeddedCluster) -> None:
    """The newest words are shown; another reason is another event."""
    events = await Teller(bare).tell(("NothingFits", "no GPU"), ("NothingFits", "no NIC"), ("NoMapping", "x"))

    counts = {event["reason"]: (event["count"], event["message"]) for event in events}
    assert counts == {"NothingFits": (2, "no NIC"), "NoMapping": (1, "x")}


async def test_a_successor_goes_on_with_an_event_that_exists(bare: EmbeddedCluster) -> None:
    """The name is the same for the same pod and reason: no second event appears."""
    await Teller(bare).tell(("NothingFits", "no GPU"))

    events = await Teller(bare).tell(("NothingFits", "no NIC"))

    assert [(event["reason"], event["message"]) for event in events] == [("NothingFits", "no NIC")]


async def test_what_tenants_write_is_harmless_in_events(bare: EmbeddedCluster) -> None:
    """A message with control characters is written without them."""
    (event,) = await Teller(bare).tell(("NothingFits", EVIL))

    assert event["message"] == harmless(EVIL)
