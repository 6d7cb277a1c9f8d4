"""The record that the embedded API server is held against is what a real one answers today."""

import json

from tests.embedded.record import RECORDED, real_answers


async def test_the_record_of_the_real_server_is_true() -> None:
    """A real API server still answers the whole conversation as it was recorded."""
    assert await real_answers() == json.loads(RECORDED.read_text(encoding="utf-8"))
