"""Texts that are no files, cells of notebooks, several roots, encodings: served, or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evokernel_server.documents.workspace import Workspace, local_path
from lsprotocol import types

pytestmark = pytest.mark.usefixtures("scripted")

TEXT = "import os\nimport torch\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n"
REFUSED = {
    "untitled:Untitled-1": "save it",
    "git:/w/model.py?HEAD": "open the file itself",
    "vscode-vfs://github/o/r/model.py": "vscode-vfs:",
    "vscode-notebook-cell:/w/a.ipynb#W0": "Cells of a notebook",
    "file:///w/a.ipynb#cell-3": "file:",
}


@pytest.mark.parametrize("uri", REFUSED)
async def test_a_text_that_is_no_file_is_refused_with_a_reason(
    uri: str, sessions: Any, eventually: Any
) -> None:
    editor = await sessions.start()
    client = editor.client
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, TEXT))
    )
    (found,) = await eventually(lambda: client.diagnostics.get(uri))
    assert (found.code, found.severity) == ("not_served", types.DiagnosticSeverity.Hint)
    assert found.range == types.Range(types.Position(1, 0), types.Position(1, 12))
    assert REFUSED[uri] in found.message
    status = await editor.command("evokernel.status")
    assert (status["mode"], status["uri"], status["text"]) == ("offline", uri, found.message)
    assert not await editor.hints(uri) and not await editor.actions(uri, 4)
    change = types.TextDocumentContentChangeWholeDocument("import os\n")
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, uri), [change])
    )
    await eventually(lambda: not client.diagnostics.get(uri))


async def test_cells_of_a_notebook_are_told_why(sessions: Any, eventually: Any, capabilities: Any) -> None:
    asked = capabilities()
    asked.notebook_document = types.NotebookDocumentClientCapabilities(
        types.NotebookDocumentSyncClientCapabilities()
    )
    editor = await sessions.start(client_capabilities=asked)
    client, notebook, cells = editor.client, "file:///w/a.ipynb", ["file:///w/a.ipynb", "cell:2"]
    kind = types.NotebookCellKind.Code
    client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument(notebook, "jupyter-notebook", 1, [types.NotebookCell(kind, cells[0])]),
            [types.TextDocumentItem(cells[0], "python", 1, TEXT)],
        )
    )
    (found,) = await eventually(lambda: client.diagnostics.get(cells[0]))
    assert found.code == "not_served" and "Cells of a notebook" in found.message, "whatever its URI says"
    array = types.NotebookCellArrayChange(1, 0, [types.NotebookCell(kind, cells[1])])
    opened = types.NotebookDocumentCellChangeStructure(
        array, did_open=[types.TextDocumentItem(cells[1], "python", 1, TEXT)]
    )
    text = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cells[0]),
        [types.TextDocumentContentChangeWholeDocument("x = 1\n")],
    )
    changes = types.NotebookDocumentCellChanges(structure=opened, text_content=[text])
    client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, notebook),
            types.NotebookDocumentChangeEvent(cells=changes),
        )
    )
    await eventually(lambda: client.diagnostics.get(cells[1]) and not client.diagnostics[cells[0]])
    client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(
            types.NotebookDocumentIdentifier(notebook),
            [types.TextDocumentIdentifier(cell) for cell in cells],
        )
    )
    await eventually(lambda: not client.diagnostics[cells[1]])


@pytest.mark.parametrize(
    ("path", "root"),
    [("/w/a/b/m.py", "/w/a/b"), ("/w/a/m.py", "/w/a"), ("/w/ab/m.py", "/w"), ("/elsewhere/m.py", "/w")],
)
def test_the_innermost_root_counts(path: str, root: str) -> None:
    workspace = Workspace(roots=[Path("/w"), Path("/w/a"), Path("/w/a/b")])
    assert workspace.root_of(Path(path)) == Path(root)


async def test_folders_come_and_go(sessions: Any, workspace: Path, tmp_path: Path, eventually: Any) -> None:
    other = tmp_path / "second root"
    other.mkdir()
    editor = await sessions.start()

    async def symbols() -> list[str]:
        return [s.name for s in await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams(""))]

    package = other / "evokernel_kernels" / "kernel_1"
    package.mkdir(parents=True)
    (package / "op_kernel.cpp").touch()

    def tell(added: list[str], removed: list[str]) -> None:
        event = types.WorkspaceFoldersChangeEvent(
            added=[types.WorkspaceFolder(uri, "x") for uri in added],
            removed=[types.WorkspaceFolder(uri, "x") for uri in removed],
        )
        editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

    assert await symbols() == []
    tell([other.as_uri(), other.as_uri(), "untitled:x"], ["file:///never/added"])
    assert await symbols() == ["kernel_1"]
    tell([], [other.as_uri()])
    assert await symbols() == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_positions_are_in_the_clients_units(
    encoding: str, sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    text = "import torch\n\ndef f(x):\n    y = ('µ😀', torch.softmax(x, dim=-1))\n    return y\n"
    (workspace / "wide.py").write_text(text, "utf-8")
    editor = await sessions.start(client_capabilities=capabilities(encoding))
    uri = editor.open(workspace / "wide.py")
    (found,) = await eventually(lambda: editor.client.diagnostics.get(uri))
    before = "    y = ('µ😀', "
    codec, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    start = len(before.encode(codec)) // width
    assert found.range.start == types.Position(3, start)
    assert found.range.end == types.Position(3, start + len("torch.softmax(x, dim=-1)"))
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(3, start))
    hover = await editor.client.text_document_hover_async(place)
    assert hover is not None and hover.range == found.range
    left = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(3, start - 1))
    assert await editor.client.text_document_hover_async(left) is None


@pytest.mark.parametrize(
    "uri", ["file:///w/a.py#x", "file:///w/a.py?x", "file:/w/a\0.py", "untitled:/w/a.py"]
)
def test_what_is_more_than_a_path_is_no_file(uri: str) -> None:
    assert local_path(uri) is None
    assert local_path("file:///w/a%23x.py") == Path("/w/a#x.py")
