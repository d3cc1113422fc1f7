"""A text wants the editor to hang: each of these is looked at in time that grows with its length."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from evokernel_server.documents.line_index import Text
from evokernel_server.documents.workspace import Document, FileProblem, find_calls
from evokernel_server.features.diagnostic import diagnostics_of
from evokernel_server.features.inlay_hint import hints
from evokernel_server.features.inputs import parameters_of
from evokernel_server.jobs.tasks import Latest
from lsprotocol import types

from tests.attacks import Attack, each

PATIENCE_S = 10.0
"""Each takes a second at most on an idle machine; where time grew with the square, minutes."""
BODY = "def f(x):\n    return torch.x\n"
TEXTS = {
    "imports": "".join(f"from evokernel_kernels import k{n}\nk{n}.run(x)\n" for n in range(20_000)),
    "open-imports": "from evokernel_kernels import (\n" * 20_000,
    "one-import": "from evokernel_kernels import " + ", ".join(f"k{n}" for n in range(200_000)),
    "names": "from evokernel_kernels import k\n" + "k.run(" * 30_000,
    "one-name": "from evokernel_kernels import k\n" + "k" * 1_000_000 + ".run(",
    "commas": "import " + "a, " * 200_000 + "b\n",
    "blanks": (" " * 2_000 + "\n") * 300,
    "torch-imports": "import torch as t\n" * 50_000 + "def f(x):\n    return t.x\n",
    "from-imports": "from torch import (" * 20_000,
    "brackets": "def f(x):\n    return torch.x(" + "(" * 200_000,
    "unary": "def f(x):\n    return torch.x(" + "-" * 200_000 + "1)\n",
    "nested-ifs": "".join(" " * n + "if torch:\n" for n in range(2_500)),
    "nested-classes": "".join(" " * n + f"class C{n}:\n" for n in range(2_500)),
    "functions": "def f(x): return torch.relu(x)\n" * 10_000,
    "comments": "# evokernel: x=f32[4]\n" * 30_000 + BODY,
    "comments-apart": "# it's one\n\n" * 30_000 + BODY,
    "quotes": '# """\n' * 30_000,
    "annotation": "# evokernel: " + "x=f32[" * 100_000 + "\n" + BODY,
    "one-line": "x = '" + "é" * 1_000_000 + "'; y = torch.x\n",
    "zeros": "\0" * 500_000 + "\n" + BODY,
    "returns": "\r" * 300_000 + BODY,
}
BOMBS = [
    Attack(name, "seconds of the event loop", "it takes time that grows with its length", text)
    for name, text in TEXTS.items()
]


@each(BOMBS)
def test_a_text_is_looked_at_in_time(attack: Attack) -> None:
    """As the server does at each edit: it opens, edits and describes the text."""
    text = "import torch\n" + attack.given
    began = time.monotonic()
    document = Document("file:///w/x.py", Path("/w/x.py"), 1, Text(text))
    document.definitions()
    change = types.TextDocumentContentChangePartial(
        types.Range(types.Position(1, 0), types.Position(1, 0)), "# typed\n"
    )
    document.update([change], 2)
    document.problem = FileProblem("untrusted", "line 999999999 is not trusted")
    assert diagnostics_of(document, done=True)
    assert hints(document, types.Range(types.Position(0, 0), types.Position(2**31 - 1, 0))) is not None
    assert time.monotonic() - began < PATIENCE_S


DEFINITIONS = {
    "deep-expression": "def f(x, y=" + "(" * 5_000,
    "deep-list": "def f(x, y=" + "[" * 90 + "]" * 90 + "): pass",
    "zero-byte": "def f(x\0): pass",
    "long-sum": "def f(x=" + "+".join("1" * 50_000) + "): 0",
}


@each([Attack(name, "the parser's stack", "names or none", text) for name, text in DEFINITIONS.items()])
def test_parameters_of_a_hostile_definition(attack: Attack) -> None:
    assert isinstance(parameters_of(attack.given), tuple)


def test_a_million_calls_are_found_once_each() -> None:
    """Wants a square of time for names times calls."""
    text = "from evokernel_kernels import a, b\n" + "a.run(b.run(x))\n" * 20_000
    began = time.monotonic()
    assert len(find_calls(text)) == 40_000
    assert time.monotonic() - began < PATIENCE_S


async def test_a_flood_of_changed_files_is_one_reading() -> None:
    """Wants 100,000 changes below evokernel_kernels to be 100,000 readings of packages."""
    read: list[str] = []

    async def reading(uri: str) -> None:
        read.append(uri)
        await asyncio.sleep(0.01)

    latest = Latest(reading, "reading")
    for _ in range(100_000):
        latest.ask("file:///w/model.py")
    await asyncio.sleep(0.1)
    assert 1 <= len(read) <= 2


async def test_a_flood_of_files_in_a_watched_folder(sessions: Any, scripted: None, workspace: Path) -> None:
    """Wants the server to stop answering while 20,000 files come and go beside the model."""
    folder = workspace / "evokernel_kernels" / "softmax_1"
    folder.mkdir(parents=True)
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    await editor.hints(uri)
    slowest = 0.0
    for number in range(4_000):
        (folder / f"{number}.py").touch()
        if number % 200 == 0:
            began = time.monotonic()
            await editor.hints(uri)
            slowest = max(slowest, time.monotonic() - began)
    assert slowest < PATIENCE_S
