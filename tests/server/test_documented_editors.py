"""The configurations of docs/editors.md for editors that are not run here say what the server reads."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from evokernel_server.options import read_options

from tests.server.documented import DOCS, block, blocks


def helix() -> object:
    server = tomllib.loads(block("Helix", "toml"))["language-server"]["evokernel"]
    assert [server["command"], *server["args"]] == ["evokernel", "lsp"]
    return server["config"]


def zed() -> object:
    return json.loads(block("Zed", "json"))["lsp"]["evokernel"]["initialization_options"]


def pycharm() -> object:
    template, options = map(json.loads, blocks("PyCharm", "json"))
    assert template["programArgs"] == {"default": "evokernel lsp"}
    assert template["fileTypeMappings"] == [{"fileType": {"patterns": ["*.py"]}, "languageId": "python"}]
    return options


@pytest.mark.parametrize("given", [helix, zed, pycharm])
def test_they_trust_one_folder(given: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert callable(given)
    options = read_options(given(), {})
    assert options.settings.budget == 30
    assert options.trust.covers(tmp_path / "models" / "net.py")
    assert not options.trust.covers(tmp_path / "downloads" / "net.py")


def test_each_editor_has_a_section_and_a_configuration() -> None:
    sections = [line[3:] for line in DOCS.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert [name for name in sections if name != "Foreign folders"] == [
        "Neovim 0.11 and newer", "Neovim 0.7 to 0.10", "Emacs with eglot", "Helix", "Zed", "PyCharm",
    ]  # fmt: skip
