"""Edit a person's file: put a kernel's call in a region's place, and take it out again.

Only the region's span and two import lines change; every other byte stays. LibCST says where imports
and symbols are; it parses slowly, so this runs when an edit is made and never while typing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import libcst as cst
from attrs import frozen
from libcst.metadata import MetadataWrapper, PositionProvider

from evokernel_core.capture.text import TextChange, apply_change, line_starts, span_of, span_offsets, text_at
from evokernel_core.domain.arguments import expressions
from evokernel_core.domain.errors import EditConflict
from evokernel_core.domain.region import Region, Span

_WIDTH = 100
_TORCH_IMPORT = "import torch  # for torch.ops.evokernel"
_NAMESPACE = "torch.ops.evokernel"


def plan_edit(text: str, region: Region, kernel_name: str) -> str:
    """The text with the region replaced by the kernel's call, and the imports that it needs.

    A region that moved is found again by its text if that is unique in its symbol. Planning an edit
    that is already there changes nothing. Raises EditConflict.
    """
    module = _Module.parse(text)
    place = _find_source(module, region)
    if place is None:
        if f"{_NAMESPACE}.{kernel_name}(" in text_at(text, module.symbol(region.symbol)):
            return _with_imports(text, kernel_name)
        raise EditConflict(
            f"The code of the region in {region.symbol} changed since it was captured: capture it again."
        )
    replaced = apply_change(text, TextChange(place, _replacement(text, place, region, kernel_name)))
    return _checked(_with_imports(replaced, kernel_name), region)


def revert_edit(text: str, region: Region, kernel_name: str) -> str:
    """The text with the region's own code back in place of the kernel's call.

    The import goes with the last call of the kernel. Raises EditConflict where there is no call.
    """
    module = _Module.parse(text)
    start, _ = span_offsets(text, module.symbol(region.symbol))
    places = [span for span in module.calls(kernel_name, region) if span_offsets(text, span)[0] >= start]
    if not places:
        raise EditConflict(
            f"{region.symbol} does not call {kernel_name} any more: there is nothing to revert."
        )
    nearest = min(places, key=lambda span: abs(span.line - region.span.line))
    restored = apply_change(text, TextChange(nearest, region.source))
    return _checked(_without_imports(restored, kernel_name), region)


def minimal_edits(old: str, new: str) -> list[TextChange]:
    """The differing pieces, in order; each span is in the old text, as language clients expect."""
    starts, fresh = line_starts(old), line_starts(new)
    old_lines, new_lines = _pieces(old, starts), _pieces(new, fresh)
    changes = []
    for tag, a, b, c, d in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag != "equal":
            first = starts[a] if a < len(starts) else len(old)
            changes.append(_trimmed(old, first, "".join(old_lines[a:b]), "".join(new_lines[c:d])))
    return changes


def _pieces(text: str, starts: Sequence[int]) -> list[str]:
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


def _trimmed(text: str, start: int, before: str, after: str) -> TextChange:
    """Without the characters that both share at the beginning and the end."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    end = start + len(before) - tail
    return TextChange(span_of(text, start + head, end), after[head : len(after) - tail])


def _find_source(module: _Module, region: Region) -> Span | None:
    """Where the region's text is now: at its span, or once elsewhere in its symbol."""
    text = module.text
    if _digest(text_at(text, region.span)) == region.source_hash:
        return region.span
    start, end = span_offsets(text, module.symbol(region.symbol))
    places = []
    at = text.find(region.source, start, end)
    while at >= 0:
        span = span_of(text, at, at + len(region.source))
        if module.is_whole(span):
            places.append(span)
        at = text.find(region.source, at + 1, end)
    if len(places) > 1:
        raise EditConflict(
            f"{region.symbol} holds the region's code {len(places)} times and it moved: capture it again."
        )
    return places[0] if places else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replacement(text: str, place: Span, region: Region, kernel_name: str) -> str:
    if region.task is None:
        raise EditConflict(f"The region in {region.symbol} has no kernel: {region.reason}")
    newline = _newline(text)
    before, _ = _around(region, newline)
    margin = (text_at(text, Span(place.line, 0, place.line, place.column)) + before).split(newline)[-1]
    arguments = expressions(region.task.graph)
    call = f"{_NAMESPACE}.{kernel_name}({', '.join(map(_joined, arguments))})"
    if len(margin) + len(call) > _WIDTH:
        indent = margin[: len(margin) - len(margin.lstrip())]
        rows = "".join(_row(argument, f"{indent}    ", newline) for argument in arguments)
        call = f"{_NAMESPACE}.{kernel_name}({newline}{rows}{indent})"
    return call.join(_around(region, newline))


