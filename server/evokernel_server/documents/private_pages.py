"""Documents that the server writes for a person and opens in the editor, each in a private folder."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from attrs import define
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from evokernel_core import paths
from evokernel_core.private import private_folder, private_opener
from evokernel_server.documents.workspace import uri_of
from evokernel_server.texts.translations import _

_UNFIT = re.compile(r"[^A-Za-z0-9_.]|^\.+")
_LONGEST_NAME = 100


@define(eq=False)
class Pages:
    """Files in the cache, readable by their owner alone."""

    server: LanguageServer

    async def show(self, folder: str, name: str, text: str, what: str) -> Path:
        """Writes ``text`` as ``folder/name`` of the cache and opens it; ``what`` is its name in a sentence.
        Raises OSError, UsageError."""
        path = paths.cache_dir() / folder / fit(name)
        await asyncio.to_thread(_write, path, text)
        await self.open(path, what)
        return path

    async def open(self, path: Path, what: str, *, outside: bool = False) -> None:
        """Opens a file where the client can, else says where it is. ``outside``: in a browser."""
        window = self.server.client_capabilities.window
        if window and window.show_document and window.show_document.support:
            asked = types.ShowDocumentParams(uri_of(path), external=outside, take_focus=True)
            await self.server.window_show_document_async(asked)
        else:
            words = _("EvoKernel: {what} is in {path}", what=what, path=path)
            self.server.window_show_message(types.ShowMessageParams(types.MessageType.Info, words))


def fit(name: str) -> str:
    """A name of a file that any system takes, whatever it was made from; its ending stays."""
    stem, dot, ending = name.rpartition(".")
    return f"{_UNFIT.sub('_', stem)[:_LONGEST_NAME]}{dot}{_UNFIT.sub('_', ending)[:10]}"


def _write(path: Path, text: str) -> None:
    private_folder(path.parent)
    with open(path, "w", encoding="utf-8", errors="replace", opener=private_opener) as file:
        file.write(text)
