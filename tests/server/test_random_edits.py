"""After any edits a document is what one is that was opened with the same text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from evokernel_server.features.highlight import highlights
from evokernel_server.features.inlay_hint import Showing, hints
from evokernel_server.text import Edit, Extent, stretch
from evokernel_server.workspace import Document
from lsprotocol import types

from tests.server.regions import captured, document, found

MODEL = (
    """\
import torch
from torch import nn
from evokernel_kernels import softmax_1


# evokernel: x=f16[64,128]
def attention(x):
    scores = torch.softmax(x, dim=-1)
    return torch.softmax(scores, dim=-1) + torch.fft(x)


class Block(nn.Module):
    '''µ and 😀'''

    def forward(self, x):
        y = softmax_1.run(x) if softmax_1.holds(x) else torch.softmax(x, dim=0)
        return torch.softmax(torch.needy(y), dim=1)
"""
    + "# a comment that is long enough to be left alone\n" * 120
    + "\ndef last(x):\n    return torch.relu(x)\n"
)
PIECES = [
    "", "", "x", " ", "\n", "    ", "(", ")", "'", '"""', "é😀", "\r\n", "#", ":", "import torch\n", "torch",
    "from evokernel_kernels import softmax_1\n", "torch.softmax(z, dim=0)",
    "    return torch.softmax(q, dim=1)\n",
    "def f(x):\n    return torch.relu(x)\n", "# evokernel: x=f32[2]\n", "# note\n" * 130,
    "class A(nn.Module):\n    def forward(self, x):\n        return torch.fft(x)\n",
]  # fmt: skip
EVERYTHING = types.Range(types.Position(0, 0), types.Position(100_000, 0))
SHOWINGS = (Showing(), Showing(parts=True, lazy=True))
LONGEST = 12_000


def change(rng: random.Random, now: Document) -> types.TextDocumentContentChangeEvent:
    """An edit as a person makes it: mostly small, sometimes a piece of another text or the whole of one."""
    content = now.text.content
    if rng.random() < 0.03 or len(content) > LONGEST:
        return types.TextDocumentContentChangeWholeDocument(MODEL)
    start = rng.randrange(len(content) + 1)
    length = rng.choice((0, 0, 1, 2, 5, 40, 400))
    where = now.text.range(Extent(start, min(len(content), start + length)))
    return types.TextDocumentContentChangePartial(where, rng.choice(PIECES))


def what_is_known(now: Document) -> dict[str, Any]:
    """All that a client is shown of a document."""
    lines = range(0, len(now.text.starts), 7)
    return {
        "torch": now.has_torch, "calls": now.calls, "definitions": now.definitions(), "tracked": now.tracked,
        "starts": now.text.starts, "on lines": [now.definitions_on(now.text.lines(at, at)) for at in lines],
        "hints": [hints(now, EVERYTHING, client) for client in SHOWINGS],
        "highlights": [highlights(now, types.Position(line, 4)) for line in lines],
    }  # fmt: skip


def edited(seed: int, count: int) -> Iterator[Document]:
    """A document after each of many edits, which a capture may overtake: it finds what was there before."""
    rng = random.Random(seed)
    now = captured(MODEL, rng.choice(("utf-8", "utf-16", "utf-32")))
    begun = None
    for number in range(count):
        now.update([change(rng, now) for _ in range(rng.choice((1, 1, 1, 3)))], number + 2)
        if rng.random() < 0.3:
            now.settle()
        if begun is None and rng.random() < 0.5:
            begun = now.text, now.mark()
        elif begun is not None and rng.random() < 0.5:
            now.accept(found(begun[0]) if now.has_torch else (), *begun)
            begun = None
        yield now


SOME = [pytest.param(seed, 60) for seed in range(5)]
ALL = [pytest.param(seed, 500, marks=pytest.mark.thorough) for seed in range(100, 120)]


@pytest.mark.parametrize(("seed", "count"), [*SOME, *ALL])
def test_a_document_after_edits_is_one_opened_anew(seed: int, count: int) -> None:
    """10,000 edits in ``make thorough``. Between captures each region stands where its text is."""
    for number, now in enumerate(edited(seed, count)):
        for item in now.tracked:
            assert now.text.content[item.extent.start : item.extent.end] == item.region.source, (seed, number)
        now.settle()
        if now.has_torch:
            now.accept(found(now.text), now.text, now.mark())
        fresh = document(now.text.content, now.text.encoding, now.version)
        if fresh.has_torch:
            fresh.accept(found(fresh.text), fresh.text, fresh.mark())
        assert what_is_known(now) == what_is_known(fresh), (seed, number)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit(0, 0, "ab"), (12, 22)),
        (Edit(20, 25, ""), (10, 20)),
        (Edit(12, 12, "ab"), (10, 22)),
        (Edit(12, 15, ""), (10, 17)),
        (Edit(5, 12, "abc"), (8, 16)),
        (Edit(18, 25, "abc"), (10, 18)),
        (Edit(10, 20, "abc"), None),
        (Edit(0, 30, ""), None),
    ],
)
def test_a_definition_stretches_with_edits_inside_it(edit: Edit, expected: tuple[int, int] | None) -> None:
    assert stretch(Extent(10, 20), edit) == (Extent(*expected) if expected else None)


def test_definitions_move_while_a_person_types() -> None:
    """No parser is asked before typing pauses, and a half-written line loses no definition."""
    now = document("import torch\n\ndef f(x):\n    return torch.relu(x)\n")
    (before,) = now.definitions()
    where = types.Range(types.Position(1, 0), types.Position(1, 0))
    now.update([types.TextDocumentContentChangePartial(where, "y = (((\n")], 2)
    (after,) = now.definitions()
    assert (after.qualname, after.span.line) == ("f", before.span.line + 1)
    now.settle()
    assert now.definitions() == document(now.text.content).definitions()
