"""A few thousand of the messages that ``make fuzz-editor`` sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.editor.test_protocol import framed
from tests.server.conftest import MODEL
from tests.server.fuzzing import fuzz
from tests.server.scribe import answers_due
from tests.tables import few


@few(("mix", "seed"), [("plain", 1), ("plain", 2), ("wide", 3)], keep=(0, 2))
def test_each_is_answered_and_the_server_knows_what_a_fresh_one_knows(
    mix: str, seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL, "utf-8")
    seen = fuzz(path, tmp_path / "home", 2_000, seed, mix)
    assert seen["requests"] > 500 and seen["hints"]
    assert not seen["unanswered"] and not seen["answered_twice"] and seen["equal_to_a_fresh_server"], seen


@pytest.mark.parametrize(
    ("body", "due"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"x"}', [1]),
        (b'{"jsonrpc":"2.0","method":"x"}', []),
        (b'{"jsonrpc":"2.0","id":1,"result":1}', []),
        (b'{"jsonrpc":"2.0","id":[],"method":"x"}', [None]),
        (b'{"id":1,"method":"x"}', [1]),
        (b"[]", [None]),
        (b"no", [None]),
        (b"", []),
    ],
)
def test_the_answers_that_are_due(body: bytes, due: list[object]) -> None:
    assert list(answers_due(framed(body))) == due
