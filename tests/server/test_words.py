"""What the server says is translated: all of it, with the same to fill in, and by what is committed."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from evokernel_server import words
from evokernel_server.words import LOCALES, _, catalogue_of, many, speak

SERVER = Path(words.__file__).parent
FILE = LOCALES / "zh_CN" / "LC_MESSAGES" / "evokernel.po"
KEYWORDS = {"_": None, "many": (1, 2), "marked": None}
HOLES = re.compile(r"\{\w*\}")
Message = str | tuple[str, ...]


def catalogue() -> Catalog:
    with FILE.open("rb") as file:
        return read_po(file, "zh_CN")


def said() -> set[Message]:
    found = extract_from_dir(SERVER, [("**.py", "python")], keywords=KEYWORDS, comment_tags=())
    return {message for _file, _line, message, _comments, _context in found}


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    speak("")


def test_all_that_is_said_is_in_the_catalogue_and_nothing_else() -> None:
    known = {message.id for message in catalogue() if message.id}
    assert said() - known == set(), "run `make words` and translate what is new"
    assert known - said() == set(), "run `make words`"


@pytest.mark.parametrize(
    "message", [item for item in catalogue() if item.id], ids=lambda item: str(item.id)[:40]
)
def test_a_translation_is_chinese_and_fills_in_the_same(message: object) -> None:
    ids, texts = message.id, message.string  # type: ignore[attr-defined]
    ids = (ids,) if isinstance(ids, str) else ids
    texts = (texts,) if isinstance(texts, str) else texts
    assert not message.fuzzy  # type: ignore[attr-defined]
    for text in texts:
        figures_alone = not re.search("[A-Za-z]", HOLES.sub("", ids[-1]))
        assert figures_alone or re.search("[\u4e00-\u9fff]", text), text
        assert sorted(HOLES.findall(text)) == sorted(HOLES.findall(ids[-1])), text


def test_what_is_installed_is_what_was_translated() -> None:
    made = io.BytesIO()
    write_mo(made, catalogue())
    assert FILE.with_suffix(".mo").read_bytes() == made.getvalue(), "run `make words`"


@pytest.mark.parametrize(
    ("locale", "folder"),
    [("zh-cn", "zh_CN"), ("zh", "zh_CN"), ("zh-Hans-CN", "zh_CN"), ("ZH_CN", "zh_CN"), ("zh-tw", ""),
     ("zh-Hant", ""), ("en-GB", ""), ("de", ""), ("", ""), ("../../zh_CN", "")],
)  # fmt: skip
def test_the_language_of_a_locale(locale: str, folder: str) -> None:
    assert catalogue_of(locale) == folder
    speak(locale)
    assert (_("modelled") == "modelled") is not bool(folder)


def test_braces_of_what_is_filled_in_stay() -> None:
    assert _("{name} stays as it is.", name="{x}") == "{x} stays as it is."
    assert many("{count} file", "{count} files", 1) == "1 file"
    assert many("{count} file", "{count} files", 2) == "2 files"


@pytest.mark.usefixtures("scripted")
async def test_a_chinese_editor_is_spoken_to_in_chinese(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(locale="zh-cn", settings={"refineInBackground": False})
    uri = editor.open(workspace / "model.py")
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert hint.label == "⚡ 12x：412 → 35.0 µs（模型估算）"
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "生成 NPU 算子")
    await editor.run(action)
    assert "可在 model.py 中生成 1 个算子；最大收益为 92%。" in [item.text for item in editor.statuses]
    refused = await editor.command("evokernel.forget", {"what": "?"})
    assert refused["message"] == "请说明要删除什么：您的决定，还是整个记忆库。"


SHOWS = {"Refused", "Refusal", "CodeActionDisabled"}
"""What is made with a sentence for a person as its first argument."""
TITLES = {"message", "title"}
"""Keys and arguments that are shown."""


@pytest.mark.parametrize("path", sorted(SERVER.rglob("*.py")), ids=lambda path: path.name)
def test_no_sentence_is_said_in_english_alone(path: Path) -> None:
    shown = _shown(ast.parse(path.read_text("utf-8")))
    assert [node.lineno for node in shown if _is_words(node)] == []


@pytest.mark.parametrize("path", sorted(SERVER.rglob("*.py")), ids=lambda path: path.name)
def test_every_sentence_stands_where_it_is_found(path: Path) -> None:
    """Within an f-string no message is found for translation before Python 3.12."""
    strings = (
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.JoinedStr)
    )
    calls = (node for string in strings for node in ast.walk(string) if isinstance(node, ast.Call))
    assert [node.lineno for node in calls if getattr(node.func, "id", "") in KEYWORDS and _says(node)] == []


def _says(call: ast.Call) -> bool:
    return any(isinstance(item, ast.Constant) for item in call.args)


def _shown(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            yield from node.args[:1] if name in SHOWS else ()
            yield from (item.value for item in node.keywords if item.arg in TITLES)
            yield from node.args[1:2] if name.startswith("ShowMessage") else ()
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if getattr(key, "value", None) in TITLES)


def _is_words(node: ast.expr) -> bool:
    """A literal with words in it; names and figures alone, and the product's own name, are none."""
    if isinstance(node, ast.BoolOp):
        return any(map(_is_words, node.values))
    texts = (
        [node] if isinstance(node, ast.Constant) else node.values if isinstance(node, ast.JoinedStr) else []
    )
    written = " ".join(str(item.value) for item in texts if isinstance(item, ast.Constant))
    return bool(re.search(r"[A-Za-z]{2,}", written.replace("EvoKernel", "")))
