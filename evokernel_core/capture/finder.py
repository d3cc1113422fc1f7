"""Find the definitions of a file that hold tensor code, while the person types and without torch.

The syntax tree is tree-sitter's: it is updated incrementally and survives syntax errors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal

import tree_sitter_python
from attrs import frozen
from tree_sitter import Language, Node, Parser, Point, Tree

from evokernel_core.capture.annotation import COMMENT
from evokernel_core.domain.region import Span

_LANGUAGE = Language(tree_sitter_python.language())
_CONTAINERS = frozenset({
    "module", "if_statement", "else_clause", "elif_clause", "try_statement", "except_clause",
    "finally_clause", "with_statement", "block", "ERROR",
})  # fmt: skip
_TORCH_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+torch\b|import[ \t]+(?:[\w. \t,]*,[ \t]*)?torch\b)", re.MULTILINE
)
_PLAIN_IMPORT = re.compile(r"import[ \t]+([\w. \t,]+)")
_FROM_IMPORT = re.compile(r"from[ \t]+torch(?:\.\w+)*[ \t]+import[ \t]*(\([^)]*\)|[^\n(]+)")
_COMMENT_OR_BRACKET = re.compile(r"#.*|[()\\]")
_LONG_RUN = 100
_RUN = re.compile(rb"(?:^[ \t]*(?:#[^\n]*)?\n){%d,}" % _LONG_RUN, re.MULTILINE)
"""Lines that hold nothing but comments or blanks. tree-sitter's time grows with the square of their number:
2,500 lines that were commented out take it a second."""
_KEPT_LINES = 30
"""At the end of such a run stay the comments that may say the shapes of what follows."""
_STRING_OR_COMMENT = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""|'
    rb"'''(?:[^\\]|\\.)*?'''|"
    rb'"(?:[^"\\\n]|\\.)*"|'
    rb"'(?:[^'\\\n]|\\.)*'|"
    rb"(#[^\n]*)",
    re.DOTALL,
)
INPUTS = frozenset({"get_inputs", "get_input_groups", "get_inputs_dyn_list"})
"""Functions by which a file says what it is called with."""
_SUPPLIERS = INPUTS | {"get_init_inputs"}


@frozen
class Definition:
    """A class or function with tensor code. ``span`` covers it with its decorators, ``name_span``
    its name. ``has_inputs`` says that the file has get_inputs() or its like; ``annotation`` is the text
    of its ``# evokernel:`` comment, empty without one."""

    qualname: str
    kind: Literal["class", "function"]
    span: Span
    name_span: Span
    has_inputs: bool
    annotation: str = ""


def imports_torch(text: str) -> bool:
    """Whether the text imports torch or something below it; other files cost nothing more."""
    return "torch" in text and _TORCH_IMPORT.search(text) is not None


def parsable(source: bytes) -> bytes:
    """The text with blanks in place of comments in long runs of them; all offsets stay."""
    runs = [match.span() for match in _RUN.finditer(source)] if _may_have_runs(source) else []
    if not runs:
        return source
    blank = bytearray(source)
    ends = [_line_from_the_end(source, *run) for run in runs]
    for match in _STRING_OR_COMMENT.finditer(source):
        if match[1] is not None:
            at = bisect_right(runs, (match.start(), len(source))) - 1
            if at >= 0 and runs[at][0] <= match.start() < ends[at]:
                blank[match.start() : match.end()] = b" " * len(match[1])
    return bytes(blank)


def _may_have_runs(source: bytes) -> bool:
    """Whether around one of every so many lines there are as many without code: each run holds such a line.
    The search for runs itself takes longer than the parser needs for an edit."""
    lines = source.split(b"\n")
    for middle in range(_LONG_RUN - 1, len(lines), _LONG_RUN):
        first = last = middle
        while first >= 0 and not _is_code(lines[first]):
            first -= 1
        while last < len(lines) and not _is_code(lines[last]):
            last += 1
        if last - first > _LONG_RUN:
            return True
    return False


def _is_code(line: bytes) -> bool:
    return not line.lstrip().startswith(b"#") if line.strip() else False


def _line_from_the_end(source: bytes, start: int, end: int) -> int:
    """Where the last lines of a run begin that are kept."""
    for _ in range(_KEPT_LINES + 1):
        end = max(start, source.rfind(b"\n", start, end))
    return end


class Document:
    """A text with its syntax tree.

    After edits the tree equals a fresh one. Where the text does not parse, recovery from its errors would
    depend on what was there before, so such a text is parsed from scratch.
    """

    def __init__(self, text: str) -> None:
        self._parser = Parser(_LANGUAGE)
        self.text = text
        self.source = text.encode()
        """The text in UTF-8, which the tree's offsets count in."""
        self._byte_starts: list[int] | None = None  # made when a position is asked for
        self.tree = self._parser.parse(parsable(self.source))

    def position(self, byte: int) -> tuple[int, int]:
        """1-based line and column in characters of a byte offset."""
        if self._byte_starts is None:
            self._byte_starts = _byte_line_starts(self.source)
        line = bisect_right(self._byte_starts, byte)
        return line, len(self.source[self._byte_starts[line - 1] : byte].decode())

    def edit(self, start: int, end: int, text: str) -> None:
        """Puts ``text`` in the place of the characters from ``start`` to ``end``."""
        first = len(self.text[:start].encode())
        old_last = first + len(self.text[start:end].encode())
        new = text.encode()
        last = first + len(new)
        old_point, first_point = _point(self.source, old_last), _point(self.source, first)
        self.text = self.text[:start] + text + self.text[end:]
        self.source = self.source[:first] + new + self.source[old_last:]
        self._byte_starts = None
        self.tree.edit(first, old_last, last, first_point, old_point, _point(self.source, last))
        self.tree = self._parsed()

    def _parsed(self) -> Tree:
        source = parsable(self.source)
        tree = self._parser.parse(source, self.tree)
        return self._parser.parse(source) if tree.root_node.has_error else tree


