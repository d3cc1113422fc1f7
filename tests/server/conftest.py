"""Drives the real server over its real protocol, with the clients' side in the test's hands."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import make_test_lsp_client

from tests.server.forked import fork_server, scripted_worker, worker

SCRIPTED_WORKER = Path(__file__).with_name("scripted_worker.py")

MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        # µ and 😀 come before, so columns differ by encoding
        names = ("😀", torch.softmax(x, dim=-1))
        return names[1]


def get_inputs():
    return [torch.rand(1024, 4096).half()]
"""


_converter = cache(default_converter)
"""All editors have one: what it makes for a type of the protocol is made once."""


class Editor:
    """A client's editor: documents with versions, edits applied as the protocol says, chosen answers."""

    def __init__(self, client: LanguageClient, encoding: str) -> None:
        self.client = client
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.asked: list[types.ShowMessageRequestParams] = []
        self.answers: list[str] = []
        self.statuses: list[Any] = []
        self.custom: list[tuple[str, Any]] = []
        self.refreshed = 0
        self.edits: list[types.ApplyWorkspaceEditParams] = []
        self.refuse_edits = False
        self.confirmed: list[types.ChangeAnnotation] = []
        """The annotations of edits that the person was asked about."""
        self.declines = False
        self._register()

    def _register(self) -> None:
        client = self.client

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.edits.append(params)
            return self._apply(params)

        @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        async def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.asked.append(params)
            while not self.answers:  # the message stays until the person chooses
                await asyncio.sleep(0.05)
            return types.MessageActionItem(self.answers.pop(0))

        @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def refresh(params: None) -> None:
            self.refreshed += 1

        @client.feature("evokernel/status")
        def status(params: Any) -> None:
            self.statuses.append(params)

        for method in ("evokernel/showDiff", "evokernel/refined"):
            self._custom(method)

    def _custom(self, method: str) -> None:
        @self.client.feature(method)
        def heard(params: Any) -> None:
            self.custom.append((method, params))

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        if self.refuse_edits:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason="the file is read-only")
        for annotation in (params.edit.change_annotations or {}).values():
            if annotation.needs_confirmation:
                self.confirmed.append(annotation)
                if self.declines:
                    return types.ApplyWorkspaceEditResult(
                        applied=False, failure_reason="it was not confirmed"
                    )
        for change in params.edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            uri = change.text_document.uri
            if change.text_document.version != self.versions[uri]:
                return types.ApplyWorkspaceEditResult(applied=False, failure_reason="stale version")
            self._edit(uri, change.edits)
        for uri, edits in (params.edit.changes or {}).items():
            self._edit(uri, edits)
        return types.ApplyWorkspaceEditResult(applied=True)

    def _edit(self, uri: str, edits: Any) -> None:
        text = self.texts[uri]
        spans = [
            (self.offset(text, e.range.start), self.offset(text, e.range.end), e.new_text) for e in edits
        ]
        for start, end, new in sorted(spans, reverse=True):
            text = text[:start] + new + text[end:]
        self.set_text(uri, text)

    def offset(self, text: str, position: types.Position) -> int:
        """Counted in encoded units, the slow and obvious way."""
        lines = text.split("\n")
        before = sum(len(line) + 1 for line in lines[: position.line])
        codec, width = ("utf-16-le", 2) if self.encoding == "utf-16" else ("utf-8", 1)
        taken = lines[position.line].encode(codec)[: position.character * width]
        return before + len(taken.decode(codec))

    def open(self, path: Path) -> str:
        uri = path.as_uri()
        self.texts[uri], self.versions[uri] = path.read_text("utf-8"), 1
        item = types.TextDocumentItem(uri, "python", 1, self.texts[uri])
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def set_text(self, uri: str, text: str) -> None:
        """Sends the whole text as one change without a range."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def save(self, uri: str) -> None:
        params = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
        self.client.text_document_did_save(params)

    async def labels(self, uri: str, words: str = "") -> list[str]:
        """The labels of the hints that hold some words."""
        return [str(hint.label) for hint in await self.hints(uri) if words in str(hint.label)]

    async def called(self, uri: str) -> list[str]:
        """The labels with a latency at the calls of accepted kernels."""
        lines = self.texts[uri].split("\n")
        hints = await self.hints(uri)
        calls = [str(hint.label) for hint in hints if ".run(" in lines[hint.position.line]]
        return [label for label in calls if "µs" in label]

    async def hints(self, uri: str) -> list[types.InlayHint]:
        whole = types.Range(types.Position(0, 0), types.Position(100_000, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        return list(await self.client.text_document_inlay_hint_async(params) or ())

    async def actions(self, uri: str, line: int, only: list[str] | None = None) -> list[types.CodeAction]:
        where = types.Range(types.Position(line, 0), types.Position(line, 0))
        context = types.CodeActionContext([], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, context)
        found = await self.client.text_document_code_action_async(params) or ()
        return [_as_action(item) for item in found]

    async def action(self, uri: str, line: int, title: str) -> types.CodeAction:
        found = [item for item in await self.actions(uri, line) if item.title.startswith(title)]
        assert found, [item.title for item in await self.actions(uri, line)]
        return found[0]

    async def run(self, action: types.CodeAction) -> Any:
        """Resolves a code action where it needs that, and runs its command."""
        if action.command is None:
            action = await self.client.code_action_resolve_async(action)
        assert action.command is not None
        return await self.command(action.command.command, *(action.command.arguments or ()))

    async def command(self, name: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(command=name, arguments=list(arguments))
        answer = await self.client.workspace_execute_command_async(params)
        return answer if isinstance(answer, dict) else vars(answer)

    def line_of(self, uri: str, words: str) -> int:
        text = self.texts[uri]
        return text.count("\n", 0, text.index(words))


def guarded(name: str, argument: str) -> str:
    """What the scripted worker's edit makes of an entry of the model's result."""
    call = f"{name}.run({argument}) if {name}.holds({argument})"
    return f'("😀", ({call} else torch.softmax({argument}, dim=-1)))'


def _as_action(item: types.Command | types.CodeAction) -> types.CodeAction:
    """lsprotocol reads an action that has a command as that command, with the real one as text."""
    if isinstance(item, types.CodeAction):
        return item
    inner = ast.literal_eval(item.command)
    command = types.Command(inner["title"], inner["command"], arguments=inner.get("arguments"))
    return types.CodeAction(title=item.title, command=command)


class Database:
    """The memory's file, read from outside as anyone could."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        if not self.path.exists():
            return []
        connection = sqlite3.connect(self.path, timeout=30)
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return []  # the memory is being created
        finally:
            connection.close()

    def outcomes(self) -> list[tuple[str, str]]:
        return [(k, d) for k, d in self.rows("SELECT kind, detail FROM outcomes ORDER BY seq")]

    def values(self) -> dict[str, float]:
        return dict(self.rows("SELECT item, q FROM q_values WHERE op_category != ''"))

    def jobs(self) -> list[tuple[str, str]]:
        return [(k, s) for k, s in self.rows("SELECT kind, state FROM jobs ORDER BY created")]


