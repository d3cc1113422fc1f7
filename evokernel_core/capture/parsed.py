"""Where a file that is edited has its imports, its functions and classes, and the guards of kernels.

The syntax tree is the finder's: it knows the syntax of every Python, also of one that is newer than ours, and
a file of thousands of lines takes it some hundredths of a second. What stands in the place of an edit has to
be free of errors; a tree survives those in other functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from evokernel_core.capture.finder import Document
from evokernel_core.capture.text import line_starts, span_offsets
from evokernel_core.domain.errors import EditConflict
from evokernel_core.domain.region import Span

PACKAGE = "evokernel_kernels"
"""The package that generated calls import their kernels from."""
_DEFINITIONS = frozenset({"function_definition", "class_definition"})
_DECORATED = "decorated_definition"
_WITH_BLOCKS = _DEFINITIONS | {
    "block", "case_clause", "elif_clause", "else_clause", "except_clause", "except_group_clause",
    "finally_clause", "for_statement", "if_statement", "match_statement", "try_statement", "while_statement",
    "with_statement", _DECORATED,
}  # fmt: skip
_NO_CODE = frozenset({
    "comment", "escape_sequence", "string_content", "string_end", "string_start",
})  # fmt: skip
_IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})


@frozen
class Guarded:
    """A guard of a kernel: its node's ``span``, what a revert takes out, and all that it ``covers`` with the
    code that runs where it fails. ``is_prefix``: that code stands behind it as it was."""

    span: Span
    taken: Span
    covers: Span
    is_prefix: bool
    offset: int


@frozen
class KernelImport:
    """``from evokernel_kernels import NAMES``. ``is_alone``: nothing else is on its lines."""

    span: Span
    names: tuple[str, ...]
    is_alone: bool

    @property
    def lines(self) -> int:
        return self.span.end_line - self.span.line + 1


@frozen
class ParsedFile:
    """A parsed file. Positions are the product's: 1-based lines, columns in characters."""

    text: str
    document: Document

    @classmethod
    def parse(cls, text: str) -> ParsedFile:
        """Raises EditConflict where the text does not parse outside its functions and classes."""
        document = Document(text)
        root = document.tree.root_node
        if root.type == "ERROR" or any(_is_wrong(child) for child in root.children if not _defined(child)):
            raise _syntax_error()
        return cls(text, document)

    def symbol(self, qualname: str) -> Span:
        """The span of a function or class. Raises EditConflict if it is gone, or has a syntax error."""
        for node in self._definitions(qualname):
            return self._span(node)
        if self.document.tree.root_node.has_error:  # it may be what does not parse
            raise _syntax_error()
        raise EditConflict("{qualname} is not in the file any more: capture it again.", qualname=qualname)

    def is_whole(self, span: Span) -> bool:
        """Whether the span is one expression, or statements that follow each other from the first's start to
        the last's end. `return a` within `return a * b` is neither."""
        start, end = (len(self.text[:at].encode()) for at in span_offsets(self.text, span))
        first = [node for node in self._around(start, start + 1) if node.start_byte == start]
        last = [node for node in self._around(end - 1, end) if end in (node.end_byte, _end(node))]
        blocks = [node.parent for node in last if _is_block(node.parent)]
        return any(node in last or (_is_block(node.parent) and node.parent in blocks) for node in first)

    def _around(self, start: int, end: int) -> Iterator[Node]:
        """The code that holds some bytes, from the inside out."""
        node = self.document.tree.root_node.descendant_for_byte_range(start, end)
        while node is not None:
            if node.is_named and node.type not in _NO_CODE:
                yield node
            node = node.parent

    def guarded(self, kernel_name: str, symbol: str) -> Iterator[Guarded]:
        """Where a symbol asks the kernel's guard."""
        for definition in self._definitions(symbol):
            for node in _own(definition):
                condition = _condition(node)
                if condition is not None and _calls(condition, f"{kernel_name}.holds"):
                    yield self._guard(node)

    def _guard(self, node: Node) -> Guarded:
        if node.type == "conditional_expression":
            span = self._span(_with_parentheses(node))
            return Guarded(self._span(node), span, span, False, self._offset(span))
        own = self._span(node)
        if node.child_by_field_name("alternative") is not None:
            return Guarded(own, own, own, False, self._offset(own))
        behind = self._behind(node)
        taken = Span(own.line, own.column, behind.line, behind.column)
        covers = Span(own.line, own.column, behind.end_line, behind.end_column)
        return Guarded(own, taken, covers, True, self._offset(taken))

    def _behind(self, node: Node) -> Span:
        """From the statement behind a guard to the end of its block; the guard's own end where none is."""
        block = _statements(node.parent) if node.parent is not None else []
        after = [child for child in block if child.start_byte > node.start_byte]
        if not after:
            at = self.document.position(_end(node))
            return Span(*at, *at)
        return self._span(after[0], after[-1])

    def binds_torch(self) -> bool:
        """Whether the name ``torch`` is imported at the top level."""
        return any(
            _bound(name) == "torch"
            for node in self._top_level()
            if node.type == "import_statement"
            for name in node.children_by_field_name("name")
        )

    def imports(self, kernel_name: str) -> bool:
        """Whether the kernel's package is imported at the top level."""
        return kernel_name in self.kernels()

    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels that are imported at the top level."""
        return tuple(
            _text(name)
            for node in self._top_level()
            if _imports_kernels(node)
            for name in node.children_by_field_name("name")
            if name.type == "dotted_name"
        )

    def kernel_imports(self) -> tuple[KernelImport, ...]:
        """The imports of kernels above the first definition that have names alone: no comment, no alias."""
        head = itertools.takewhile(lambda node: not _defined(node), self._top_level())
        return tuple(
            self._kernel_import(node)
            for node in head
            if _imports_kernels(node)
            and all(child.type in {"dotted_name", "from", "import", "(", ",", ")"} for child in node.children)
        )

    def _kernel_import(self, node: Node) -> KernelImport:
        span, starts = self._span(node), [*line_starts(self.text), len(self.text)]
        lines = self.text[starts[span.line - 1] : starts[span.end_line]]
        names = tuple(map(_text, node.children_by_field_name("name")))
        return KernelImport(span, names, lines.strip() == _text(node))

    def import_offset(self) -> int:
        """After the lines of the last import above the first definition, else after the docstring."""
        last: Node | None = None
        for node in self._top_level():
            if _defined(node):
                break
            on_its_line = last is not None and self._line(node.start_byte) == self._line(last.end_byte)
            if node.type in _IMPORTS or on_its_line or (last is None and _is_docstring(node)):
                last = node
        if last is None:
            return 0
        starts, end_line = line_starts(self.text), self._line(_end(last))
        return starts[end_line] if end_line < len(starts) else len(self.text)

    def _top_level(self) -> list[Node]:
        return _statements(self.document.tree.root_node)

    def _line(self, byte: int) -> int:
        return self.document.position(byte)[0]

    def _offset(self, span: Span) -> int:
        return span_offsets(self.text, span)[0]

    def _span(self, first: Node, last: Node | None = None) -> Span:
        """From the start of a node to the end of another, else to its own."""
        ends = self.document.position(_end(last or first))
        return Span(*self.document.position(first.start_byte), *ends)

    def _definitions(self, qualname: str) -> Iterator[Node]:
        """The functions and classes of a name that have no syntax error, in the order of the text."""
        waiting = [(self.document.tree.root_node, "")]
        while waiting:
            node, holder = waiting.pop()
            if node.type in _DEFINITIONS:
                holder = f"{holder}.{_field(node, 'name')}".lstrip(".")
                if holder == qualname and not node.has_error:
                    yield node
            inner = [named_child for named_child in node.named_children if named_child.type in _WITH_BLOCKS]
            waiting += [(element, holder) for element in reversed(inner)]


def _syntax_error() -> EditConflict:
    return EditConflict("The file has a syntax error, so it is skipped: correct it and try again.")


def _is_wrong(node: Node) -> bool:
    return node.has_error or node.is_missing


def _defined(node: Node) -> bool:
    return node.type in _DEFINITIONS or node.type == _DECORATED


def _statements(block: Node) -> list[Node]:
    return [named_child for named_child in block.named_children if named_child.type != "comment"]


def _is_block(node: Node | None) -> bool:
    return node is not None and node.type in ("block", "module")


def _own(definition: Node) -> Iterator[Node]:
    """The nodes of a function or class that no other within it holds, in the order of the text."""
    waiting = list(reversed(definition.named_children))
    while waiting:
        node = waiting.pop()
        yield node
        if node.type not in _DEFINITIONS:
            waiting += reversed(node.named_children)


def _condition(node: Node) -> Node | None:
    """What a statement or an expression asks; of ``False if ... else ...`` what it asks in the end."""
    condition = None
    if node.type == "if_statement":
        condition = node.child_by_field_name("condition")
    elif node.type == "conditional_expression":
        condition = _statements(node)[1]
    while condition is not None and condition.type in ("parenthesized_expression", "conditional_expression"):
        condition = _statements(condition)[-1]
    return condition


def _with_parentheses(node: Node) -> Node:
    """With the innermost pair of parentheses that hold nothing else, where there is one."""
    around = node.parent
    if around is None or around.type != "parenthesized_expression" or len(around.named_children) > 1:
        return node
    return around


def _calls(node: Node, name: str) -> bool:
    return node.type == "call" and _field(node, "function") == name


def _end(node: Node) -> int:
    """Where a statement ends, without comments that follow its last line of code."""
    while node.type in _WITH_BLOCKS:
        inner = [child for child in node.children if child.type != "comment"]
        if not inner:
            break
        node = inner[-1]
    return node.end_byte


def _bound(name: Node) -> str:
    """What an import binds: the alias, else the first part of the module's name."""
    return _field(name, "alias") or _text(name).split(".")[0]


def _is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and node.named_children[0].type.endswith("string")


def _imports_kernels(node: Node) -> bool:
    return node.type == "import_from_statement" and _field(node, "module_name") == PACKAGE


def _field(node: Node, name: str) -> str:
    child = node.child_by_field_name(name)
    return _text(child) if child is not None else ""


def _text(node: Node) -> str:
    return (node.text or b"").decode()
