"""What a package, a pack or a file is called wants to be obeyed by the terminal or read as words of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evokernel_core.cli import tables
from evokernel_core.cli.main import cli, main
from evokernel_core.cli.verify import as_text
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.memory.packs import import_pack
from evokernel_core.memory.store import Memory
from tests.attacks import Attack, each
from tests.attacks.package.test_package import manifest, package
from tests.attacks.package.test_packs import HEAD, line, valued
from tests.verifier.service.conftest import make_kernel

__all__ = ["make_kernel"]

SPELT = "its characters are spelt out, on the line of ours"
NAMES = {
    "title": "\x1b]0;verified\x07",
    "clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "erase": "\x1b[2K\x1b[1A",
    "one-byte-control": "\x9b2J",
    "new-line": "x\nevokernel: all gates passed",
    "carriage-return": "x\revokernel: all gates passed",
    "direction": "\u202egnp.exe",
    "backspace": "x\b\b\b\b\b",
    "markup": "[link=file:///etc/passwd]x[/link]",
    "broken-markup": "[/nothing]",
    "emoji": ":white_check_mark:",
}
ATTACKS = [Attack(name, "to act on the reader's terminal", SPELT, text) for name, text in NAMES.items()]


def harmless(text: str, *, lines: int) -> None:
    assert all(char.isprintable() or char == "\n" for char in text), text
    assert text.count("\n") <= lines, text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@each(ATTACKS)
def test_a_file_of_a_manifest(
    attack: Attack, tmp_path: Path, make_kernel: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    task, source = make_kernel()
    data = {**manifest(), "task": to_data(task), "strategy": to_data(source.strategy)}
    folder = package(tmp_path, json.dumps({**data, "files": {attack.given: "x"}, "digest": "x"}))
    monkeypatch.setattr("sys.argv", ["evokernel", "verify", str(folder)])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    harmless(said, lines=1)
    assert "was changed after it was verified" in said


@each(ATTACKS)
def test_words_of_a_verdict(attack: Attack, capsys: Any) -> None:
    """A compiler repeats lines of the kernel, and a verifier elsewhere says what it likes."""
    from evokernel_core.cli.terminal import say

    gate = GateResult(GateName.COMPILE, GateStatus.FAILED, code="compile", feedback=attack.given)
    say(as_text(Verdict("t", "s", attack.given, (gate,))))
    harmless(capsys.readouterr().out, lines=4)


@each(ATTACKS)
def test_an_experience_of_a_pack(attack: Attack, home: Path) -> None:
    item = json.loads(line(title=attack.given, body=attack.given))
    value = json.loads(valued(op_category=attack.given))["values"]
    with Memory(home / "memory.db") as memory:
        import_pack(memory, [HEAD, json.dumps({**item, "values": value})])
        (known,) = memory.experiences()
    for words in (["memory", "top"], ["memory", "show", known.id], ["report"]):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        harmless(done.output, lines=12)
        if "link" in attack.given:
            assert attack.given in done.output or words[1:] == ["top"]


@pytest.mark.parametrize("name", ["[/x].py", "[red]x.py", ":x:.py", "\x1b[2J.py"])
def test_a_file_in_a_table(name: str, capsys: Any) -> None:
    """Wants the table of its kernels not to be printed, by a name that is broken markup. It is a name."""
    table = tables.Table("file", title=tables.shown(name))
    tables.add_row(table, name)
    tables.print_table(table)
    said = capsys.readouterr().out
    harmless(said, lines=7)
    assert said.count(name.replace("\x1b", "\\x1b")) == 2
