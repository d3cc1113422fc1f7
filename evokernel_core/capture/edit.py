"""Edit a person's file: put a guarded call of a kernel before a region's code, and take it out again.

The region's code stays: it runs where the guards do not hold. Only the region's span and an import line
change; every other byte stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from evokernel_core.capture.parsed import PACKAGE, Guarded, KernelImport, ParsedFile
from evokernel_core.capture.regions import identity
from evokernel_core.capture.text import TextChange, apply_change, line_starts, span_of, span_offsets, text_at
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import EditConflict
from evokernel_core.domain.region import Region, Span

_WIDTH = 100
_TORCH_IMPORT = "import torch  # for evokernel_kernels"
_EXPRESSION = "{call} if {holds} else {original}"
_UNLESS_SCRIPTED = "False if torch.jit.is_scripting() else "
"""TorchScript could compile no guard. In this form, and not with an ``and``, it compiles none."""


def plan_edit(text: str, region: Region, kernel_name: str) -> str:
    """The text with a call of the kernel before the region's code, and the import that it needs.

    A region that moved is found again by its text if that is unique in its symbol. Planning an edit
    that is already there changes nothing. Raises EditConflict.
    """
    module = ParsedFile.parse(text)
    applied = _is_applied(module, region, kernel_name)
    place = None if applied else _find_source(module, region, kernel_name)
    if place is None:
        if any(module.guarded(kernel_name, region.symbol)):
            return _with_imports(text, kernel_name)
        raise EditConflict(
            "The code in {symbol} changed since its kernel was made: undo that change, or make the kernel"
            " again.",
            symbol=region.symbol,
        )
    replaced = apply_change(text, TextChange(place, _replacement(text, place, region, kernel_name)))
    return _checked(text, _with_imports(replaced, kernel_name), region)


def revert_edit(text: str, region: Region, kernel_name: str) -> str:
    """The text with the region's own code alone again.

    The import goes with the last call of the kernel. Raises EditConflict where there is no call.
    """
    module = ParsedFile.parse(text)
    start, _ = span_offsets(text, module.symbol(region.symbol))
    result = [guarded for guarded in module.guarded(kernel_name, region.symbol) if guarded.offset >= start]
    if not result:
        raise EditConflict(
            "{symbol} does not call {kernel_name} any more: there is nothing to revert.",
            symbol=region.symbol,
            kernel_name=kernel_name,
        )
    nearest = min(result, key=lambda element: abs(element.span.line - region.span.line))
    site = region.site
    taken = nearest.span if site is not None and site.enclosed else nearest.taken
    stands = nearest.is_prefix
    if stands and site is not None and site.bindings and not site.rest:
        taken, stands = _with_fallback(text, nearest, site), False
    restored = apply_change(text, TextChange(taken, "" if stands else region.source))
    return _checked(text, _without_imports(restored, kernel_name), region)


def _with_fallback(text: str, guard: Guarded, site: CallSite) -> Span:
    """A guard of an earlier version and the code behind it, which names what that guard computes. Raises
    EditConflict."""
    start, end = span_offsets(text, guard.taken)
    original = site.original.replace("\n", _newline(text))
    if not text.startswith(original, end):
        raise EditConflict(
            "The code behind the kernel's guard was changed and uses what the guard computes: use your"
            " version control."
        )
    return span_of(text, start, end + len(original))


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
    """Without the characters that both share at the beginning and the end. No end of it stands within a line
    end of two characters, where no client has a position."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    head -= _splits(text, start + head)
    tail -= _splits(text, start + len(before) - tail)
    end = start + len(before) - tail
    return TextChange(span_of(text, start + head, end), after[head : len(after) - tail])


def _splits(text: str, offset: int) -> bool:
    return offset > 0 and text[offset - 1 : offset + 1] == "\r\n"


