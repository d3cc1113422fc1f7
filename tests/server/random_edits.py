"""Documents after random edits, beside ones opened anew with the same text.

``python -m tests.server.random_edits EDITS SEED PATH...`` tries files and folders of any origin.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.workspace import Document
from evokernel_server.features.code_lens import lenses
from evokernel_server.features.diagnostic import diagnostics_of
from evokernel_server.features.highlight import highlights
from evokernel_server.features.inlay_hint import Showing, hints
from lsprotocol import types

from tests.server.regions import captured, document, found

PIECES = (
    "", "", "x", " ", "\n", "    ", "(", ")", "'", '"""', "é😀", "\r\n", "#", ":", "import torch\n", "torch",
    "from evokernel_kernels import softmax_1\n", "torch.softmax(z, dim=0)",
    "    return torch.softmax(q, dim=1)\n",
    "def f(x):\n    return torch.relu(x)\n", "# evokernel: x=f32[2]\n", "# note\n" * 130,
    "class A(nn.Module):\n    def forward(self, x):\n        return torch.fft(x)\n",
)  # fmt: skip
EVERYTHING = types.Range(types.Position(0, 0), types.Position(100_000, 0))
SHOWINGS = (Showing(), Showing(parts=True, lazy=True))
ENCODINGS = ("utf-8", "utf-16", "utf-32")
LINES = 40
"""Lines on which highlights are compared, spread over the file."""


def change(rng: random.Random, now: Document, origin: str) -> types.TextDocumentContentChangeEvent:
    """An edit as a person makes it: mostly small, sometimes a piece of another text, lines of this one, or
    the whole of one."""
    content = now.text.content
    if rng.random() < 0.03 or len(content) > len(origin) + 6_000:
        return types.TextDocumentContentChangeWholeDocument(origin)
    start = rng.randrange(len(content) + 1)
    length = rng.choice((0, 0, 1, 2, 5, 40, 400))
    where = now.text.range(Extent(start, min(len(content), start + length)))
    first = rng.randrange(len(now.text.starts))
    copied = now.text.lines(first, first + rng.randrange(12))
    text = content[copied.start : copied.end] if rng.random() < 0.1 else rng.choice(PIECES)
    return types.TextDocumentContentChangePartial(where, text)


def what_is_known(now: Document) -> dict[str, Any]:
    """All that a client is shown of a document."""
    count = len(now.text.starts)
    return {
        "torch": now.has_torch, "calls": now.calls, "definitions": now.definitions(), "tracked": now.tracked,
        "hints": [hints(now, EVERYTHING, client) for client in SHOWINGS],
        "lenses": lenses(now, "Generate NPU kernel"),
        "diagnostics": [diagnostics_of(now, done=done) for done in (False, True)],
        "holders": now.holders(), "first": now.first_line(),
        "highlights": [
            highlights(now, types.Position(line, 4)) for line in range(0, count, 1 + count // LINES)
        ],
    }  # fmt: skip


def edited(origin: str, seed: int, count: int) -> Iterator[Document]:
    """A document after each of many edits, which a capture may overtake: it finds what was there before."""
    rng = random.Random(seed)
    now = captured(origin, rng.choice(ENCODINGS))
    begun = None
    for number in range(count):
        now.update([change(rng, now, origin) for _ in range(rng.choice((1, 1, 1, 3)))], number + 2)
        if rng.random() < 0.3:
            now.settle()
        if begun is None and rng.random() < 0.5:
            begun = now.text, now.mark()
        elif begun is not None and rng.random() < 0.5:
            now.accept(found(begun[0]) if now.has_torch else (), *begun)
            begun = None
        yield now


def differences(origin: str, seed: int, count: int) -> Iterator[str]:
    """What an edited document knows otherwise than one opened with its text; and regions which, between two
    captures, do not stand where their text is."""
    for number, now in enumerate(edited(origin, seed, count)):
        for item in now.tracked:
            if now.text.content[item.extent.start : item.extent.end] != item.region.source:
                yield f"edit {number}: {item.region.id} is not where it stands"
        now.settle()
        if now.has_torch:
            now.accept(found(now.text), now.text, now.mark())
        fresh = document(now.text.content, now.text.encoding, now.version)
        if fresh.has_torch:
            fresh.accept(found(fresh.text), fresh.text, fresh.mark())
        ours, theirs = what_is_known(now), what_is_known(fresh)
        for key in [key for key in ours if ours[key] != theirs[key]]:
            yield f"edit {number}: {key}: {ours[key]!r} instead of {theirs[key]!r}"


def python_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main() -> None:
    count, seed, began = int(sys.argv[1]), int(sys.argv[2]), time.monotonic()
    files = regions = wrong = 0
    for number, path in enumerate(python_files([Path(item) for item in sys.argv[3:]])):
        text = path.read_text("utf-8")
        files, regions = files + 1, regions + len(captured(text).tracked)
        for line in differences(text, seed + number, count):
            wrong += 1
            print(f"{path}, seed {seed + number}: {line[:2_000]}", flush=True)
    seconds = time.monotonic() - began
    print(f"files {files}, regions {regions}, edits {files * count}, differences {wrong}, {seconds:.0f} s")
    if wrong:
        raise SystemExit("An edited document knows something else than one opened with its text.")


if __name__ == "__main__":
    main()
