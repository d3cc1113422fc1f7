"""Packs of experiences from a stranger: each line is read into a memory, or refused with a sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.memory.experiences import experience_id
from evokernel_core.memory.packs import MOST_TRIALS, export_pack, import_pack
from evokernel_core.memory.store import Memory
from tests.attacks import Attack, each

HEAD = json.dumps({"format": "evokernel-pack", "version": 1})
KIND, STAGE = next(iter(ExperienceKind)), next(iter(Stage))


def line(values: Any = (), **changes: Any) -> str:
    text = {"title": "t", "body": "b", **changes}
    try:
        identity = experience_id(KIND, text["title"], text["body"])
    except (TypeError, UnicodeEncodeError, AttributeError):
        identity = "none"
    return json.dumps({"experience": {"id": identity, "kind": KIND.value, **text}, "values": values})


def valued(**changes: Any) -> str:
    return line([{"stage": STAGE.value, "op_category": "other", "q": 1.0, "n": 1, **changes}])


REFUSED = "it is refused with a sentence, and nothing was added"
LINES = {
    "a number that no file can hold": valued(q=1).replace('"q": 1', '"q": ' + "9" * 400),
    "a number of five thousand digits": valued(q=7).replace('"q": 7', '"q": ' + "9" * 5000),
    "a value that is no number, so that nothing is ever better": valued(q=math.nan),
    "a value beyond all others": valued(q=math.inf),
    "trials without end": valued(n=math.inf),
    "trials that are a text": valued(n="many"),
    "a category that has no UTF-8 form": valued(op_category="\ud800"),
    "a title that has no UTF-8 form": line(title="\ud800"),
    "a body that has no UTF-8 form": line(body="\udfff"),
    "a payload that has no UTF-8 form": line(payload="\ud800"),
    "fifty megabytes in one line": line(body="x" * 50_000_000),
    "a title that is a list": line(title=["t"]),
    "values that are a number": line(3),
    "values that are a text": line("abc"),
    "values that are nothing": line(None),
    "a value without a stage": line([{"q": 1, "n": 1}]),
    "lists in lists without end": "[" * 100_000,
    "objects in objects": '{"experience": ' + '{"a": ' * 500 + "1" + "}" * 500 + "}",
    "an identity of another experience": line().replace('"body": "b"', '"body": "c"'),
    "bytes that are no text": "\ufffd\ufffd",
}


@each(
    [
        Attack(name, "the reader to fail, or a memory that misleads", REFUSED, text)
        for name, text in LINES.items()
    ]
)
def test_a_line_that_is_no_experience(attack: Attack, tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db")
    try:
        import_pack(memory, [HEAD, line(title="first"), attack.given])
    except UsageError as error:
        assert str(error).endswith(".") and len(str(error)) < 300
    else:
        raise AssertionError(attack.name)
    assert list(export_pack(memory)) == [HEAD]


def test_a_value_that_nothing_learnt_here_could_move(tmp_path: Path) -> None:
    """Wants its advice to count for ever, by more trials than there ever were; they are bounded."""
    memory = Memory(tmp_path / "memory.db")
    import_pack(memory, [HEAD, valued(q=1e9, n=10**30), line(title="less")])
    (value,) = memory.values()
    assert value.n == MOST_TRIALS and math.isfinite(value.q) and abs(value.q) < 1e9