def _joined(argument: str | list[str]) -> str:
    return argument if isinstance(argument, str) else f"[{', '.join(argument)}]"


def _row(argument: str | list[str], indent: str, newline: str) -> str:
    if isinstance(argument, str):
        return f"{indent}{argument},{newline}"
    items = "".join(f"{indent}    {item},{newline}" for item in argument)
    return f"{indent}[{newline}{items}{indent}],{newline}"


def _around(region: Region, newline: str) -> tuple[str, str]:
    """What the replacement has before and after the call, with the file's line ends."""
    before, after = region.replacement.replace("\n", newline).format(call="\0").split("\0")
    return before, after


def _passed(region: Region) -> list[str]:
    """What a call passes, without spaces and line ends."""
    found = expressions(region.task.graph) if region.task is not None else []
    return [_bare(_joined(item)) for item in found]


def _bare(text: str) -> str:
    return "".join(text.split()).replace(",]", "]")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _checked(text: str, region: Region) -> str:
    """The text if it still compiles: an edit must never leave a broken file."""
    try:
        compile(text, region.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise EditConflict(
            f"The edit of {region.symbol} would not compile ({error}): capture it again."
        ) from error
    return text


def _kernel_import(kernel_name: str) -> str:
    return f"import evokernel_kernels.{kernel_name}  # noqa: F401"


def _with_imports(text: str, kernel_name: str) -> str:
    module = _Module.parse(text)
    wanted = [] if module.binds_torch() else [_TORCH_IMPORT]
    if not module.imports(f"evokernel_kernels.{kernel_name}"):
        wanted.append(_kernel_import(kernel_name))
    if not wanted:
        return text
    newline = _newline(text)
    start = module.import_offset()
    before = newline if start and not text[:start].endswith(("\n", "\r")) else ""
    return text[:start] + before + "".join(line + newline for line in wanted) + text[start:]


def _without_imports(text: str, kernel_name: str) -> str:
    if f"{_NAMESPACE}.{kernel_name}(" not in text:
        text = _without_line(text, _kernel_import(kernel_name))
    if f"{_NAMESPACE}." not in text.replace(_TORCH_IMPORT, ""):
        text = _without_line(text, _TORCH_IMPORT)
    return text


def _without_line(text: str, line: str) -> str:
    for start, piece in zip(line_starts(text), _pieces(text, line_starts(text)), strict=True):
        if piece.rstrip("\r\n") == line:
            return text[:start] + text[start + len(piece) :]
    return text


@frozen
class _Place:
    """A node of the file with its position and the qualified name of what holds it."""

    node: cst.CSTNode
    span: Span
    holder: str


@frozen
class _Module:
    """A parsed file. Positions are the product's: 1-based lines, columns in characters."""

    text: str
    tree: cst.Module
    places: tuple[_Place, ...]

    @classmethod
    def parse(cls, text: str) -> _Module:
        """Raises EditConflict where the text does not parse."""
        try:
            wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
            raise EditConflict(
                "The file has a syntax error, so it is left alone: correct it and try again."
            ) from error
        positions = wrapper.resolve(PositionProvider)
        places = []
        for node, holder in _walk(wrapper.module, ""):
            if node in positions:
                found = positions[node]
                span = Span(found.start.line, found.start.column, found.end.line, found.end.column)
                places.append(_Place(node, span, holder))
        return cls(text, wrapper.module, tuple(places))

    def symbol(self, qualname: str) -> Span:
        """The span of a function or class. Raises EditConflict if it is gone."""
        for place in self.places:
            if isinstance(place.node, (cst.FunctionDef, cst.ClassDef)):
                name = f"{place.holder}.{place.node.name.value}".lstrip(".")
                if name == qualname:
                    return place.span
        raise EditConflict(f"{qualname} is not in the file any more: capture it again.")

    def is_whole(self, span: Span) -> bool:
        """Whether the span is one expression, or begins and ends with statements."""
        kinds = (cst.BaseExpression, cst.BaseSmallStatement, cst.SimpleStatementLine)
        spans = [place.span for place in self.places if isinstance(place.node, kinds)]
        starts = {(item.line, item.column) for item in spans}
        ends = {(item.end_line, item.end_column) for item in spans}
        return (span.line, span.column) in starts and (span.end_line, span.end_column) in ends

    def calls(self, kernel_name: str, region: Region) -> Iterator[Span]:
        """What to replace to undo each call of the kernel in the region's symbol; only calls with the
        region's arguments where there are such."""
        name = f"{_NAMESPACE}.{kernel_name}"
        places = [
            place
            for place in self.places
            if isinstance(place.node, cst.Call)
            and place.holder == region.symbol
            and _dotted(place.node.func) == name
        ]
        exact = [place for place in places if self._arguments(place.node) == _passed(region)]
        for place in exact or places:
            yield self._replaced(place.span, region)

    def _replaced(self, call: Span, region: Region) -> Span:
        """All that took the region's place together with a call; the call's statement where what stood
        around it has changed."""
        before, after = _around(region, _newline(self.text))
        start, end = span_offsets(self.text, call)
        if self.text[:start].endswith(before) and self.text[end:].startswith(after):
            return span_of(self.text, start - len(before), end + len(after))
        return self._statement(call)

    def _arguments(self, call: cst.CSTNode) -> list[str]:
        arguments = call.args if isinstance(call, cst.Call) else ()
        return [_bare(self.tree.code_for_node(item.value)) for item in arguments]

    def _statement(self, inner: Span) -> Span:
        """The smallest statement around a span."""
        around = [
            place.span
            for place in self.places
            if isinstance(place.node, cst.BaseSmallStatement) and _contains(place.span, inner)
        ]
        return max(around, key=lambda span: (span.line, span.column))

    def binds_torch(self) -> bool:
        """Whether the name ``torch`` is imported at the top level."""
        return any(bound == "torch" for bound, _ in self._imported())

    def imports(self, name: str) -> bool:
        return any(module == name for _, module in self._imported())

    def _imported(self) -> Iterator[tuple[str, str]]:
        """The name bound and the module named, for each plain import at the top level."""
        for line in self.tree.body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(statement, cst.Import):
                    for item in statement.names:
                        name = _dotted(item.name)
                        alias = item.asname.name if item.asname else None
                        bound = alias.value if isinstance(alias, cst.Name) else name.split(".")[0]
                        yield bound, name

    def import_offset(self) -> int:
        """After the last import above the first definition, else after the docstring."""
        last: cst.CSTNode | None = None
        for line in self.tree.body:
            if isinstance(line, (cst.FunctionDef, cst.ClassDef)):
                break
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and line.body else None
            docstring = isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)
            if isinstance(small, (cst.Import, cst.ImportFrom)) or (docstring and last is None):
                last = line
        if last is None:
            return 0
        end_line = next(place.span.end_line for place in self.places if place.node is last)
        starts = line_starts(self.text)
        return starts[end_line] if end_line < len(starts) else len(self.text)


def _walk(node: cst.CSTNode, holder: str) -> Iterator[tuple[cst.CSTNode, str]]:
    yield node, holder
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        holder = f"{holder}.{node.name.value}".lstrip(".")
    for child in node.children:
        yield from _walk(child, holder)


def _dotted(node: cst.CSTNode) -> str:
    """``a.b.c`` for names and attributes, empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return ""


def _contains(outer: Span, inner: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (
        (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )
