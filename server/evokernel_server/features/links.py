"""``textDocument/documentLink`` and ``workspace/symbol``: from a generated call to the kernel that it runs,
and to every kernel of the workspace by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen
from lsprotocol import types

from evokernel_server.documents.packages import (
    FOLDER,
    Installed,
    files_to_read,
    package_folder,
    read_installed,
)
from evokernel_server.documents.workspace import Document, uri_of
from evokernel_server.offers.pending import microseconds
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, sourced

if TYPE_CHECKING:
    from evokernel_server.host import Host

_MOST_FOLDERS, _MOST_KERNELS = 2_000, 500
_SKIPPED = {"node_modules", "__pycache__", "site-packages", "build", "dist"}


def register(server: Host) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK, types.DocumentLinkOptions(resolve_provider=True))
    def document_link(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        document = server.documents.get(params.text_document.uri)
        text = server.client_capabilities.text_document
        tooltips = bool(text and text.document_link and text.document_link.tooltip_support)
        return list(links(document, tooltips=tooltips)) if document is not None else []

    @server.feature(types.DOCUMENT_LINK_RESOLVE)
    async def resolve(link: types.DocumentLink) -> types.DocumentLink:
        return await asyncio.to_thread(resolved, server, link)

    @server.feature(types.WORKSPACE_SYMBOL)
    async def symbols(params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        places = tuple(server.documents.roots) + tuple(
            document.path.parent for document in server.documents.torch_documents()
        )
        result = await asyncio.to_thread(kernels_below, places)
        return [symbol_of(kernel) for kernel in result if matches(params.query, kernel.name)]


def links(document: Document, *, tooltips: bool) -> Iterator[types.DocumentLink]:
    """One on each generated call; where it leads is looked up when it is followed."""
    for call in document.calls:
        data = {"uri": document.uri, "name": call.name}
        words = _("Open the kernel {name}", name=plain(call.name)) if tooltips else None
        yield types.DocumentLink(document.text.range(call.extent), tooltip=words, data=data)


def resolved(server: Host, link: types.DocumentLink) -> types.DocumentLink:
    """With the file that a link leads to; as it came where the package has none, or it is no link of ours.
    Reads files."""
    data = link.data if isinstance(link.data, dict) else {}
    document, name = server.documents.get(str(data.get("uri", ""))), str(data.get("name", ""))
    if document is not None and name in document.counts():
        folder = package_folder(document.path, name)
        file = next((folder / name for name in files_to_read(folder) if (folder / name).is_file()), None)
        link.target = uri_of(file) if file is not None else None
    return link


@frozen
class KernelPlace:
    """A kernel package in the workspace."""

    name: str
    file: Path
    """The kernel itself."""
    words: str
    """Its latency, or what is wrong with it."""


def kernels_below(places: tuple[Path, ...]) -> tuple[KernelPlace, ...]:
    """Every kernel package below these folders, each once. Reads the file system: call it on a thread."""
    result: dict[Path, KernelPlace] = {}
    for parent in _package_parents(places):
        for folder in sorted(parent.iterdir()):
            if not folder.name.isidentifier() or folder in result:
                continue
            file = folder / files_to_read(folder)[0]
            if file.is_file():
                installed = read_installed(parent.parent / "_.py", folder.name)
                result[folder] = KernelPlace(folder.name, file, _words(installed))
            if len(result) >= _MOST_KERNELS:
                return tuple(result.values())
    return tuple(result.values())


def _words(installed: Installed | None) -> str:
    if installed is None:
        return _("changed or damaged")
    return sourced(microseconds(installed.latency.us), installed.latency.source.value)


def _package_parents(places: tuple[Path, ...]) -> Iterator[Path]:
    """The ``evokernel_kernels`` folders below some folders, nearest first, within bounds."""
    waiting, seen = list(places), set[Path]()
    while waiting and len(seen) < _MOST_FOLDERS:
        folder = waiting.pop(0)
        if folder in seen:
            continue
        seen.add(folder)
        for inner in _folders_in(folder):
            if inner.name == FOLDER:
                yield inner
            elif not inner.name.startswith(".") and inner.name not in _SKIPPED:
                waiting.append(inner)


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []


def matches(query: str, name: str) -> bool:
    """Whether the characters of a query are in a name in this order, as clients expect it."""
    rest = iter(name.lower())
    return all(char in rest for char in query.lower())


def symbol_of(kernel: KernelPlace) -> types.WorkspaceSymbol:
    start = types.Position(0, 0)
    location = types.Location(uri_of(kernel.file), types.Range(start, start))
    container = f"{kernel.file.parents[2].name}: {kernel.words}"
    return types.WorkspaceSymbol(location, kernel.name, types.SymbolKind.Function, container_name=container)
