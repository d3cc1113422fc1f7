"""Open documents, what is known about them, and the roots that they belong to."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field, frozen
from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from evokernel_core.capture import finder
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import Latency
from evokernel_core.synthesis.offers import Estimate
from evokernel_server.documents.line_index import Edit, Extent, Text, narrow, re_anchor, shift, stretch
from evokernel_server.documents.packages import Installed
from evokernel_server.errors import Refused
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, marked

_IMPORT = re.compile(r"from evokernel_kernels import (?:\(([^()]{0,4000})\)|([^\r\n]{0,4000}))")
"""Starts with a literal, which the regular expression engine finds at the speed of a plain search. Bounded: a
text of a million open parentheses is read in time that grows with its length."""
_RUN = re.compile(r"\.run\(")
_NAME_BEFORE = re.compile(r"(?<![\w.])[^\W\d]\w{0,199}\Z")
_CONTINUES = re.compile(r"[\w.]")
_LONGEST_NAME = 200
_FEW_NAMES = 16
_COMMENT = re.compile(r"#[^\r\n]*")
NOT_SERVED = "not_served"
"""The code of a text that no capture can import."""
CELL = "vscode-notebook-cell"
_REFUSALS = {
    "untitled": marked("Unsaved text is not analysed: save it as a Python file."),
    "git": marked("A version in a repository is not analysed: open the file itself."),
    CELL: marked("Cells of a notebook are not analysed: move the model into a file that it imports."),
}
MAX_EDITS_KEPT = 2_000
"""Edits remembered while a capture runs; one that lasts longer is simply captured again."""


@frozen
class Captured:
    """A region as captured, with its estimate where a kernel can be written."""

    region: Region
    estimate: Estimate | None = None

    @property
    def wins(self) -> bool:
        """Whether its kernel is offered unasked."""
        return self.estimate is not None and self.estimate.wins


@frozen
class Tracked:
    """A captured region and where its text is now."""

    captured: Captured
    extent: Extent

    @property
    def region(self) -> Region:
        return self.captured.region


@frozen
class FileProblem:
    """Why a file has no regions: a stable code and one sentence."""

    reason: str
    message: Sentence = field(converter=Sentence)


@frozen
class GeneratedCall:
    """A call of a generated kernel in the text; the extent holds ``NAME.run``."""

    name: str
    extent: Extent


def find_calls(content: str) -> tuple[GeneratedCall, ...]:
    """The calls of the generated kernels that the text imports."""
    names = _imported_kernels(content)
    result = _calls_of_few(content, names) if len(names) <= _FEW_NAMES else _calls_of_many(content, names)
    return tuple(sorted(result, key=lambda call: call.extent.start))


def _calls_of_few(content: str, names: set[str]) -> list[GeneratedCall]:
    """A plain search for each name, the fastest where they are as few as in a person's file."""
    return [
        GeneratedCall(name, Extent(run.start(), run.end() - 1))
        for name in names
        for run in re.finditer(rf"{name}\.run\(", content)
        if not _CONTINUES.search(content[max(0, run.start() - 1) : run.start()])
    ]


def _calls_of_many(content: str, names: set[str]) -> list[GeneratedCall]:
    """One pass over the text, whatever the number of names."""
    result = []
    for run in _RUN.finditer(content):
        before = content[max(0, run.start() - _LONGEST_NAME - 1) : run.start()]
        name = _NAME_BEFORE.search(before)
        if name is not None and name[0] in names:
            start = run.start() - len(name[0])
            result.append(GeneratedCall(name[0], Extent(start, run.end() - 1)))
    return result


