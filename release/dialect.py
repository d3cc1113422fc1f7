"""Words of our own in what people read: sentences, pages, the command line, the extension, emitted comments.

    python -m release.dialect

dialect.toml lists them, with what the field says instead. Stored values, names in code and text between
backticks are none of a reader's language and are left out.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

from release.words import ROOT, moves, said, stored

PAGES = ("README.md", "docs/*.md", "docs/results/*.md", "vscode-extension/README.md")
SPOKEN = (
    "evokernel_core/cli/*.py",
    "evokernel_core/synthesis/data_card.py",
    "evokernel_core/synthesis/steps.py",
    "server/evokernel_mcp/*.py",
)
"""Where every string of words may be read, in English alone."""
EMITTED = (
    "docs/kernels/**/*.py",
    "docs/kernels/**/*.cpp",
    "docs/kernels/**/*.h",
    "evokernel_core/**/*.jinja",
)
_ELSEWHERE = ("prompts", ".html.jinja")
"""Templates of what models read, and of pages, whose words are sentences."""
_PRINTERS = "evokernel_core/targets/**/*.py"
_COMMENT = re.compile(r"^\s*(?:#|//|\*)\s?(?!include|pragma|define)([^\n]*)$", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
_HOLE = re.compile(r"\{\w*\}")
_SAID_BY = re.compile(r"command|group|tool|prompt|resource")
"""Decorators of functions whose docstrings are help texts."""


@frozen
class Word:
    """One of our own words, as a pattern, and what to say instead."""

    pattern: re.Pattern[str]
    say: str


@frozen
class Text:
    """A text that people read, and where it stands."""

    where: str
    text: str


@cache
def words() -> tuple[Word, ...]:
    """The rows of dialect.toml."""
    rows = tomllib.loads(Path(__file__).with_name("dialect.toml").read_text("utf-8"))["word"]
    return tuple(Word(re.compile(row["ours"], re.IGNORECASE | re.MULTILINE), row["say"]) for row in rows)


def dialect(text: str) -> Iterator[tuple[str, str]]:
    """Words of our own in a text, each with what to say instead."""
    for word in words():
        yield from ((match[0], word.say) for match in word.pattern.finditer(_HOLE.sub("{}", text)))


def texts() -> Iterator[Text]:
    """All that people read."""
    yield from _sentences()
    yield from _extension()
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            yield Text(_name(path), prose(path.read_text("utf-8")))
    for pattern in SPOKEN:
        for path in sorted(ROOT.glob(pattern)):
            yield from (Text(_name(path), text) for text in spoken(path.read_text("utf-8")))
    yield from _comments()


def _comments() -> Iterator[Text]:
    """Comments in packages: of templates, of examples, and those that printers of kernels hold."""
    paths = [path for pattern in EMITTED for path in sorted(ROOT.glob(pattern))]
    texts = [(path, path.read_text("utf-8")) for path in paths if not any(map(_name(path).count, _ELSEWHERE))]
    for path in sorted(ROOT.glob(_PRINTERS)):
        texts += [(path, text) for text in spoken(path.read_text("utf-8")) if _COMMENT.search(text)]
    for path, text in texts:
        yield from (Text(_name(path), comment[1]) for comment in _COMMENT.finditer(text))


def prose(page: str) -> str:
    """A page without its code."""
    return _CODE.sub("", page)


def _sentences() -> Iterator[Text]:
    left_out = {*stored(), *moves()}
    for message in said():
        for text in (message,) if isinstance(message, str) else message:
            if message not in left_out:
                yield Text("a sentence", prose(text))


def _extension() -> Iterator[Text]:
    folder = ROOT / "vscode-extension"
    texts = json.loads((folder / "package.nls.json").read_text("utf-8")).values()
    keys = json.loads((folder / "l10n/bundle.l10n.zh-cn.json").read_text("utf-8"))
    yield from (Text("vscode-extension", prose(text)) for text in (*texts, *keys))


def spoken(source: str) -> Iterator[str]:
    """The strings of words in a file of Python, and docstrings of its commands and tools."""
    nodes = list(ast.walk(ast.parse(source)))
    expressions = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_help(node):
            yield prose(ast.get_docstring(node) or "")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in expressions:
            yield prose(node.value) if " " in node.value else ""


def _is_help(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(_SAID_BY.search(ast.unparse(item)) for item in node.decorator_list)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> None:
    """Prints what is found; exit status 1 where something is."""
    lines = [
        f"{text.where}: “{ours}”: say {say}. {' '.join(text.text.split())[:120]}"
        for text in texts()
        for ours, say in dialect(text.text)
    ]
    print("\n".join(lines) or "No words of our own.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