def _find_source(module: ParsedFile, region: Region, kernel_name: str) -> Span | None:
    """Where the region's text is now, behind no guard of a kernel: at its span, or once elsewhere in its
    symbol. Code behind another kernel's guard runs where that one cannot, and stays as it is."""
    text = module.text
    kernels = dict.fromkeys([kernel_name, *module.kernels()])
    taken = [guarded.covers for name in kernels for guarded in module.guarded(name, region.symbol)]
    is_here = _digest(text_at(text, region.span)) == region.source_hash
    if is_here and module.is_whole(region.span) and not _in_any(region.span, taken):
        return region.span
    start, end = span_offsets(text, module.symbol(region.symbol))
    places = []
    at = text.find(region.source, start, end)
    while at >= 0:
        span = span_of(text, at, at + len(region.source))
        if module.is_whole(span) and not _in_any(span, taken):
            places.append(span)
        at = text.find(region.source, at + 1, end)
    if len(places) > 1:
        if moved := _moved(places, region.span, sum(each.lines for each in module.kernel_imports())):
            return moved
        raise EditConflict(
            "{symbol} holds the region's code several times and it moved: capture it again.",
            symbol=region.symbol,
        )
    return places[0] if places else None


def _moved(places: Sequence[Span], before: Span, lines: int) -> Span | None:
    """Where a region is that the import of kernels, of so many lines now, has moved: kernels that were put in
    place before this one may have made the import, or longer, or have found it there."""
    shifts = {span.line - before.line: span for span in places if span.column == before.column}
    within = [shift for shift in shifts if 0 <= shift <= lines]
    return shifts[within[0]] if len(within) == 1 else shifts.get(lines)


def _is_applied(module: ParsedFile, region: Region, kernel_name: str) -> bool:
    """Whether a guard of the kernel has the region's own code behind it, rather than code of the same text
    elsewhere in its symbol: by how many times the text stands there up to it, as its id was made."""
    text, source = module.text, _bare(region.source)
    start, _ = span_offsets(text, module.symbol(region.symbol))
    for guard in module.guarded(kernel_name, region.symbol):
        _, end = span_offsets(text, guard.taken)
        number = _bare(text[start:end]).count(source) + guard.is_prefix
        if identity(region.symbol, region.source_hash, number) == region.id:
            return True
    return False


def _bare(text: str) -> str:
    return "".join(text.split())


def _in_any(span: Span, others: Sequence[Span]) -> bool:
    return any(_contains(other, span) for other in others)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replacement(text: str, place: Span, region: Region, kernel_name: str) -> str:
    site = region.site
    if site is None:
        raise EditConflict(
            "The region in {symbol} has no kernel: {reason}", symbol=region.symbol, reason=region.reason
        )
    newline = _newline(text)
    line = text_at(text, Span(place.line, 0, place.line, place.column))
    indent = line[: len(line) - len(line.lstrip())]
    is_moved = "else:" in site.template
    original = site.original.replace("\n", newline) if is_moved else text_at(text, place)
    if site.template == _EXPRESSION:
        return _expression(text, place, site, kernel_name, original)
    inner = indent + "    "
    holds = _holds(kernel_name, site, f"{indent}if :", indent, newline)
    call = _call(f"{kernel_name}.run", site.given, f"{inner}return ", inner, newline)
    return site.template.replace("\n", newline).format(holds=holds, call=call, original=original)


def _expression(text: str, place: Span, site: CallSite, kernel_name: str, original: str) -> str:
    """On one line where that fits; in parentheses unless it is all that an assignment or a return has, or
    stands in parentheses already."""
    newline = _newline(text)
    line, rest = _line_around(text, place)
    holds = f"({_UNLESS_SCRIPTED}{kernel_name}.holds({', '.join(site.asked)}))"
    call = f"{kernel_name}.run({', '.join(site.given)})"
    plain = f"{call} if {holds} else {original}"
    alone = line.endswith(("= ", "return ")) and not rest.strip()
    if newline not in original and len(line) + len(plain) + len(rest) + 2 <= _WIDTH:
        return plain if alone or site.enclosed else f"({plain})"
    indent = line[: len(line) - len(line.lstrip())]
    inner = " " * len(line) if site.enclosed else f"{indent}    "
    rows = [
        _call(f"{kernel_name}.run", site.given, inner, inner, newline),
        f"if {_holds(kernel_name, site, f'{inner}if ', inner, newline)}",
        f"else {original}",
    ]
    joined = f"{newline}{inner}".join(rows)
    return joined if site.enclosed else f"({newline}{inner}{joined}{newline}{indent})"


