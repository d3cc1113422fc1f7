"""After any edits a document is what one is that was opened with the same text."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from evokernel_server.documents.line_index import Edit, Extent, stretch
from lsprotocol import types

from tests.server.random_edits import differences
from tests.server.regions import captured, document

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


SOME = [pytest.param(seed, 60) for seed in range(5)]
ALL = [pytest.param(seed, 500, marks=pytest.mark.thorough) for seed in range(100, 120)]


@pytest.mark.parametrize(("seed", "count"), [*SOME, *ALL])
def test_a_document_after_edits_is_one_opened_anew(seed: int, count: int) -> None:
    """10,000 edits in ``make thorough``. Between captures each region stands where its text is."""
    assert not list(differences(MODEL, seed, count))


PUBLIC = ("nn/modules/activation.py", "nn/modules/transformer.py", "nn/modules/normalization.py")
"""Files of torch's own, which nobody wrote for us."""


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, 6) for name in PUBLIC),
        *(pytest.param(name, 300, marks=pytest.mark.thorough) for name in PUBLIC),
    ],
)
def test_a_public_file_after_edits_is_one_opened_anew(name: str, count: int) -> None:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    text = (Path(spec.origin).parent / name).read_text("utf-8")
    assert len(captured(text).tracked) > 3
    assert not list(differences(text, 7, count))


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
