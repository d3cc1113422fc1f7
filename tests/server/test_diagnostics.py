"""Diagnostics: what each code says, with its page and its action, on demand and sent."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.stale import stale_calls
from evokernel_server.features import diagnostic
from evokernel_server.features.diagnostic import outermost
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from evokernel_core.domain import errors
from evokernel_core.package.fallbacks import stands
from tests.server.conftest import Editor

HEAD = "import torch\n\n\n"
FILES = {
    "worth_fusing": "def f(x):\n    return torch.softmax(x, dim=-1)\n",
    "needs_shapes": "def needy(x):\n    return torch.relu(x)\n",
    "import_failed": "import broken\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
    "internal": "import internal\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
}
ACTIONS = {
    "worth_fusing": "Generate NPU kernel",
    "needs_shapes": "Run something that uses this model",
    "import_failed": "Analyse again",
    "internal": "Analyse again",
}


def pulling(capabilities: Any) -> types.ClientCapabilities:
    """A client that asks for diagnostics, as VS Code does."""
    asked: types.ClientCapabilities = capabilities()
    assert asked.text_document and asked.workspace
    asked.text_document.diagnostic = types.DiagnosticClientCapabilities()
    asked.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    return asked


async def pull(editor: Editor, uri: str, previous: str | None = None) -> Any:
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri), previous_result_id=previous)
    return await editor.client.text_document_diagnostic_async(params)


async def titles_for(editor: Editor, uri: str, item: types.Diagnostic) -> list[str]:
    """Titles of the actions that say they are about a diagnostic. lsprotocol reads an action with a command
    as that command and loses the rest, so the answer is read as it came."""
    answers: list[Any] = []
    protocol = editor.client.protocol
    structure = protocol.structure_message

    def keep(data: dict[str, Any]) -> Any:
        if "result" in data:
            answers.append(data["result"])
        return structure(data)

    protocol.structure_message = keep
    context = types.CodeActionContext([item])
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), item.range, context)
    await editor.client.text_document_code_action_async(params)
    del protocol.structure_message
    return [
        action["title"]
        for action in answers[-1]
        if any(found["code"] == item.code for found in action.get("diagnostics", ()))
    ]


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("code", FILES)
async def test_each_code_has_its_page_and_its_action(
    code: str, sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start()
    (workspace / "file.py").write_text(HEAD + FILES[code])
    uri = editor.open(workspace / "file.py")
    (found,) = await eventually(lambda: editor.client.diagnostics.get(uri))
    assert (found.code, found.severity) == (code, types.DiagnosticSeverity.Hint)
    page = Path(url2pathname(urlparse(found.code_description.href).path))
    assert page.name in (f"{code}.md", "failed.md") and page.read_text().startswith("# ")
    assert code == "internal" or f"`{code}`" in page.read_text()
    titles = await titles_for(editor, uri, found)
    assert any(title.startswith(ACTIONS[code]) for title in titles), titles


@pytest.mark.usefixtures("scripted")
async def test_who_asks_is_told_on_demand_alone(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(client_capabilities=pulling(capabilities))
    refreshed: list[None] = []
    editor.client.protocol.fm.features["workspace/diagnostic/refresh"] = refreshed.append
    (workspace / "file.py").write_text(HEAD + FILES["worth_fusing"])
    uri = editor.open(workspace / "file.py")
    await eventually(lambda: refreshed)
    first = await pull(editor, uri)
    assert [item.code for item in first.items] == ["worth_fusing"]
    again = await pull(editor, uri, first.result_id)
    assert (again.kind, again.result_id) == ("unchanged", first.result_id)
    editor.set_text(uri, "# above\n" + editor.texts[uri])
    moved = await pull(editor, uri, first.result_id)
    assert moved.items[0].range.start.line == first.items[0].range.start.line + 1
    assert not editor.client.diagnostics, "nothing is sent to a client that asks"
    assert not (await pull(editor, "file:///no/such.py")).items


@pytest.mark.usefixtures("scripted")
async def test_a_client_that_cannot_be_asked_again_is_sent_them(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    asked = pulling(capabilities)
    assert asked.workspace
    asked.workspace.diagnostics = None
    editor = await sessions.start(client_capabilities=asked)
    (workspace / "file.py").write_text(HEAD + FILES["worth_fusing"])
    uri = editor.open(workspace / "file.py")
    assert await eventually(lambda: editor.client.diagnostics.get(uri))


@pytest.mark.usefixtures("scripted")
async def test_many_documents_are_one_refresh(sessions: Any, workspace: Path, eventually: Any) -> None:
    editor = await sessions.start()
    uris = []
    for number in range(12):
        (workspace / f"file{number}.py").write_text(HEAD + FILES["worth_fusing"])
        uris.append(editor.open(workspace / f"file{number}.py"))

    async def all_there() -> bool:
        return all([await editor.hints(uri) for uri in uris])

    await eventually(all_there)
    assert 1 <= editor.refreshed < len(uris) / 2


@pytest.mark.usefixtures("scripted")
async def test_a_call_goes_stale_and_fits_again(sessions: Any, workspace: Path, eventually: Any) -> None:
    editor = await sessions.start(settings={"editAtOnce": True, "refineInBackground": False})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    name = str((await editor.run(action))["name"])
    kernel = workspace / "evokernel_kernels" / name / "op_kernel.cpp"

    def stale() -> list[Any]:
        return [item for item in editor.client.diagnostics.get(uri, []) if item.code == "stale_kernel"]

    assert not stale()
    text = kernel.read_text()
    kernel.write_text(text + "// by hand\n")
    (changed,) = await eventually(stale)
    await eventually(lambda: "does not fit its code any more" in editor.statuses[-1].text)
    assert "was changed after it was verified" in changed.message
    named = await titles_for(editor, uri, changed)
    assert f"Restore the package of {name}" in named and f"Revert kernel {name}" in named
    kernel.write_text(text)
    await eventually(lambda: not stale())
    await eventually(lambda: "fit" not in editor.statuses[-1].text)


@pytest.mark.usefixtures("scripted")
async def test_a_call_whose_code_changed_shows_no_figures(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    """The kernel does not run there: its hint said how fast it is."""
    editor = await sessions.start(settings={"editAtOnce": True, "refineInBackground": False})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    await editor.run(action)
    await eventually(lambda: editor.called(uri))
    accepted = editor.texts[uri]
    editor.set_text(uri, accepted.replace("dim=-1))", "dim=-1) * 2)"))
    assert editor.texts[uri] != accepted
    await eventually(lambda: editor.labels(uri, "⚡ kernel out of date"))
    assert not await editor.called(uri)
    editor.set_text(uri, accepted)
    await eventually(lambda: editor.called(uri))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=8))
def test_the_outermost_are_those_that_no_other_holds(spans: list[tuple[int, int]]) -> None:
    regions = [SimpleNamespace(extent=Extent(start, start + length)) for start, length in spans]
    found = [item.extent for item in outermost(regions)]  # type: ignore[arg-type]
    extents = {item.extent for item in regions}
    expected = {one for one in extents if not any(two != one and two.holds(one) for two in extents)}
    assert set(found) == expected and len(found) == len(expected)


EXPRESSION = "torch.softmax(x * 2, dim=-1)"
WHOLE = "y = x * 2\n    return torch.softmax(y, dim=-1)"
GUARD = "    if k.holds(x):\n        return k.run(x)\n"
FITTING = {
    "expression": (f"def f(x):\n    return k.run(x) if k.holds(x) else {EXPRESSION}\n", EXPRESSION),
    "formatted": (
        "def f(x):\n    return (\n        k.run(x)\n        if k.holds(x)\n        else torch.softmax(\n"
        "            x*2, dim = -1,  # last\n        )\n    )\n",
        EXPRESSION,
    ),
    "whole body": (f"def f(x):\n{GUARD}    {WHOLE}\n", WHOLE),
    "else": (f"def f(x):\n    if k.holds(x):\n        y = k.run(x)\n    else:\n        y = {EXPRESSION}\n",
             f"y = {EXPRESSION}"),
    "a kernel inside": (
        f"def f(x):\n{GUARD}    y = x * 2\n"
        "    return j.run(y) if j.holds(y) else torch.softmax(y, dim=-1)\n", WHOLE,
    ),
    "no guard": ("def f(x):\n    return k.run(x)\n", EXPRESSION),
    "unknown": ("def f(x):\n    return k.run(x) if k.holds(x) else x\n", ""),
    "cut badly": ("def f(x):\n    return k.run(x) if k.holds(x) else x\n", "else:"),
}  # fmt: skip
CHANGED = {
    "expression": ("y = k.run(x) if k.holds(x) else torch.softmax(x * 3, dim=-1)\n", EXPRESSION),
    "whole body": (f"def f(x):\n{GUARD}    y = x * 3\n    return torch.softmax(y, dim=-1)\n", WHOLE),
    "a line more": (f"def f(x):\n{GUARD}    x = x + 1\n    {WHOLE}\n", WHOLE),
    "one call of two": (
        f"a = k.run(x) if k.holds(x) else x\nb = k.run(x) if k.holds(x) else {EXPRESSION}\n",
        EXPRESSION,
    ),
    "a line less": (f"def f(x):\n{GUARD}    return torch.softmax(y, dim=-1)\n", WHOLE),
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_code_that_fits(name: str) -> None:
    text, original = FITTING[name]
    assert stands(ast.parse(text), "k", original)


@pytest.mark.parametrize("name", CHANGED)
def test_code_that_was_changed(name: str) -> None:
    text, original = CHANGED[name]
    assert not stands(ast.parse(text), "k", original)


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n", "(" * 5_000])
def test_a_missing_package_is_stale_whatever_the_text(text: str, tmp_path: Path) -> None:
    found = stale_calls(tmp_path / "model.py", text, ["k"], "ascend910b1")
    assert found.keys() == {"k"} and "is missing" in found["k"]


def test_every_reason_has_a_page() -> None:
    kinds = [item for item in vars(errors).values() if isinstance(getattr(item, "reason", None), str)]
    codes = {str(item.reason) for item in kinds} | {"worth_fusing", "stale_kernel", "untrusted", "not_served"}
    pages = {path.stem for path in diagnostic.FOLDER.glob("*.md")}
    assert codes - {"internal"} <= pages
    assert diagnostic.page_of("../../app") == diagnostic.page_of("failed")
    commands = {word for path in diagnostic.FOLDER.glob("*.md")
                for word in re.findall(r"`evokernel ([a-z]+)", path.read_text())}  # fmt: skip
    from evokernel_core.cli.main import COMMANDS

    assert commands <= set(COMMANDS)
