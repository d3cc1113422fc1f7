"""``initialize`` to ``exit``, and configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.uris import from_fs_path

from evokernel_core import temporary
from evokernel_core.domain.errors import UsageError
from evokernel_server.documents.workspace import local_path
from evokernel_server.jobs.tasks import spawn
from evokernel_server.options import Options, read_options, update_options
from evokernel_server.texts.translations import speak
from evokernel_server.trust import OPTION, Trust, read_trust

if TYPE_CHECKING:
    from evokernel_server.host import Host

log = logging.getLogger(__name__)

SECTION = "evokernel"


def register(server: Host) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        begin(server, params)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        await initialised(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        given = params.settings.get(SECTION) if isinstance(params.settings, Mapping) else None
        await reconfigure(server, given)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        removed = set(_folders(params.event.removed))
        added = [folder for folder in _folders(params.event.added) if folder not in removed]
        kept = [root for root in server.documents.roots if root not in (*removed, *added)]
        server.documents.roots = kept + added
        server.jobs.wake()
        server.cover_again()

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.settle()


def _folders(given: Sequence[types.WorkspaceFolder]) -> Iterator[Path]:
    """Folders of this machine; those of others are left alone, as their files are."""
    for folder in given:
        path = local_path(folder.uri)
        if path is not None:
            yield path


def begin(server: Host, params: types.InitializeParams) -> None:
    """Takes over options and folders; a bad setting is reported and the rest still holds. A client begins
    once (``gate``): what it trusts cannot be said again."""
    speak(params.locale or "")
    try:
        server.options = read_options(params.initialization_options)
    except UsageError as error:
        log.error("%s", error)
        server.tell_once(error.sentence)
        server.options = Options(trust=_trust_alone(params.initialization_options))
    server.own_client = _knows_us(params)
    server.documents.encoding = str(getattr(_encoding(server), "value", _encoding(server)))
    root = params.root_uri or (from_fs_path(params.root_path) if params.root_path else None)
    alone = [types.WorkspaceFolder(root, "")] if root else []
    server.documents.roots = list(_folders(params.workspace_folders or alone))


def _trust_alone(options: object) -> Trust:
    """What the client trusts, where another of its options is wrong."""
    try:
        return read_trust(options.get(OPTION) if isinstance(options, Mapping) else None)
    except UsageError:
        return Trust()


def _encoding(server: Host) -> Any:
    return server.workspace.position_encoding or types.PositionEncodingKind.Utf16


def _knows_us(params: types.InitializeParams) -> bool:
    """Our own client says so under ``capabilities.experimental.evokernel``."""
    experimental = params.capabilities.experimental
    return isinstance(experimental, Mapping) and bool(experimental.get(SECTION))


async def initialised(server: Host) -> None:
    """The client is ready: its configuration is asked for, left-over jobs are taken up."""
    server.watcher.start(asyncio.get_running_loop())
    if server.process_id:
        spawn(server.watch_parent(server.process_id), "parent watch")
    spawn(server.watch_through_client(), "watched files")
    await reconfigure(server, None)
    if server.options.trust:
        server.jobs.start()
    server.show_status()
    server.status.resend()
    await asyncio.to_thread(temporary.sweep)


async def reconfigure(server: Host, pushed: object) -> None:
    """Lays the client's configuration over the options; workers start anew where it matters to them."""
    section = await _pull(server) if pushed is None else pushed
    before = server.options
    try:
        server.options = update_options(before, section)
    except UsageError as error:
        log.error("%s", error)
        server.tell_once(error.sentence)
        return
    server.status.writes_for(server.options.settings.chip, server.options.kind)
    if server.options.settings != before.settings:
        server.capture.clear()
        await server.worker.restart()
        for document in server.documents.torch_documents():
            document.captured = ""
            server.capture.soon(document)
    if server.options.server != before.server:
        server.refresh()


async def _pull(server: Host) -> object:
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return None
    configuration_item = types.ConfigurationItem(section=SECTION)
    try:
        answer = await server.workspace_configuration_async(types.ConfigurationParams([configuration_item]))
    except JsonRpcException as error:
        log.info("The client gave no configuration: %s", error)
        return None
    return answer[0] if answer else None
