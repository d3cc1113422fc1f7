"""Reviews, variants, comparisons, reasons and timelines as commands, against a scripted worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from lsprotocol import types
from pygls.uris import to_fs_path

pytestmark = pytest.mark.usefixtures("scripted")

QUIET = {"refineInBackground": False, "editAtOnce": True}


def standard(capabilities: Any) -> types.ClientCapabilities:
    """A client that knows the standard alone."""
    return evolve(capabilities(), experimental=None)


async def opened(editor: Any, eventually: Any, path: Path) -> tuple[str, str]:
    """Opens the model; gives its uri and its region's id."""
    uri = editor.open(path)
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    resolved = await editor.client.code_action_resolve_async(action)
    return uri, resolved.command.arguments[0]["regionId"]


async def verified(editor: Any, uri: str, region_id: str) -> None:
    """Has a kernel verified without a call of it in the file."""
    editor.refuse_edits = True
    await editor.command("evokernel.generate", {"uri": uri, "regionId": region_id})
    editor.refuse_edits = False


def plain_data(value: Any) -> Any:
    """What pygls read as objects, as JSON has it."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: plain_data(item) for key, item in value.items()}
    return [plain_data(item) for item in value] if isinstance(value, list | tuple) else value


async def asked(editor: Any, name: str, argument: dict[str, Any]) -> dict[str, Any]:
    answer = plain_data(await editor.command(f"evokernel.{name}", argument))
    assert isinstance(answer, dict)
    return answer


async def test_a_review_shows_what_applying_then_writes(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings=QUIET)
    uri, region_id = await opened(editor, eventually, workspace / "model.py")
    place = {"uri": uri, "regionId": region_id}
    refused = await asked(editor, "review", place)
    assert refused["status"] == "refused" and "generate one first" in refused["message"]

    await verified(editor, uri, region_id)
    before = editor.texts[uri]
    review = (await asked(editor, "review", place))["review"]
    assert (review["before"], review["file"], review["regionId"]) == (before, "model.py", region_id)
    assert review["line"] == editor.line_of(uri, "torch.softmax")
    assert review["installed"] is None
    assert ".run(" in review["after"].splitlines()[review["changeLine"]]
    assert review["guards"] == [{"name": "", "condition": "x is float16."}]
    assert review["kernel"]["source"] == "modelled" and review["kernel"]["verifier"] == "scripted"
    assert [file["name"] for file in review["files"]] == ["tiling.h", "op_kernel.cpp"]
    assert all(file["before"] == "" for file in review["files"])
    assert database.outcomes()[-1] == ("opened_diff", "")
    assert editor.texts[uri] == before
    assert not list(workspace.glob("evokernel_kernels/softmax*"))

    moved = f"# one line more\n{before}"
    editor.set_text(uri, moved)
    review = (await asked(editor, "review", place))["review"]
    assert (review["before"], review["version"]) == (moved, editor.versions[uri])
    await asked(editor, "generate", place)
    assert editor.texts[uri] == review["after"]

    review = (await asked(editor, "review", {"uri": uri, "name": review["name"]}))["review"]
    assert review["before"] == review["after"] == editor.texts[uri]
    assert review["line"] == review["changeLine"] == editor.line_of(uri, ".run(")
    assert review["installed"] == review["kernel"]
    assert "This is the accepted kernel." in review["why"]
    titles = [item.title for item in await editor.actions(uri, editor.line_of(uri, ".run("))]
    for title in ("Review", "List the variants of", "Show the timeline of"):
        assert f"{title} {review['name']}" in titles


async def test_a_review_of_a_refined_kernel_says_what_changed(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings={"editAtOnce": True})
    uri, region_id = await opened(editor, eventually, workspace / "model.py")
    answer = await asked(editor, "generate", {"uri": uri, "regionId": region_id})
    await eventually(lambda: any(method == "evokernel/refined" for method, _ in editor.custom))
    for place in ({"uri": uri, "regionId": region_id}, {"uri": uri, "name": answer["name"]}):
        review = (await asked(editor, "review", place))["review"]
        assert review["installed"]["us"] > review["kernel"]["us"]
        assert review["before"] == review["after"]
        assert any(item.startswith("Tile: ") for item in review["why"])
        before = {file["name"]: file["before"] for file in review["files"]}
        assert before["op_kernel.cpp"] == "// kernel 1\n"

    found = (await asked(editor, "variants", {"uri": uri, "name": answer["name"]}))["variants"]
    assert len(found) == 6
    assert [item["us"] for item in found] == sorted(item["us"] for item in found)
    assert [item["best"] for item in found] == [True, *[False] * 5]
    assert [item["installed"] for item in found] == [*[False] * 5, True]
    assert sorted(item["attempt"] for item in found) == [*range(1, 7)]
    fastest = f"{found[0]['attempt']}"
    assert found[0]["changes"] == [{"name": "Tile", "before": "1", "after": fastest, "words": "tile raised"}]
    assert found[-1]["changes"] == []
    editor.answers = ["Reject", "Other"]
    await eventually(lambda: "explained" in dict(database.outcomes()))
    again = (await asked(editor, "variants", {"uri": uri, "name": answer["name"]}))["variants"]
    assert [item["rejected"] for item in again] == [True, *[False] * 5]
    assert [item["best"] for item in again] == [False, True, *[False] * 4]

    one, other = found[-1]["sourceId"], found[0]["sourceId"]
    place = {"uri": uri, "name": answer["name"]}
    files = (await asked(editor, "compare", {"place": place, "sourceId": one, "other": other}))["files"]
    changed = [file for file in files if file["before"] != file["after"]]
    assert [(file["name"], file["before"]) for file in changed] == [("op_kernel.cpp", "// kernel 1\n")]
    wrong = await asked(editor, "compare", {"place": place, "sourceId": one, "other": "nothing"})
    assert wrong["status"] == "refused" and "ask for the variants again" in wrong["message"]


async def test_a_diff_is_shown_for_each_file_that_differs(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(settings={"editAtOnce": True})
    uri, region_id = await opened(editor, eventually, workspace / "model.py")
    await asked(editor, "generate", {"uri": uri, "regionId": region_id})
    await eventually(lambda: editor.statuses[-1].offers == 1)
    (offer,) = (await asked(editor, "dashboard", {}))["dashboard"]["offers"]
    assert (offer["title"], offer["ready"]) == ("softmax", False)
    assert (offer["wasSource"], offer["source"]) == ("modelled", "modelled")
    assert offer["wasUs"] == 55.0 > offer["newUs"], "what it replaces is the accepted kernel"
    await asked(editor, "showDiff", {"uri": uri, "regionId": region_id})
    await eventually(lambda: any(method == "evokernel/showDiff" for method, _ in editor.custom))
    shown = [params for method, params in editor.custom if method == "evokernel/showDiff"]
    assert all(item.uri.endswith(("/op_kernel.cpp", "/tiling.h")) for item in shown)
    assert all("// tiling" not in item.original + item.proposed for item in shown if "op_kernel" in item.uri)


async def test_standard_clients_get_pages(
    sessions: Any, workspace: Path, home: Path, eventually: Any, capabilities: Any
) -> None:
    editor = await sessions.start(settings=QUIET, client_capabilities=standard(capabilities))
    shown = editor.client.shown_documents
    uri, region_id = await opened(editor, eventually, workspace / "model.py")
    await verified(editor, uri, region_id)
    place = {"uri": uri, "regionId": region_id}
    assert (await asked(editor, "review", place))["status"] == "shown"
    page = Path(path_of(shown[-1].uri))
    assert page.is_relative_to(home / "cache" / "reviews") and page.suffix == ".md"
    assert page.stat().st_mode & 0o077 == 0 and page.parent.stat().st_mode & 0o077 == 0
    text = page.read_text("utf-8")
    assert "+from evokernel_kernels import" in text and "// kernel 1" in text and "x is float16." in text

    await asked(editor, "variants", place)
    assert "1 verified kernel" in Path(path_of(shown[-1].uri)).read_text("utf-8")
    answer = await asked(editor, "timeline", place)
    assert (shown[-1].external, path_of(shown[-1].uri)) == (True, answer["path"])
    assert Path(answer["path"]).read_text() == "<!doctype html>"


def path_of(uri: str) -> str:
    return str(to_fs_path(uri))


async def test_why_there_is_no_kernel_is_an_action_and_a_command(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    path = workspace / "model.py"
    text = path.read_text("utf-8").replace("names = ", "z = torch.fft.fft(x)\n        names = ")
    path.write_text(
        f"import hopeless\n{text}".replace("import hopeless\n", "import hopeless  # x\n"), "utf-8"
    )
    editor = await sessions.start(settings=QUIET, client_capabilities=standard(capabilities))
    uri = editor.open(path)
    line = text.count("\n", 0, text.index("torch.fft")) + 1

    async def titles(at: int) -> list[str]:
        return [item.title for item in await editor.actions(uri, at)]

    title = "Explain why no kernel is offered here"
    await eventually(lambda: _has(titles(line), title))
    assert title not in await titles(0)
    answer = await editor.run(await editor.action(uri, line, title))
    assert plain_data(answer)["reasons"][0]["code"] == "unsupported"
    assert await eventually(lambda: [m for m in editor.client.messages if "docs/author.md" in m.message])

    found = (await asked(editor, "whyNot", {"uri": uri}))["reasons"]
    assert {item["code"] for item in found} == {"unsupported", "no_gain"}
    assert [item["line"] for item in found] == sorted(item["line"] for item in found)
    assert all(item["why"] and item["help"] for item in found)
    quiet = await asked(editor, "whyNot", {"uri": uri, "line": 0})
    assert (quiet["status"], quiet["reasons"]) == ("shown", [])


async def _has(titles: Any, title: str) -> bool:
    return title in await titles


async def test_nothing_is_reviewed_in_a_folder_that_is_not_trusted(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(trusted=None)
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    for name in ("review", "variants", "timeline"):
        answer = await asked(editor, name, {"uri": uri, "regionId": "x"})
        assert answer["status"] == "refused" and "trust" in answer["message"]
    (reason,) = (await asked(editor, "whyNot", {"uri": uri}))["reasons"]
    assert reason["code"] == "untrusted"


async def test_a_place_that_is_none_is_refused(sessions: Any) -> None:
    editor = await sessions.start()
    for argument in ({}, {"uri": "file:///x.py"}, {"regionId": "r"}, {"place": 3}, {"uri": 1, "name": "x"}):
        for name in ("review", "variants", "compare", "timeline"):
            assert (await asked(editor, name, argument))["status"] == "refused", (name, argument)