def _byte_line_starts(source: bytes) -> list[int]:
    ends = list(accumulate(map(len, source.splitlines(keepends=True))))  # of bytes these are Python's lines
    return [0, *(ends if source.endswith((b"\n", b"\r")) else ends[:-1])]


def _point(source: bytes, offset: int) -> Point:
    """tree-sitter counts rows by line feeds alone, and columns in bytes."""
    line = source.rfind(b"\n", 0, offset) + 1
    return Point(source.count(b"\n", 0, offset), offset - line)


def find(document: Document) -> tuple[Definition, ...]:
    """The definitions with tensor code, in source order."""
    names = _torch_names(document.text)
    if not names:
        return ()
    pattern = re.compile(rb"(?<![\w.])(?:" + b"|".join(sorted(names)) + rb")\b")
    nodes = list(_definitions(document.tree.root_node))
    has_inputs = any(name in INPUTS for _, name in nodes)
    result = []
    for node, qualname in nodes:
        annotation = _annotation(document, node)
        if qualname in _SUPPLIERS or not (annotation or _holds_tensor_code(document, node, pattern)):
            continue
        result.append(_definition(document, node, qualname, has_inputs, annotation))
    return tuple(result)


def _torch_names(text: str) -> frozenset[bytes]:
    """The names that the file's imports bind to torch, its modules and their members."""
    names = set()
    for clause in _clauses("import", _PLAIN_IMPORT, text):
        for words in map(str.split, clause.split(",")):
            if words and words[0].split(".")[0] == "torch":
                names.add(words[-1] if len(words) == 3 else "torch")
    for clause in _clauses("from", _FROM_IMPORT, text):
        for words in map(str.split, _COMMENT_OR_BRACKET.sub("", clause).split(",")):
            if words:
                names.add(words[-1])
    return frozenset(re.escape(name).encode() for name in names)


def _clauses(keyword: str, statement: re.Pattern[str], text: str) -> Iterator[str]:
    """The first group of each statement that is the first on its line. The keyword is searched for as plain
    text: a pattern that begins with ``^`` looks at every character, which takes ten times as long."""
    at = text.find(keyword)
    while at >= 0:
        match = statement.match(text, at) if _begins_line(text, at) else None
        if match is not None:
            yield match[1]
        at = text.find(keyword, match.end() if match is not None else at + 1)


def _begins_line(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return at == 0 or text[at - 1] == "\n"


def _definitions(root: Node) -> Iterator[tuple[Node, str]]:
    """Classes and functions outside functions and, for classes, inside classes too; a text may be nested
    deeper than Python's own calls can be."""
    waiting: list[tuple[Node, str]] = [(child, "") for child in reversed(root.named_children)]
    while waiting:
        child, prefix = waiting.pop()
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None:
            continue
        name = inner.child_by_field_name("name")
        if inner.type == "class_definition" and name is not None:
            qualname = prefix + _decode(name)
            yield child, qualname
            body = inner.child_by_field_name("body")
            waiting += [
                (named_child, f"{qualname}.") for named_child in reversed(body.named_children if body else ())
            ]
        elif inner.type == "function_definition" and name is not None:
            if not prefix:
                yield child, _decode(name)
        elif child.type in _CONTAINERS:
            waiting += [(named_child, prefix) for named_child in reversed(child.named_children)]


def _inner(node: Node) -> Node:
    """The class or function itself where the node includes its decorators."""
    return node.child_by_field_name("definition") or node


def _decode(node: Node) -> str:
    return (node.text or b"").decode()


def _holds_tensor_code(document: Document, node: Node, pattern: re.Pattern[bytes]) -> bool:
    """A class with a forward method, or a function whose text uses a name that torch gave."""
    inner = _inner(node)
    if inner.type == "class_definition":
        return b"def forward" in document.source[inner.start_byte : inner.end_byte]
    return pattern.search(document.source, inner.start_byte, inner.end_byte) is not None


def _definition(
    document: Document, node: Node, qualname: str, has_inputs: bool, annotation: str
) -> Definition:
    inner = _inner(node)
    name = inner.child_by_field_name("name") or inner
    kind: Literal["class", "function"] = "class" if inner.type == "class_definition" else "function"
    return Definition(qualname, kind, _span(document, node), _span(document, name), has_inputs, annotation)


def _span(document: Document, node: Node) -> Span:
    return Span(*document.position(node.start_byte), *document.position(node.end_byte))


def _annotation(document: Document, node: Node) -> str:
    """The comment right above, on the line of the colon, or first in the body; for a class, in the
    same places of its forward method."""
    inner = _inner(node)
    places = [node, *_methods(inner, b"forward")]
    for place in places:
        for comment in _nearby_comments(place):
            match = COMMENT.match(_decode(comment))
            if match:
                return match["values"]
    return ""


def _methods(node: Node, name: bytes) -> Iterator[Node]:
    body = node.child_by_field_name("body")
    if node.type != "class_definition" or body is None:
        return
    for child in body.named_children:
        result = _inner(child).child_by_field_name("name")
        if result is not None and result.text == name:
            yield child


def _nearby_comments(node: Node) -> Iterator[Node]:
    row, previous = node.start_point.row, node.prev_named_sibling
    while previous is not None and previous.type == "comment" and previous.start_point.row == row - 1:
        yield previous
        row, previous = row - 1, previous.prev_named_sibling
    inner = _inner(node)
    yield from (child for child in inner.children if child.type == "comment")
    body = inner.child_by_field_name("body")
    for child in body.named_children if body else ():
        if child.type != "comment":
            break
        yield child