def _imported_kernels(content: str) -> set[str]:
    """The names of ``from evokernel_kernels import NAME``, also where a formatter put them in parentheses."""
    statements = (
        match
        for match in _IMPORT.finditer(content)
        if not content[content.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    )
    names = (_COMMENT.sub("", statement[1] or statement[2] or "").split(",") for statement in statements)
    return {name.strip() for part in names for name in part if name.strip().isidentifier()}


def text_hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@define(eq=False)
class Document:
    """One open file. Regions follow every edit; an edit inside one takes it off the page."""

    uri: str
    path: Path
    version: int
    text: Text
    tracked: tuple[Tracked, ...] = ()
    problem: FileProblem | None = None
    captured: str = ""
    """Hash of the text that ``tracked`` was captured from."""
    calls: tuple[GeneratedCall, ...] = ()
    has_torch: bool = False
    is_local: bool = True
    """Whether it is a file of this machine; other texts are left alone."""
    installed: Mapping[str, Installed | None] = field(factory=dict)
    """The packages of the calls, as last read; None for one that is missing."""
    ready: Mapping[str, Latency] = field(factory=dict)
    """The kernels that wait for review, by region."""
    hidden: frozenset[str] = frozenset()
    """Regions where the person wants no kernel: they are not tracked."""
    replaced: Mapping[str, int] = field(factory=dict)
    """Regions whose code runs only where a kernel's guard fails by now, and the mark of the text before: no
    capture of that text, or of one before it, brings them back."""
    stale: Mapping[str, str] = field(factory=dict)
    """Why calls do not fit their packages any more, by kernel, as last looked at."""
    refusal: str = ""
    """Why a text about torch that is no file is left alone, empty for all others."""
    origin: str = ""
    """What a text is that is no file of this machine: the scheme of its URI, ``CELL`` for a notebook's."""
    _tree: finder.Document | None = None
    _outline: tuple[tuple[finder.Definition, Extent], ...] | None = None
    """The definitions as last looked for, and where their text is now; None before they are needed."""
    _settled: bool = True
    """Whether ``_outline`` is of this very text."""
    _holders: tuple[tuple[Tracked, ...], frozenset[str]] = ((), frozenset())
    _edits: list[Edit] = field(factory=list)
    _edits_dropped: int = 0

    def __attrs_post_init__(self) -> None:
        self._look()

    @property
    def is_about_torch(self) -> bool:
        """Whether a person should hear of the document: it is served, or refused with a reason."""
        return self.has_torch or bool(self.refusal)

    @property
    def hash(self) -> str:
        return text_hash(self.text.content)

    def update(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int) -> None:
        """Applies a client's changes in order."""
        for change in changes:
            self._apply(narrow(self.text.content, self.text.edit(change)))
        self.version = version
        self._look()

    def _apply(self, edit: Edit) -> None:
        self.text = self.text.apply(edit)
        moved = ((tracked, shift(tracked.extent, edit)) for tracked in self.tracked)
        kept = tuple(
            tracked if extent is tracked.extent else Tracked(tracked.captured, extent)
            for tracked, extent in moved
            if extent
        )
        if len(kept) < len(self.tracked):
            self.captured = ""  # should the text be as before again, its regions are to be placed again
        self.tracked = kept
        if self._outline is not None:
            places = ((definition, stretch(extent, edit)) for definition, extent in self._outline)
            self._outline = tuple((definition, extent) for definition, extent in places if extent)
        self._settled = False
        self._edits.append(edit)
        if len(self._edits) > MAX_EDITS_KEPT:
            self._edits_dropped += len(self._edits)
            self._edits.clear()

    def _look(self) -> None:
        """What a text alone tells: whether it is about torch, and which generated ops it calls."""
        content = self.text.content
        about_torch = "torch" in content and finder.imports_torch(content)
        self.has_torch = self.is_local and about_torch
        self.refusal = refusal_of(self.origin) if about_torch and not self.is_local else ""
        self.calls = find_calls(content) if self.has_torch else ()
        if not self.has_torch:
            self._tree = self._outline = None
            self.tracked = ()

    def settle(self) -> None:
        """Typing has paused: definitions are looked for in this text. In between they move with it, since an
        edit that leaves a file of 2,500 lines without a valid syntax takes 20 ms to parse."""
        if not self.has_torch or (self._settled and self._outline is not None):
            return
        content = self.text.content
        if self._tree is None:
            self._tree = finder.Document(content)
        elif self._tree.text != content:
            before = self._tree.text
            edit = narrow(before, Edit(0, len(before), content))
            self._tree.edit(edit.start, edit.end, edit.text)
        self._outline = tuple(
            (definition, self.text.extent(definition.span)) for definition in finder.find(self._tree)
        )
        self._settled = True

    def definitions(self) -> tuple[finder.Definition, ...]:
        """The classes and functions with tensor code, where their text is now; exact once typing pauses."""
        return self.definitions_on(Extent(0, len(self.text.content) + 1))

    def definitions_on(self, lines: Extent) -> tuple[finder.Definition, ...]:
        """Those with characters on some lines."""
        if not self.has_torch:
            return ()
        if self._outline is None:
            self.settle()
        result = ((definition, extent) for definition, extent in self._outline or () if lines.touches(extent))
        if self._settled:
            return tuple(definition for definition, _ in result)
        return tuple(evolve(definition, span=self.text.span(extent)) for definition, extent in result)

    def first_line(self) -> int:
        """The line, from 0, of the first definition with tensor code, where the whole file is spoken of."""
        return min((definition.span.line for definition in self.definitions()), default=1) - 1

    def mark(self) -> int:
        """A point in the history of edits, for ``accept``."""
        return self._edits_dropped + len(self._edits)

    def accept(self, regions: Sequence[Captured], captured_from: Text, mark: int) -> bool:
        """Takes over regions captured from an earlier text, moved by the edits made since ``mark``.

        False when too many edits were made since then.
        """
        if mark < self._edits_dropped:
            return False
        since = self._edits[mark - self._edits_dropped :]
        self.replaced = {region_id: at for region_id, at in self.replaced.items() if mark <= at}
        placed, edited = [], False
        for region in regions:
            extent: Extent | None = captured_from.extent(region.region.span)
            for edit in since:
                extent = shift(extent, edit) if extent else None
            if extent is None or region.region.id in self.replaced:
                edited = True
            elif region.region.id not in self.hidden:
                placed.append(Tracked(region, extent))
        self.tracked = tuple(placed)
        # where a region is missing, an undo to the captured text has to place it
        self.captured = "" if edited else text_hash(captured_from.content)
        return True

    def hide(self, region_ids: frozenset[str]) -> None:
        """Takes regions off the page, now and in later captures. Those that were hidden and are not any
        more come with the next capture."""
        self.hidden = region_ids
        self.tracked = tuple(region for region in self.tracked if region.region.id not in region_ids)

    def overlapping(self, extents: Sequence[Extent]) -> tuple[Tracked, ...]:
        """The regions with code in any of these places."""
        return tuple(
            region for region in self.tracked if any(region.extent.overlaps(other) for other in extents)
        )

    def replace(self, tracked: Iterable[Tracked], mark: int) -> None:
        """Kernels were put in place of the text at ``mark``: what stood there is offered no second time. The
        next capture tells what is there now."""
        ids = {region.region.id for region in tracked}
        self.replaced = {**self.replaced, **dict.fromkeys(ids, mark)}
        self.tracked = tuple(region for region in self.tracked if region.region.id not in ids)
        self.captured = ""  # an undo places them again

    def to_review(self) -> tuple[Tracked, ...]:
        """The regions whose kernel waits for review."""
        return tuple(region for region in self.tracked if region.region.id in self.ready)

    def holders(self) -> frozenset[str]:
        """The ids of the regions that others lie in."""
        if self._holders[0] is not self.tracked:
            self._holders = self.tracked, frozenset(_holders(self.tracked))
        return self._holders[1]

    def region(self, region_id: str) -> Tracked | None:
        return next((region for region in self.tracked if region.region.id == region_id), None)

    def anchored(self, region: Region) -> Region | None:
        """The region with its present span, None where its text is gone or no longer unique."""
        tracked = self.region(region.id)
        extent = re_anchor(self.text.content, tracked.extent if tracked else None, region.source)
        return evolve(region, span=self.text.span(extent)) if extent else None

    def counts(self) -> Counter[str]:
        """How often each generated op is called."""
        return Counter(call.name for call in self.calls)

    def regions(self, *states: RegionStatus) -> tuple[Tracked, ...]:
        return tuple(region for region in self.tracked if region.region.status in states)


def _holders(tracked: Sequence[Tracked]) -> Iterator[str]:
    """In one pass over the regions by their start, where the widest of those that start alike comes first."""
    ordered = sorted(tracked, key=lambda numbered: (numbered.extent.start, -numbered.extent.end))
    for number, numbered in enumerate(ordered):
        for other in ordered[number + 1 :]:
            if other.extent.start > numbered.extent.end:
                break
            if numbered.extent.holds(other.extent):
                yield numbered.region.id
                if other.extent == numbered.extent:
                    yield other.region.id
                break


@define(eq=False)
class Workspace:
    """The open documents and the client's folders."""

    encoding: str = "utf-16"
    roots: list[Path] = field(factory=list)
    documents: dict[str, Document] = field(factory=dict)
    _active: str = ""
    _told_active: bool = False
    """Whether the client says which document is in front; else it is the one last touched."""

    def activate(self, uri: str) -> None:
        """The client says which document is in front of the person; empty: none."""
        self._active, self._told_active = uri, True

    def touch(self, uri: str) -> None:
        """Something was asked or told about a document."""
        if not self._told_active:
            self._active = uri

    @property
    def active(self) -> Document | None:
        """The document in front of the person, where it is about torch."""
        document = self.documents.get(self._active)
        if document is None and not self._told_active:  # it was closed
            document = next(reversed(self.documents.values()), None)
        return document if document is not None and document.is_about_torch else None

    def open(self, item: types.TextDocumentItem, *, is_cell: bool = False) -> Document:
        """``is_cell``: of a notebook, which is no file whatever its URI says."""
        path = None if is_cell else local_path(item.uri)
        text = Text(item.text, self.encoding)
        origin = "" if path is not None else CELL if is_cell else item.uri.partition(":")[0]
        document = Document(
            item.uri, path or Path(item.uri), item.version, text, is_local=path is not None, origin=origin
        )
        self.documents[item.uri] = document
        return document

    def close(self, uri: str) -> Document | None:
        return self.documents.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        return self.documents.get(uri)

    def opened(self, uri: str) -> Document:
        """Raises Refused for a file that is not open."""
        document = self.documents.get(uri)
        if document is None:
            raise Refused(_("Open the file first."))
        return document

    def at(self, path: Path | str) -> Document | None:
        """The open document of a file; where it is open under several names, the one that calls the most
        kernels: the others follow when that one is saved."""
        wanted = Path(path)
        names = (document for document in self.documents.values() if document.path == wanted)
        return max(names, key=lambda document: len(document.calls), default=None)

    def torch_documents(self) -> tuple[Document, ...]:
        return tuple(document for document in self.documents.values() if document.has_torch)

    def root_of(self, path: Path) -> Path | None:
        """The innermost of the client's folders that a file is in, else the first one."""
        around = [root for root in self.roots if path.is_relative_to(root)]
        return max(around, key=lambda root: len(root.parts), default=next(iter(self.roots), None))

    def covers(self, path: Path) -> bool:
        """Whether a file belongs to what the client has open."""
        return self.at(path) is not None or any(path.is_relative_to(root) for root in self.roots)


def local_path(uri: str) -> Path | None:
    """The file that a URI names, behind links; None for what is no file of this machine, as a notebook's
    cell, a version in a repository or an unsaved buffer."""
    path = to_fs_path(uri) if uri.startswith("file:") and "#" not in uri and "?" not in uri else None
    if not path or "\0" in path or not Path(path).is_absolute() or path.startswith("//"):
        return None
    return Path(os.path.realpath(path))


def refusal_of(origin: str) -> str:
    """Why a text that is no file of this machine is left alone, and what to do: one sentence."""
    if origin in _REFUSALS:
        return _(_REFUSALS[origin])
    return _(
        "Text of {where} is no file of this machine and is not analysed: open the file where it is.",
        where=plain(f"{origin}:", 40),
    )


def uri_of(path: Path) -> str:
    return from_fs_path(str(path)) or path.as_uri()
