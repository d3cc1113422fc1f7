"""``workspace/didRenameFiles``, ``didDeleteFiles`` and ``didChangeWatchedFiles``.

Nothing in a person's files has to change before a rename or a deletion, so the *will* requests are not asked
for. Watched files are registered where the client takes that; ``watcher`` covers what it does not watch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.documents.workspace import local_path
from evokernel_server.jobs.tasks import spawn

if TYPE_CHECKING:
    from evokernel_server.host import Host

_FILTERS = types.FileOperationRegistrationOptions(
    [
        types.FileOperationFilter(
            types.FileOperationPattern("**/*.py", matches=types.FileOperationPatternKind.File), "file"
        ),
        types.FileOperationFilter(
            types.FileOperationPattern("**", matches=types.FileOperationPatternKind.Folder), "file"
        ),
    ]
)


def register(server: Host) -> None:
    @server.feature(types.WORKSPACE_DID_RENAME_FILES, _FILTERS)
    def did_rename(params: types.RenameFilesParams) -> None:
        for file in params.files:
            old, new = local_path(file.old_uri), local_path(file.new_uri)
            if old is not None and new is not None and old != new:
                spawn(server.moves.renamed(old, new), "renaming")

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, _FILTERS)
    def did_delete(params: types.DeleteFilesParams) -> None:
        for file in params.files:
            path = local_path(file.uri)
            if path is not None:
                spawn(server.moves.deleted(path), "deleting")

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched(params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            path = local_path(change.uri)
            if path is not None:
                server.watcher.heard(path)