def _line_around(text: str, place: Span) -> tuple[str, str]:
    """What stands before a span on its first line, and behind it on its last."""
    starts = line_starts(text)
    end = starts[place.end_line] if place.end_line < len(starts) else len(text)
    _, last = span_offsets(text, place)
    return text_at(text, Span(place.line, 0, place.line, place.column)), text[last:end].rstrip("\r\n")


def _holds(kernel_name: str, site: CallSite, before: str, indent: str, newline: str) -> str:
    function = f"({_UNLESS_SCRIPTED}{kernel_name}.holds"
    return _call(function, site.asked, f"{before})", indent, newline) + ")"


def _call(function: str, arguments: Sequence[str], before: str, indent: str, newline: str) -> str:
    """The call on one line where it fits behind ``before``, else an argument a line."""
    text = f"{function}({', '.join(arguments)})"
    if len(before) + len(text) <= _WIDTH:
        return text
    rows = "".join(f"{indent}    {argument},{newline}" for argument in arguments)
    return f"{function}({newline}{rows}{indent})"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _checked(before: str, text: str, region: Region) -> str:
    """The text if it still compiles: an edit must never leave a broken file. Where our Python cannot compile
    what was there, as newer syntax or an unfinished line elsewhere, the place of the edit has to parse."""
    error = _compile_error(text, region.file)
    if error is not None and _compile_error(before, region.file) is None:
        raise EditConflict(
            "The edit of {symbol} would not compile ({error}): capture it again.",
            symbol=region.symbol,
            error=error,
        ) from error
    if error is not None:
        ParsedFile.parse(text).symbol(region.symbol)
    return text


def _compile_error(text: str, file: str) -> Exception | None:
    try:
        compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return error
    return None


def _kernel_import(names: Iterable[str], newline: str) -> str:
    """One import of kernels, sorted; a name a line where it is too long."""
    line = f"from {PACKAGE} import {', '.join(sorted(names))}"
    return line if len(line) <= _WIDTH else _spread(names, newline)


def _spread(names: Iterable[str], newline: str) -> str:
    rows = "".join(f"    {name},{newline}" for name in sorted(names))
    return f"from {PACKAGE} import ({newline}{rows})"


def _with_names(text: str, present: KernelImport, names: Iterable[str]) -> str:
    """The text with other names in an import. One that had a name a line without need keeps them so."""
    newline = _newline(text)
    needs_one = "\n" not in _kernel_import(present.names, newline)
    write = _spread if present.lines > 1 and needs_one else _kernel_import
    return apply_change(text, TextChange(present.span, write(names, newline)))


def _with_imports(text: str, kernel_name: str) -> str:
    module = ParsedFile.parse(text)
    present = module.kernel_imports()
    missing = [] if module.imports(kernel_name) else [kernel_name]
    if missing and present:
        text = _with_names(text, present[0], {*present[0].names, kernel_name})
        module, missing = ParsedFile.parse(text), []
    wanted = [] if module.binds_torch() else [_TORCH_IMPORT]
    newline = _newline(text)
    wanted += [_kernel_import([name], newline) for name in missing]
    if not wanted:
        return text
    start = module.import_offset()
    before = newline if start and not text[:start].endswith(("\n", "\r")) else ""
    return text[:start] + before + "".join(line + newline for line in wanted) + text[start:]


def _without_imports(text: str, kernel_name: str) -> str:
    if f"{kernel_name}.holds(" not in text:
        text = _without_name(text, kernel_name)
    if f"from {PACKAGE} import" not in text:
        text = _without_line(text, _TORCH_IMPORT)
    return text


def _without_name(text: str, kernel_name: str) -> str:
    for present in ParsedFile.parse(text).kernel_imports():
        left = [name for name in present.names if name != kernel_name]
        if left and len(left) < len(present.names):
            return _with_names(text, present, left)
        if not left and present.is_alone:
            lines = [*line_starts(text), len(text)]
            return text[: lines[present.span.line - 1]] + text[lines[present.span.end_line] :]
    return text


def _without_line(text: str, line: str) -> str:
    for start, piece in zip(line_starts(text), _pieces(text, line_starts(text)), strict=True):
        if piece.rstrip("\r\n") == line:
            return text[:start] + text[start + len(piece) :]
    return text


def _contains(outer: Span, inner: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (
        (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )
