"""Several kernels are one edit, and one undo takes an acceptance back: text, outcome and package."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evokernel_server.documents.line_index import edits_between
from evokernel_server.documents.workspace import Workspace
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.undo import Undo
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.placement import Placement, Standing
from tests.server.conftest import eventually, guarded
from tests.server.test_ready import QUIET, act, made_ready, opened, titles

pytestmark = pytest.mark.usefixtures("scripted")

THREE = """\
import torch

class A(torch.nn.Module):
    def forward(self, x, y, z):
        # µ😀 comes before, so columns differ by encoding
        x = torch.softmax(x, dim=-1)
        both = torch.softmax(y, dim=-1), torch.softmax(z, dim=-1)
        return x, both
"""
PLACES = ("torch.softmax(x", "torch.softmax(y", "torch.softmax(z")


def packages(workspace: Path) -> set[str]:
    return {folder.name for folder in workspace.glob("evokernel_kernels/softmax_*")}


@pytest.fixture
def three(workspace: Path) -> Path:
    path = workspace / "model.py"
    path.write_text(THREE, "utf-8")
    return path


async def all_ready(editor: Any, uri: str) -> None:
    """Generates the kernels of all three places, wherever on a line they are."""
    for number, _ in enumerate(PLACES):
        line = editor.line_of(uri, PLACES[number])
        found = [item for item in await editor.actions(uri, line) if item.title.startswith("Generate")]
        assert (await editor.run(found[0]))["status"] == "ready"
    await eventually(lambda: _count(editor, uri, 3))


async def _count(editor: Any, uri: str, number: int) -> bool:
    return len(await editor.labels(uri, "⚡ ready")) == number


async def test_three_kernels_are_one_edit_and_one_undo(
    sessions: Any, workspace: Path, three: Path, database: Any
) -> None:
    editor, uri = await opened(sessions, three)
    await all_ready(editor, uri)
    assert not packages(workspace)
    answer = await act(editor, uri, "Accept the 3 kernels of this file")
    assert answer["status"] == "applied"
    assert len(editor.edits) == 1, "one edit is one undo"
    names = dict(zip("xyz", sorted(answer["names"], key=lambda n: _argument(editor, uri, n)), strict=True))
    for argument, name in names.items():
        call = f"({name}.run({argument}) if {name}.holds({argument}) else torch.softmax({argument}, dim=-1))"
        assert call in editor.texts[uri]
    assert packages(workspace) == set(answer["names"]) and len(packages(workspace)) == 3
    await eventually(lambda: database.outcomes().count(("accepted", "")) == 3)

    accepted = editor.texts[uri]
    editor.set_text(uri, THREE)
    await eventually(lambda: database.outcomes().count(("reverted", "undo")) == 3)
    await eventually(lambda: not packages(workspace))
    editor.set_text(uri, accepted)
    await eventually(lambda: len(packages(workspace)) == 3)
    await eventually(lambda: database.outcomes().count(("accepted", "")) == 6)
    await eventually(lambda: _installed(editor, uri, 3))
    editor.set_text(uri, THREE)
    await eventually(lambda: database.outcomes().count(("reverted", "undo")) == 6)
    await eventually(lambda: not packages(workspace))


def _argument(editor: Any, uri: str, name: str) -> str:
    return str(editor.texts[uri].partition(f"{name}.run(")[2][:1])


async def _installed(editor: Any, uri: str, number: int) -> bool:
    return len(await editor.called(uri)) == number


async def test_two_acceptances_are_two_undos(
    sessions: Any, workspace: Path, three: Path, database: Any
) -> None:
    editor, uri = await opened(sessions, three)
    texts = [THREE]
    for words in PLACES[:2]:
        await made_ready(editor, uri, words)
        assert (await act(editor, uri, "Accept the softmax kernel", words))["status"] == "applied"
        texts.append(editor.texts[uri])
        await eventually(lambda: titles(editor, uri, PLACES[1]))
    editor.set_text(uri, texts[1])
    editor.set_text(uri, texts[0])
    editor.set_text(uri, "# typed on within the moment that is waited\n" + texts[0])
    await eventually(lambda: database.outcomes().count(("reverted", "undo")) == 2)
    await eventually(lambda: not packages(workspace))


def in_another_file(workspace: Path, name: str) -> None:
    text = f"from evokernel_kernels import {name}\n\n\ndef f(x):\n    return {name}.run(x)\n"
    (workspace / "other.py").write_text(text, "utf-8")


def changed(workspace: Path, name: str) -> None:
    kernel = workspace / "evokernel_kernels" / name / "op_kernel.cpp"
    kernel.write_text(kernel.read_text() + "// mine\n")


def with_a_file_more(workspace: Path, name: str) -> None:
    (workspace / "evokernel_kernels" / name / "notes.md").write_text("mine")


def with_caches(workspace: Path, name: str) -> None:
    folder = workspace / "evokernel_kernels" / name / "__pycache__"
    folder.mkdir()
    (folder / "x.pyc").write_bytes(b"x")


def named_in_another_file(workspace: Path, name: str) -> None:
    (workspace / "other.py").write_text(f"# {name} was tried here\n", "utf-8")


@pytest.mark.parametrize(
    ("meanwhile", "by_command", "stays"),
    [
        (in_another_file, False, True),
        (in_another_file, True, True),
        (changed, False, True),
        (changed, True, True),
        (with_a_file_more, False, True),
        (with_caches, False, False),
        (with_caches, True, False),
        (named_in_another_file, False, False),
    ],
)
async def test_only_what_nobody_needs_goes(
    meanwhile: Any, by_command: bool, stays: bool, sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    meanwhile(workspace, name)
    if by_command:
        await act(editor, uri, "Revert kernel", ".run(")
    else:
        editor.set_text(uri, path.read_text("utf-8"))
    how = "command" if by_command else "undo"
    await eventually(lambda: ("reverted", how) in database.outcomes())
    if not stays:
        await eventually(lambda: not packages(workspace))
    else:
        back = "⚡ 12x  35 µs" if by_command else "⚡ ready "
        await eventually(lambda: editor.labels(uri, back))  # what was to go is gone
        assert packages(workspace) == {name}


async def test_accepting_again_keeps_what_a_person_changed(sessions: Any, workspace: Path) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    changed(workspace, name)
    editor.set_text(uri, path.read_text("utf-8"))
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    answer = await act(editor, uri, "Accept the softmax kernel")
    backup = workspace / "evokernel_kernels" / ".changed" / name
    assert f"{name} was changed by hand; your version is in {backup}." in answer["message"]
    assert (backup / "op_kernel.cpp").read_text().endswith("// mine\n")
    assert "// mine" not in (backup.parents[1] / name / "op_kernel.cpp").read_text()


async def test_a_redo_of_a_revert_takes_the_package_whatever_was_typed_before(
    sessions: Any, workspace: Path
) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    await made_ready(editor, uri)
    await act(editor, uri, "Accept the softmax kernel")
    typed = f"# typed later\n{editor.texts[uri]}"
    editor.set_text(uri, typed)
    assert (await act(editor, uri, "Revert kernel", ".run("))["status"] == "reverted"
    reverted = editor.texts[uri]
    assert not packages(workspace)
    editor.set_text(uri, typed)
    await eventually(lambda: packages(workspace))
    await eventually(lambda: editor.called(uri))
    editor.set_text(uri, reverted)
    await eventually(lambda: not packages(workspace))


@pytest.mark.parametrize("turns", [(0, 1), (1, 0)], ids=["the first first", "the second first"])
async def test_a_package_of_equal_code_in_two_files_goes_with_the_last_call(
    turns: tuple[int, int], sessions: Any, workspace: Path, database: Any
) -> None:
    paths = (workspace / "model.py", workspace / "other.py")
    shutil.copy(*paths)
    editor, first = await opened(sessions, paths[0])
    second = editor.open(paths[1])
    uris = (first, second)
    for uri in uris:
        await eventually(lambda uri=uri: titles(editor, uri))
        await made_ready(editor, uri)
        assert (await act(editor, uri, "Accept the softmax kernel"))["status"] == "applied"
    (name,) = packages(workspace)
    assert (await act(editor, uris[turns[0]], "Revert kernel", ".run("))["status"] == "reverted"
    assert packages(workspace) == {name}
    editor.set_text(uris[turns[1]], paths[0].read_text("utf-8"))
    await eventually(lambda: not packages(workspace))


class Redone(Undo):
    """Notes which acceptance a call that is back is taken for."""

    async def _again(self, document: Any, gone: Placement) -> None:
        self.redone(gone)


async def test_of_equal_calls_the_last_to_go_is_the_first_to_be_back() -> None:
    """Taken for the other's, a call was no undo's when it went once more, and its package stayed."""
    file, back = Path("/nowhere/model.py"), []
    calls = [Placement(file, "softmax_1", region, "t", "s", 0.0) for region in ("first", "second")]
    log = OutcomeLog(None, lambda: 0.0, lambda: (0.0, 0.0, 0.0))  # type: ignore[arg-type]
    undo = Redone(Workspace(), log, None, None, None, back.append)  # type: ignore[arg-type]
    for call in reversed(calls):
        await undo.gone(call, Standing.UNDONE, with_package=False)
    document = SimpleNamespace(path=file, counts=lambda: Counter({"softmax_1": 1}))
    undo.observe(document)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert back == [calls[0]]


async def test_equal_code_below_two_roots_has_a_package_each(sessions: Any, workspace: Path) -> None:
    inner = workspace / "inner"
    inner.mkdir()
    shutil.copy(workspace / "model.py", inner)
    editor, first = await opened(sessions, workspace / "model.py")
    second = editor.open(inner / "model.py")
    for uri in (first, second):
        await eventually(lambda uri=uri: titles(editor, uri))
        await made_ready(editor, uri)
        assert (await act(editor, uri, "Accept the softmax kernel"))["status"] == "applied"
    assert packages(workspace) == packages(inner) != set()
    assert (await act(editor, first, "Revert kernel", ".run("))["status"] == "reverted"
    await eventually(lambda: not packages(workspace))
    assert packages(inner)


async def test_a_redo_leaves_a_package_that_a_person_changed(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    called = editor.texts[uri]
    changed(workspace, name)
    editor.set_text(uri, path.read_text("utf-8"))
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    editor.set_text(uri, called)
    await eventually(lambda: database.outcomes().count(("accepted", "")) == 2)
    kernel = workspace / "evokernel_kernels" / name / "op_kernel.cpp"
    assert kernel.read_text().endswith("// mine\n")


async def test_a_package_that_was_there_before_stays(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    package = workspace / "evokernel_kernels" / name
    committed = shutil.copytree(package, workspace / "committed")
    assert (await act(editor, uri, "Revert kernel", ".run("))["status"] == "reverted"
    await eventually(lambda: not packages(workspace))
    committed.rename(package)
    await eventually(lambda: editor.labels(uri, "⚡ 12x  35 µs"))
    await made_ready(editor, uri)
    await act(editor, uri, "Accept the softmax kernel")
    assert database.outcomes().count(("accepted", "")) == 2, "accepting again is no redo"
    editor.set_text(uri, path.read_text("utf-8"))
    await eventually(lambda: ("reverted", "undo") in database.outcomes())
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    assert packages(workspace) == {name}


async def test_the_undo_of_a_revert_is_an_acceptance(sessions: Any, workspace: Path, database: Any) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    text = editor.texts[uri]
    await act(editor, uri, "Revert kernel", ".run(")
    await eventually(lambda: not packages(workspace))
    editor.set_text(uri, text)
    await eventually(lambda: database.outcomes().count(("accepted", "")) == 2)
    assert guarded(name, "x") in editor.texts[uri]
    await eventually(lambda: packages(workspace) == {name})


async def test_a_part_of_a_larger_kernel_is_accepted(
    sessions: Any, workspace: Path, three: Path, database: Any
) -> None:
    editor, uri = await opened(sessions, three, programs=True)

    async def around() -> list[Any]:
        return [a for a in await editor.actions(uri, 5) if a.title.startswith("Generate NPU kernel (lines")]

    (whole,) = await eventually(around)
    answer = await editor.run(whole)
    assert answer["status"] == "ready"
    place = {"uri": uri, "regionId": answer["regionId"]}
    part = await made_ready(editor, uri, PLACES[1])
    overlapping = {**place, "regionIds": [place["regionId"], part["regionId"]]}
    refused = await editor.command("evokernel.apply", overlapping)
    assert (refused["status"], "same code" in refused["message"]) == ("refused", True)
    assert not packages(workspace) and not editor.edits
    done = await editor.command("evokernel.apply", {**place, "regionIds": [part["regionId"]]})
    assert done["status"] == "applied"
    await eventually(lambda: ("partially_accepted", "") in database.outcomes())
    assert [kind for kind, _ in database.outcomes()].count("accepted") == 1
    assert (await editor.command("evokernel.apply", place))["status"] == "refused"


async def test_ids_that_are_no_list_are_refused(sessions: Any, workspace: Path) -> None:
    editor, uri = await opened(sessions, workspace / "model.py", **QUIET)
    for ids in ("forward/0", [7], {"a": 1}, 3):
        answer = await editor.command("evokernel.apply", {"uri": uri, "regionIds": ids})
        assert answer["status"] == "refused", ids


LINES = st.lists(st.sampled_from(["a = 1", "b = 2\r", "", "😀", "c\fd"]), max_size=12).map("\n".join)


@given(LINES, LINES)
def test_edits_between_two_texts_lead_from_one_to_the_other(before: str, after: str) -> None:
    edits = edits_between(before, after)
    text = before
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    assert text == after
    assert all(first.end <= second.start for first, second in pairwise(edits))
