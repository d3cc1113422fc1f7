"""A review as one Markdown page, for editors that show documents and nothing of ours.

What others wrote (names, sentences of verifiers and models, the files themselves) can begin no markup: it is
escaped in sentences, and stands in fences that are longer than any run of backticks within.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from evokernel_server.offers.pending import microseconds
from evokernel_server.review.contents import File, Review, ReviewedKernel, Variant
from evokernel_server.review.explanations import MODELLED
from evokernel_server.texts.plain import code, markdown, plain
from evokernel_server.texts.translations import _, marked, sourced

MOST_LINES = 5000
"""Lines of one diff that a page holds."""
_BACKTICKS = re.compile(r"`+")
_EMPHASIS = re.compile(r"\*|~~|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BLOCK = re.compile(r"^(?=[#+\-=|]|\d+[.)])")
"""What begins a heading, a list or a table where a sentence begins with it."""


def review_page(review: Review) -> str:
    """The page of a review, with a line at its end."""
    return _page(
        f"# {_text(review.title)}",
        "",
        _(
            "{file}, line {line}; package {name}.",
            file=code(review.file),
            line=review.line + 1,
            name=code(review.name),
        ),
        *_section(_("Evidence"), _evidence(review)),
        *_section(_("Why it is faster, and its bottleneck"), _list(review.why)),
        *_section(_("How it works"), _list(review.kernel.strategy)),
        *_section(_("Guards"), _guards(review)),
        *_section(_("The change in your file"), _python(review)),
        *_section(_("The kernel's files"), _files(review)),
        *_section(_("Parts with a kernel of their own"), _list(_parts(review))),
        *_section(_("How to decide"), _list(map(_, _DECIDE))),
    )


_DECIDE = (
    marked("The code actions on the line accept, reject or snooze this kernel."),
    marked("One undo takes an accepted kernel out of the file again."),
)


def variants_page(title: str, variants: Iterable[Variant]) -> str:
    """The verified kernels of a region, the fastest first."""
    head = (_("kernel"), _("latency"), _("attempt"), _("what differs"), _("schedule"), _("marks"))
    return table_page(title, head, map(_variant, variants))


def table_page(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A page of one table."""
    lines = (f"| {' | '.join(map(_cell, row))} |" for row in rows)
    return _page(f"# {_text(title)}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines)


def diff_of(file: File, before: str, after: str) -> str:
    """The unified diff of one file; ``before`` and ``after`` say which kernels the two sides are."""
    old, new = (text.splitlines(keepends=True) for text in (file.before, file.after))
    name = plain(file.name)
    lines = difflib.unified_diff(old, new, f"{name} ({before})", f"{name} ({after})")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    text = list(lines)
    if text:
        yield from ("", f"## {title}", "", *text)


def _list(sentences: Iterable[str]) -> Iterator[str]:
    return (f"- {_text(sentence)}" for sentence in sentences)


def _text(words: str) -> str:
    """A sentence of anybody's, in which no markup begins; underscores within names stay as they are."""
    return _BLOCK.sub(r"\\", _inline(words))


def _cell(words: str) -> str:
    """The same for a cell of a table, which a bar would end."""
    return _inline(words).replace("|", r"\|")


def _inline(words: str) -> str:
    return _EMPHASIS.sub(r"\\\g<0>", markdown(words))


def _evidence(review: Review) -> Iterator[str]:
    kernel, installed = review.kernel, review.installed
    yield from (_row(_("what"), _("number")), "|---|---|")
    yield _row(_("eager"), _cell(kernel.baseline))
    if review.vendor is not None:
        vendor = review.vendor
        words = _("as one operator, {name}", name=vendor.name)
        yield _row(words, sourced(microseconds(vendor.us), vendor.source))
    if installed is not None and installed.source_id != kernel.source_id:
        yield _row(_("accepted kernel"), f"{_figure(installed)}, {installed.verifier}")
    yield _row(_("this kernel"), f"{_figure(kernel)}, {kernel.verifier}")
    yield _row(_("roofline limit"), sourced(microseconds(kernel.bound_us), MODELLED))
    for operand in kernel.inputs:
        sizes = " x ".join(map(str, operand.shape)) or _("one number")
        yield _row(_("input {name}", name=operand.name), f"{operand.dtype} {sizes}")
    seen = _("error against PyTorch, random inputs, seen by {verifier}", verifier=kernel.verifier)
    yield _row(seen, _error(kernel))
    for gate in kernel.gates:
        yield _row(f"{gate.name}: {gate.status}", gate.detail)


def _guards(review: Review) -> Iterator[str]:
    named = [guard for guard in review.guards if guard.name]
    if named:
        yield from (_row(_("name"), _("condition")), "|---|---|")
        yield from (_row(guard.name, guard.condition) for guard in named)
        yield ""
    yield from _list(guard.condition for guard in review.guards if not guard.name)


def _error(kernel: ReviewedKernel) -> str:
    if kernel.error is None:
        return _("not recorded by this verdict")
    return _(
        "at most {largest} in an element, {mean} of the values in the mean",
        largest=f"{kernel.error.abs:.2g}",
        mean=f"{kernel.error.rel:.2g}",
    )


def _figure(kernel: ReviewedKernel) -> str:
    figure = sourced(microseconds(kernel.us), kernel.source)
    return _("{figure} on {chip}", figure=figure, chip=kernel.chip)


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _variant(variant: Variant) -> tuple[str, ...]:
    kernel, changes = variant.kernel, variant.changes
    marks = [word for word, holds in (
        (_("best"), variant.best), (_("accepted"), variant.installed), (_("rejected"), variant.rejected)
    ) if holds]  # fmt: skip
    return (
        kernel.source_id[:12],
        _figure(kernel),
        str(variant.attempt or ""),
        changes[0].words if changes else "",
        "; ".join(f"{change.name} {change.before} → {change.after}" for change in changes),
        ", ".join(marks),
    )


def _python(review: Review) -> Iterator[str]:
    file = File(review.file, review.before, review.after)
    if not file.is_changed:
        yield _("The file calls this kernel already; only the package's files change.")
        return
    yield from _fenced("diff", diff_of(file, _("now"), _("with the kernel")))


def _files(review: Review) -> Iterator[str]:
    """Diffs against the installed kernel; a new one's files as they are."""
    for file in filter(lambda file: file.is_changed, review.files):
        yield from (f"### {_text(file.name)}", "")
        if file.before:
            yield from _fenced("diff", diff_of(file, _("accepted"), _("this one")))
        else:
            yield from _fenced("cpp", file.after)
        yield ""


def _parts(review: Review) -> Iterator[str]:
    return (_("Line {line}: {words}", line=part.line + 1, words=part.words) for part in review.parts)


def _fenced(language: str, text: str) -> Iterator[str]:
    """A block of code that nothing in it can end."""
    lines = text.split("\n")
    left = len(lines) - MOST_LINES
    more = "\n" + _("({count} further lines)", count=left) if left > 0 else ""
    shown = "\n".join(lines[:MOST_LINES]) + more
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
    yield from (f"{fence}{language}", shown.rstrip("\n"), fence)