async def eventually(condition: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Waits until a condition (which may be awaitable) is true, and gives its value."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < end, "the condition did not come true in time"
        await asyncio.sleep(0.03)


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    return eventually


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("EVOKERNEL_HOME", str(home))
    return home


@pytest.fixture
def database(home: Path) -> Database:
    return Database(home / "memory.db")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL, "utf-8")
    return folder


def capabilities(
    encoding: str = "utf-16", *, document_changes: bool = True, annotations: bool = False, ours: bool = True
) -> types.ClientCapabilities:
    """What a full client says that it can do; ``ours``: it is EvoKernel's own."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[encoding]),
        workspace=types.WorkspaceClientCapabilities(
            apply_edit=True,
            workspace_edit=types.WorkspaceEditClientCapabilities(
                document_changes=document_changes,
                change_annotation_support=types.ChangeAnnotationsSupportOptions() if annotations else None,
            ),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        ),
        window=types.WindowClientCapabilities(
            work_done_progress=True,
            show_document=types.ShowDocumentClientCapabilities(support=True),
        ),
        text_document=types.TextDocumentClientCapabilities(
            code_action=types.CodeActionClientCapabilities(
                disabled_support=True, data_support=True,
                resolve_support=types.ClientCodeActionResolveOptions(properties=["edit", "command"]),
            ),
            inlay_hint=types.InlayHintClientCapabilities(),
        ),
        experimental={"evokernel": True} if ours else None,
    )  # fmt: skip


TEST_SETTINGS: dict[str, Any] = {
    "pauseS": 0.1,
    "toastIntervalS": 0.0,
    "toastsPerSession": 1000,
    "revertGraceS": 0.2,
    "survivalS": [0.5, 1.0, 1.5],
    "retryS": [0.2, 1.0],
}
"""Limits lifted and clocks shortened, so that a story takes seconds."""


class Sessions:
    """Starts editors with a server each."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.editors: list[Editor] = []

    async def start(
        self,
        *,
        settings: dict[str, Any] | None = None,
        trusted: Any = True,
        client_capabilities: types.ClientCapabilities | None = None,
        environment: dict[str, str] | None = None,
        locale: str | None = None,
    ) -> Editor:
        asked = client_capabilities or capabilities()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pytest_lsp.client.default_converter", _converter)
            client = make_test_lsp_client()
            patch.setattr(asyncio, "create_subprocess_exec", fork_server)
            await client.start_io("evokernel", "lsp", "--stdio", env={**os.environ, **(environment or {})})
        encoding = ((asked.general and asked.general.position_encodings) or ["utf-16"])[0]
        editor = Editor(client, str(getattr(encoding, "value", encoding)))
        self.editors.append(editor)
        await client.initialize_session(
            types.InitializeParams(
                capabilities=asked,
                locale=locale,
                workspace_folders=[types.WorkspaceFolder(self.workspace.as_uri(), "work")],
                initialization_options={
                    "settings": {**TEST_SETTINGS, **(settings or {})},
                    **({} if trusted is None else {"trusted": trusted}),
                },
            )
        )
        return editor

    async def stop(self, editor: Editor) -> None:
        self.editors.remove(editor)
        server = editor.client._server
        if server is not None and server.returncode is None:
            await editor.client.shutdown_session()
        # pygls's client fails on its own unanswered questions when its server ends
        with contextlib.suppress(RuntimeError):
            await editor.client.stop()


@pytest.fixture
async def sessions(workspace: Path, home: Path) -> AsyncIterator[Sessions]:
    made = Sessions(workspace)
    yield made
    for editor in list(made.editors):
        await made.stop(editor)


@pytest.fixture
def warm_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real worker, forked from a process that has imported it."""
    monkeypatch.setenv("EVOKERNEL_WORKER_COMMAND", worker())


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the scripted worker in the real one's place."""
    monkeypatch.setenv("EVOKERNEL_WORKER_COMMAND", scripted_worker())


@pytest.fixture
def scripted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``scripted``, in a process that is the server's own child."""
    monkeypatch.setenv("EVOKERNEL_WORKER_COMMAND", f"'{sys.executable}' '{SCRIPTED_WORKER}'")


@pytest.fixture(name="capabilities")
def capabilities_fixture() -> Callable[..., types.ClientCapabilities]:
    return capabilities


@pytest.fixture
def test_settings() -> dict[str, Any]:
    return dict(TEST_SETTINGS)
