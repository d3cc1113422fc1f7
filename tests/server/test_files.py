"""What is known of a file follows a rename and ends with a deletion; links and symbols lead to kernels."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.documents.outside_changes import Watcher
from evokernel_server.documents.watch_registration import ClientWatch
from evokernel_server.features.links import kernels_below, matches
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from evokernel_core.capture.observations import Observation, ObservationStore, Observed
from evokernel_core.domain.placement import place_key

pytestmark = pytest.mark.usefixtures("scripted")

QUIET = {
    "editAtOnce": True,
    "refineInBackground": False,
    "revertGraceS": 0.2,
    "survivalS": [3.0, 3600.0, 3600.0],
}


def able(capabilities: Any, **workspace: Any) -> types.ClientCapabilities:
    asked: types.ClientCapabilities = capabilities()
    assert asked.workspace
    asked.workspace.file_operations = types.FileOperationClientCapabilities(did_rename=True, did_delete=True)
    for name, value in workspace.items():
        setattr(asked.workspace, name, value)
    return asked


async def generated(editor: Any, eventually: Any, path: Path) -> tuple[str, str]:
    uri = editor.open(path)
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    answer = await editor.run(action)
    assert answer["status"] == "applied"
    path.write_text(editor.texts[uri], "utf-8")
    return uri, str(answer["name"])


def close(editor: Any, uri: str) -> None:
    identifier = types.TextDocumentIdentifier(uri)
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))


def tell_renamed(editor: Any, old: Path, new: Path) -> None:
    files = [types.FileRename(old.as_uri(), new.as_uri())]
    editor.client.workspace_did_rename_files(types.RenameFilesParams(files))


@pytest.mark.parametrize("reopened_first", [True, False])
@pytest.mark.parametrize("what", ["file", "folder"])
async def test_all_follows_a_rename(
    what: str, reopened_first: bool, sessions: Any, workspace: Path, database: Any, eventually: Any,
    capabilities: Any,
) -> None:  # fmt: skip
    folder = workspace / "models"
    folder.mkdir()
    old = folder / "model.py"
    (workspace / "model.py").rename(old)
    editor = await sessions.start(settings=QUIET, client_capabilities=able(capabilities))
    uri, name = await generated(editor, eventually, old)
    seen = Observation("Model", None, {"args": []})
    ObservationStore().add([Observed(str(old), "python run.py", (seen,))])
    (job,) = database.rows("SELECT region_id FROM jobs")

    source, target = (old, folder / "renamed.py") if what == "file" else (folder, workspace / "other")
    new = target if what == "file" else target / "model.py"
    source.rename(target)
    if not reopened_first:
        tell_renamed(editor, source, target)
    close(editor, uri)
    editor.open(new)
    if reopened_first:
        tell_renamed(editor, source, target)

    await eventually(lambda: database.rows("SELECT DISTINCT file FROM jobs") == [(str(new),)])
    key = place_key(new, job[0])
    await eventually(lambda: {(key,)} == set(database.rows("SELECT DISTINCT region_id FROM outcomes")))
    await eventually(lambda: ("survived", "30s") in database.outcomes(), 20.0)
    assert not {"reverted", "expired"} & {kind for kind, _ in database.outcomes()}
    assert ObservationStore().of(new) and not ObservationStore().of(old)
    (region,) = database.rows("SELECT region FROM jobs")
    assert json.loads(region[0])["file"] == str(new)
    assert (new.parent / "evokernel_kernels" / name / "kernel.json").is_file()
    answer = await editor.command("evokernel.revert", {"uri": new.as_uri(), "name": name})
    assert answer["status"] == "reverted", answer


async def test_a_file_that_moves_to_another_root_takes_its_package_along(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(settings=QUIET, client_capabilities=able(capabilities))
    uri, name = await generated(editor, eventually, workspace / "model.py")
    new = workspace / "inner" / "model.py"
    new.parent.mkdir()
    (workspace / "model.py").rename(new)
    close(editor, uri)
    editor.open(new)
    tell_renamed(editor, workspace / "model.py", new)
    await eventually((new.parent / "evokernel_kernels" / name / "op_kernel.cpp").is_file)

    def stale() -> bool:
        return any(d.code == "stale_kernel" for d in editor.client.diagnostics.get(new.as_uri(), []))

    await eventually(lambda: editor.hints(new.as_uri()))
    await eventually(lambda: not stale())


async def test_undo_and_redo_after_a_move_take_and_bring_the_package_of_the_new_place(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(settings=QUIET, client_capabilities=able(capabilities))
    before = (workspace / "model.py").read_text("utf-8")
    uri, name = await generated(editor, eventually, workspace / "model.py")
    old, new = workspace / "evokernel_kernels", workspace / "inner" / "model.py"
    new.parent.mkdir()
    (workspace / "model.py").rename(new)
    tell_renamed(editor, workspace / "model.py", new)
    close(editor, uri)
    called, uri = editor.texts[uri], editor.open(new)
    package = new.parent / "evokernel_kernels" / name
    await eventually(package.is_dir)
    shutil.rmtree(old)
    new.write_text(before, "utf-8")
    editor.set_text(uri, before)
    await eventually(lambda: not package.exists())
    editor.set_text(uri, called)
    await eventually((package / "kernel.json").is_file)
    assert not old.exists()


async def test_a_deletion_ends_watches_and_jobs(
    sessions: Any, workspace: Path, database: Any, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(
        settings={**QUIET, "refineInBackground": True}, client_capabilities=able(capabilities),
        environment={"SCRIPT_PAUSE_S": "0.5"},
    )  # fmt: skip
    uri, _ = await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: ("refine", "running") in database.jobs())
    (workspace / "model.py").unlink()
    close(editor, uri)
    files = [types.FileDelete((workspace / "model.py").as_uri())]
    editor.client.workspace_did_delete_files(types.DeleteFilesParams(files))
    await eventually(lambda: ("expired", "deleted") in database.outcomes())
    await eventually(lambda: ("refine", "cancelled") in database.jobs())
    await asyncio.sleep(0.6)
    assert "reverted" not in {kind for kind, _ in database.outcomes()}, "no verdict about the kernel"
    assert ("refine", "cancelled") in database.jobs() and ("refine", "running") not in database.jobs()


async def test_equal_texts_in_two_folders_have_kernels_of_their_own(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    """Regions were kept by text alone: the second file's kernel went into the first one's folder."""
    text = (workspace / "model.py").read_text("utf-8")
    editor = await sessions.start(settings=QUIET)
    for name in ("one", "two"):
        (workspace / name).mkdir()
        (workspace / name / "model.py").write_text(text, "utf-8")
    first = editor.open(workspace / "one" / "model.py")
    await eventually(lambda: editor.hints(first))
    await generated(editor, eventually, workspace / "two" / "model.py")
    assert (workspace / "two" / "evokernel_kernels").is_dir()
    assert not (workspace / "one" / "evokernel_kernels").exists()


async def test_links_and_symbols_lead_to_the_kernel(sessions: Any, workspace: Path, eventually: Any) -> None:
    editor = await sessions.start(settings=QUIET)
    uri, name = await generated(editor, eventually, workspace / "model.py")
    identifier = types.TextDocumentIdentifier(uri)
    (link,) = await editor.client.text_document_document_link_async(types.DocumentLinkParams(identifier))
    line = editor.texts[uri].split("\n")[link.range.start.line]
    start = len(line.encode("utf-16-le")[: 2 * link.range.start.character].decode("utf-16-le"))
    assert line[start:].startswith(f"{name}.run")
    resolved = await editor.client.document_link_resolve_async(link)
    kernel = workspace / "evokernel_kernels" / name / "op_kernel.cpp"
    assert resolved.target == kernel.as_uri()
    for query, found in (("", True), ("sftmx", True), ("nothing", False)):
        symbols = await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams(query))
        assert [item.name for item in symbols or ()] == ([name] if found else [])
    assert symbols is not None
    forged = types.DocumentLink(link.range, data={"uri": uri, "name": "../../etc"})
    assert (await editor.client.document_link_resolve_async(forged)).target is None


def test_symbols_are_bounded_and_follow_no_links(tmp_path: Path) -> None:
    package = tmp_path / "a" / "evokernel_kernels" / "k"
    package.mkdir(parents=True)
    (package / "op_kernel.cpp").touch()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    found = kernels_below((tmp_path, tmp_path / "a", tmp_path / "missing"))
    assert [(item.name, item.words) for item in found] == [("k", "changed or damaged")]


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [("", "softmax_1", True), ("SM1", "softmax_1", True), ("1s", "softmax_1", False), ("x", "", False)],
)
def test_symbols_match_as_clients_expect(query: str, name: str, expected: bool) -> None:
    assert matches(query, name) is expected


async def test_what_the_client_watches_is_acted_on(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    watch = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
    asked = able(capabilities, did_change_watched_files=watch)
    editor = await sessions.start(settings=QUIET, client_capabilities=asked)
    uri, name = await generated(editor, eventually, workspace / "model.py")
    kernel = workspace / "evokernel_kernels" / name / "op_kernel.cpp"
    kernel.write_text("// by hand\n")
    change = types.FileEvent(kernel.as_uri(), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
    await eventually(lambda: any(d.code == "stale_kernel" for d in editor.client.diagnostics.get(uri, [])))


class Asked:
    """A server's side towards a client, which answers as it is told."""

    def __init__(self, watch: types.DidChangeWatchedFilesClientCapabilities | None, *, says: bool) -> None:
        workspace = types.WorkspaceClientCapabilities(did_change_watched_files=watch)
        self.client_capabilities = types.ClientCapabilities(workspace=workspace)
        self.says = says
        self.patterns: list[Any] = []

    async def client_register_capability_async(self, params: types.RegistrationParams) -> None:
        options = params.registrations[0].register_options
        assert isinstance(options, types.DidChangeWatchedFilesRegistrationOptions)
        self.patterns = [item.glob_pattern for item in options.watchers]
        if not self.says:
            raise JsonRpcException("no")


