"""Names, docstrings and errors want to be read as links, markup or commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.documents.line_index import Extent, Text
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Captured, Document, Tracked
from evokernel_server.features.inlay_hint import _hint
from evokernel_server.offers.evidence import evidence, installed_evidence
from evokernel_server.texts.plain import message

from evokernel_core.capture.suggest import command_for
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.synthesis.offers import Estimate
from tests.attacks import Attack, each

ESCAPED = "the characters are shown, as they are"
MARKUP = [
    Attack(
        "command-link", "a click that runs a command", ESCAPED, "[fix](command:workbench.action.terminal.new)"
    ),
    Attack("web-link", "a click that opens a page", ESCAPED, "[docs](http://evil.example/)"),
    Attack("image", "a request that says who reads", ESCAPED, "![x](http://evil.example/t.png)"),
    Attack("html", "a script or an image in HTML", ESCAPED, "<img src=x onerror=alert(1)><script>"),
    Attack("autolink", "a link without words", ESCAPED, "<http://evil.example>"),
    Attack("address", "a link that editors make by themselves", ESCAPED, "see https://evil.example/x"),
    Attack("address-without-scheme", "the same", ESCAPED, "see WWW.evil.example"),
    Attack("mail", "a letter to somebody", ESCAPED, "see me@evil.example"),
    Attack("end-of-code", "to leave its code span", ESCAPED, "x` [y](command:z) `"),
    Attack(
        "new-paragraph", "to start lines of its own", "it stays one line", "x\n\n# Verified\n[a]: http://e\n"
    ),
    Attack("reference-link", "a link that is defined below", ESCAPED, "[a][b]\n[b]: command:x"),
    Attack("backslash", "to undo the escape before it", ESCAPED, "\\[x](command:y)\\`"),
    Attack("bidi", "to be read from right to left", "such signs are left out", "safe\u202eexe.py\u2066"),
    Attack("control", "to move a terminal's cursor", "such signs are left out", "\x1b[2J\x07\x00name"),
    Attack("long", "to fill the screen", "it is cut off", "A" * 1_000_000),
]
_SHOWN = re.compile(r"\\[\\`\[\]<>:.@]|`[^`]*`")
"""An escaped sign, or a code span: what markup shows as it is."""


def document() -> Document:
    return Document("file:///w/model.py", Path("/w/model.py"), 1, Text("import torch\nx = 1\n"))


def region(text: str) -> Region:
    return Region(
        id="r", file="/w/model.py", symbol=text, span=Span(2, 0, 2, 5), source="x = 1",
        source_hash="0", op_category=text,
        status=RegionStatus.UNSUPPORTED, task=None, reason=text,
    )  # fmt: skip


def installed(text: str) -> Installed:
    latency = Latency(2.0, LatencySource.MODELLED, text, 8, (), text, 1.0, 9.0)
    return Installed(text, Path("/w"), "t", "s", latency, text)


def live(markup: str) -> str:
    """What markup is left of a text once code spans and escapes are taken out."""
    return "".join(_SHOWN.sub("", line) for line in markup.splitlines())


@each(MARKUP)
def test_hovers_and_hints_show_text(attack: Attack) -> None:
    estimate = Estimate(9.0, 2.0, 1.0, "modelled", attack.given)
    shown = [
        evidence(Tracked(Captured(region(attack.given)), Extent(0, 1))),
        evidence(Tracked(Captured(region(attack.given), estimate), Extent(0, 1))),
        installed_evidence(installed(attack.given)),
        installed_evidence(evolve(installed(attack.given), function=attack.given)),
    ]
    for markup in shown:
        assert not set("[]<>`") & set(live(markup)), markup
        assert not re.search(r"(?i)[a-z]://|\bwww\.|@", live(markup)), markup
        assert len(markup) < 20_000
        assert len(markup.splitlines()) <= 9, "each fact is one line"
        assert all(char.isprintable() or char == "\n" for char in markup)
    label = _hint(document(), 0, attack.given, "").label
    assert isinstance(label, str) and label.isprintable() and len(label) <= 400


@each(
    [item for item in MARKUP if item.name in ("command-link", "web-link", "image", "control", "bidi", "long")]
)
def test_messages_have_no_links(attack: Attack) -> None:
    shown = message(f"The file {attack.given}.py could not be imported.")
    assert "](" not in shown
    assert len(shown) <= 4_100
    assert all(char.isprintable() or char == "\n" for char in shown)


async def test_a_message_about_a_file_with_a_link_for_a_name(sessions: Any, workspace: Path) -> None:
    """Wants its name in a message to be a button that runs a command; the message shows the characters."""
    from lsprotocol import types

    path = workspace / "[Fix](command:workbench.action.terminal.new).py"
    path.write_text("import torch\n", "utf-8")
    editor = await sessions.start()
    uri = editor.open(path)
    known = {"uri": uri, "symbol": "[x](command:y)", "regionId": "[x](command:y)"}
    for name in ("generate", "insertShapes", "revert", "apply"):
        await editor.command(f"evokernel.{name}", {**known, "name": "[x](command:y)"})
    said = [item.message for item in editor.client.messages]
    assert said and not any("](" in words for words in said)
    assert isinstance(types.MessageType.Warning, types.MessageType)


TYPED = [
    Attack("interrupt", "Ctrl-C in its name to end the quotes and a new line to run", "it is not named",
           "x\x03\ntouch stolen\n.py"),
    Attack("newline", "a new line in its name to run", "it is not named", "x\ntouch stolen #.py"),
    Attack("escape", "to write over the terminal's line", "it is not named", "x\x1b[2K.py"),
    Attack("quotes", "to end the quotes around it", "it is one argument", "x';touch stolen;'.py"),
    Attack("substitution", "$(...) to be run", "it is one argument", "$(touch stolen)`touch stolen`.py"),
    Attack("separator", "what is behind ; and && to run", "it is one argument", "x; touch stolen && y.py"),
    Attack("option", "to be read as Python's option -c", "its folder stands before it", "-cimport os.py"),
    Attack("redirect", "to write a file", "it is one argument", "x > stolen.py"),
]  # fmt: skip


@each(TYPED)
def test_the_command_to_observe_runs_python_on_one_file(attack: Attack, tmp_path: Path) -> None:
    main = "import torch\nif __name__ == '__main__':\n    pass\n"
    path = tmp_path / attack.given
    line = command_for(path, main)
    assert line.isprintable()
    words = shlex.split(line)
    assert words[:4] == ["evokernel", "observe", "--", "python"]
    assert len(words) == 5
    assert words[4] in ("PROGRAM.py", attack.given, f"./{attack.given}")
    assert not words[4].startswith("-")


@pytest.mark.parametrize("python", ["/x/py\x03\nrm", "/x/py thon; touch y"])
def test_the_interpreter_in_the_command_is_one_word(python: str, tmp_path: Path) -> None:
    """Wants the setting of an interpreter to be typed into a terminal as commands."""
    line = command_for(tmp_path / "x.py", "import torch", python, python)
    assert line.isprintable()
    assert shlex.split(line)[3] in ("python", python)
    assert shlex.split(line)[0] in ("evokernel", python)


def test_links_in_circles_are_not_walked(tmp_path: Path) -> None:
    """Wants the search for a program that imports the file to go on for ever."""
    for number in range(12):
        (tmp_path / f"loop{number}").symlink_to(tmp_path)
    assert "PROGRAM.py" in command_for(tmp_path / "net.py", "import torch")


def test_a_pipe_called_like_a_program_is_not_read(tmp_path: Path) -> None:
    """Wants the reader to wait for a writer that never comes."""
    import os

    os.mkfifo(tmp_path / "main.py")
    assert "PROGRAM.py" in command_for(tmp_path / "net.py", "import torch")
