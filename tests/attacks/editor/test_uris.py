"""A URI wants to be taken for a file that it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from evokernel_server.documents.workspace import Workspace, local_path
from lsprotocol import types

from tests.attacks import Attack, each

NO_FILE = "it is no file of this machine, and left alone"
FOREIGN = [
    Attack("repository", "an old version to be run as the present file", NO_FILE, "git:/w/model.py?HEAD"),
    Attack("unsaved", "a name to be read in the server's folder", NO_FILE, "untitled:model.py"),
    Attack("notebook-cell", "a cell to be run as a file", NO_FILE, "vscode-notebook-cell:/w/a.ipynb#W0"),
    Attack("web", "a page to be run", NO_FILE, "http://evil.example/model.py"),
    Attack(
        "share",
        "the machine's password hash to be sent to a server",
        NO_FILE,
        "file://evil.example/s/model.py",
    ),
    Attack("zero", "the name to end before its ending", NO_FILE, "file:///w/secret%00.py"),
    Attack("script", "to be run by the editor", NO_FILE, "javascript:alert(1)//model.py"),
    Attack("empty", "the server's own folder", NO_FILE, "file:"),
    Attack("relative", "a name to be read in the server's folder", NO_FILE, "model.py"),
    Attack("data", "text to be run as a file", NO_FILE, "data:text/plain,import torch"),
]


@each(FOREIGN)
def test_what_is_no_file_is_left_alone(attack: Attack) -> None:
    document = Workspace().open(types.TextDocumentItem(attack.given, "python", 1, "import torch\n"))
    assert not document.is_local and not document.has_torch
    assert not document.definitions() and not document.calls


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/../etc/passwd.py", "/etc/passwd.py"),
        ("file:///w/%2e%2e/%2e%2e/etc/x.py", "/etc/x.py"),
        ("file:///w/a%2F..%2F..%2Fx.py", "/x.py"),
    ],
)
def test_a_path_is_what_the_system_would_open(uri: str, path: str) -> None:
    """Wants to look as if it lay in the workspace."""
    assert local_path(uri) == Path(path)


def test_a_file_of_the_system_is_neither_trusted_nor_written(tmp_path: Path) -> None:
    """Wants /etc/x.py to be analysed because it is open; it belongs to no trusted folder."""
    from evokernel_server.trust import read_trust

    path = local_path("file:///etc/x.py")
    assert path is not None
    assert not read_trust([str(tmp_path)]).covers(path)
