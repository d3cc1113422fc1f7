"""The watch over files that a client keeps for us, where it takes one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import define
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from evokernel_server.documents.packages import FOLDER

log = logging.getLogger(__name__)

_ID = "evokernel-watched-files"
_PATTERNS = ("**/*.py", f"**/{FOLDER}/**", "**/.git/HEAD")
"""Files with calls, packages, and the branch that is checked out."""


@define(eq=False)
class ClientWatch:
    """``roots`` are the client's folders, ``observations`` is the folder of what was observed."""

    server: LanguageServer
    roots: Callable[[], list[Path]]
    observations: Path
    in_roots: bool = False
    of_observations: bool = False

    def covers(self, folder: Path) -> bool:
        """Whether the client watches a folder."""
        if folder == self.observations:
            return self.of_observations
        return self.in_roots and any(folder.is_relative_to(root) for root in self.roots())

    async def register(self) -> bool:
        """Asks the client to watch. It counts as watching from the question on; False where it says no."""
        can = self._can()
        if can is None or not can.dynamic_registration:
            return True
        self.in_roots, self.of_observations = True, bool(can.relative_pattern_support)
        options = types.DidChangeWatchedFilesRegistrationOptions(list(self._watchers()))
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        try:
            await self.server.client_register_capability_async(
                types.RegistrationParams([types.Registration(_ID, method, options)])
            )
        except JsonRpcException as error:
            log.info("The client does not watch files: %s", error)
            self.in_roots = self.of_observations = False
            return False
        return True

    def _can(self) -> types.DidChangeWatchedFilesClientCapabilities | None:
        workspace = self.server.client_capabilities.workspace
        return workspace.did_change_watched_files if workspace else None

    def _watchers(self) -> Iterator[types.FileSystemWatcher]:
        for pattern in _PATTERNS:
            yield types.FileSystemWatcher(pattern)
        if self.of_observations:
            beside = types.RelativePattern(self.observations.as_uri(), "*.json")
            yield types.FileSystemWatcher(beside)