@pytest.mark.parametrize(
    ("dynamic", "relative", "says", "in_roots", "of_observations"),
    [
        pytest.param(None, None, True, False, False, id="a client without"),
        pytest.param(False, True, True, False, False, id="static alone"),
        pytest.param(True, False, True, True, False, id="its folders"),
        pytest.param(True, True, True, True, True, id="its folders and ours"),
        pytest.param(True, True, False, False, False, id="a refusal"),
    ],
)
async def test_ours_is_what_the_client_does_not_watch(
    dynamic: bool | None, relative: bool, says: bool, in_roots: bool, of_observations: bool, tmp_path: Path
) -> None:
    watch = types.DidChangeWatchedFilesClientCapabilities(dynamic, relative) if dynamic is not None else None
    server, root, seen = Asked(watch, says=says), tmp_path / "root", tmp_path / "observations"
    for folder in (root, tmp_path / "other"):
        folder.mkdir()
    ours = ClientWatch(server, lambda: [root], seen)  # type: ignore[arg-type]
    assert await ours.register() is says
    heard: list[Path] = []
    watcher = Watcher(heard.append, seen, ours.covers, settle_s=0.01)
    watcher.start(asyncio.get_running_loop())
    watcher.cover(root / "model.py")
    watcher.cover(tmp_path / "other" / "model.py")
    expected = {root: not in_roots, seen: not of_observations, tmp_path / "other": True}
    assert {folder: folder in watcher._watched for folder in expected} == expected
    assert (len(server.patterns) == 4) is bool(dynamic and relative)
    watcher.stop()


async def test_what_the_client_refuses_to_watch_we_watch(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(settings=QUIET)  # says nothing of watching
    uri, name = await generated(editor, eventually, workspace / "model.py")
    (workspace / "evokernel_kernels" / name / "op_kernel.cpp").write_text("// by hand\n")
    await eventually(lambda: any(d.code == "stale_kernel" for d in editor.client.diagnostics.get(uri, [])))
