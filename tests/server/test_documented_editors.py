"""The configurations of docs/server.md for editors that are not run here say what the server reads."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from evokernel_server.options import read_options

DOCS = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCS.split("\n## Other editors\n")[1], re.DOTALL)
    return str(found)


def helix() -> object:
    server = tomllib.loads(block("toml"))["language-server"]["evokernel"]
    assert [server["command"], *server["args"]] == ["evokernel", "lsp"]
    return server["config"]


def zed() -> object:
    return json.loads(block("json"))["lsp"]["evokernel"]["initialization_options"]


def eglot() -> object:
    """A property list as eglot sends it: keys without their colons, vectors as arrays."""
    text = block("elisp")
    assert text.count("(") == text.count(")")
    assert '("evokernel" "lsp"' in text
    found = re.search(r":initializationOptions \(:settings \(:budget (\d+)\) :trusted (\[[^\]]*\])\)", text)
    assert found
    return {"settings": {"budget": int(found[1])}, "trusted": json.loads(found[2])}


@pytest.mark.parametrize("given", [helix, zed, eglot])
def test_they_trust_one_folder(given: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert callable(given)
    options = read_options(given(), {})
    assert options.settings.budget == 30
    assert options.trust.covers(tmp_path / "models" / "net.py")
    assert not options.trust.covers(tmp_path / "downloads" / "net.py")
