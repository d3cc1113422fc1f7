"""What a feature may touch of the server: the client, the open documents, and the services behind them.

A feature imports nothing of ``app``, which imports the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lsprotocol import types

from evokernel_server.documents.edits import Editor

if TYPE_CHECKING:
    from pygls.workspace import Workspace as Texts

    from evokernel_core.domain.kernel_files import KernelFiles
    from evokernel_server.documents.capture import Capture
    from evokernel_server.documents.outside_changes import Watcher
    from evokernel_server.documents.private_pages import Pages
    from evokernel_server.documents.publish import Diagnostics
    from evokernel_server.documents.renames import Moves
    from evokernel_server.documents.status_line import StatusLine
    from evokernel_server.documents.workspace import Document, Workspace
    from evokernel_server.jobs.progress import Operations
    from evokernel_server.jobs.queue import JobQueue
    from evokernel_server.jobs.requests import Kernels
    from evokernel_server.jobs.store import Store
    from evokernel_server.jobs.worker import Worker
    from evokernel_server.offers.notices import Notices
    from evokernel_server.offers.outcomes import OutcomeLog
    from evokernel_server.offers.pending import Offers
    from evokernel_server.offers.suppressed import Nevers
    from evokernel_server.options import Options, ServerOptions
    from evokernel_server.review.dashboard import Dashboard
    from evokernel_server.review.gather import Reviews

F = TypeVar("F", bound=Callable[..., Any])


class ClientSide(Editor, Protocol):
    """The protocol's own: what is registered with it, and what the client is told or asked."""

    own_client: bool
    options: Options

    @property
    def server_options(self) -> ServerOptions: ...
    @property
    def workspace(self) -> Texts: ...
    @property
    def process_id(self) -> int | None: ...

    def feature(self, feature_name: str, options: Any | None = None) -> Callable[[F], F]: ...
    def command(self, command_name: str) -> Callable[[F], F]: ...
    def window_show_message(self, params: types.ShowMessageParams) -> None: ...
    async def workspace_configuration_async(self, params: types.ConfigurationParams) -> Any: ...

    def tell_once(self, sentence: str) -> None: ...
    def refresh(self) -> None: ...
    def other_targets(self) -> Sequence[KernelFiles]: ...
    def show_status(self) -> None: ...


class DocumentSide(Protocol):
    """The open documents, what happens to them, and whose code may be run."""

    documents: Workspace

    def document_opened(self, document: Document) -> None: ...
    def document_changed(self, document: Document) -> None: ...
    def document_saved(self, document: Document) -> None: ...
    def document_closed(self, uri: str) -> None: ...
    def document_activated(self, uri: str) -> None: ...

    def trusts(self, document: Document) -> bool: ...
    def trusted_root(self, document: Document) -> str: ...
    def folder_to_trust(self, document: Document) -> Path: ...
    def trust_folder(self, folder: Path) -> None: ...


class Services(Protocol):
    """What works behind the documents."""

    capture: Capture
    diagnostics: Diagnostics
    jobs: JobQueue
    kernels: Kernels
    moves: Moves
    nevers: Nevers
    offers: Offers
    operations: Operations
    outcomes: OutcomeLog
    pages: Pages
    status: StatusLine
    store: Store
    watcher: Watcher
    worker: Worker

    @property
    def dashboard(self) -> Dashboard: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def reviews(self) -> Reviews: ...

    def cover_again(self) -> None: ...
    async def watch_through_client(self) -> None: ...
    async def watch_parent(self, pid: int) -> None: ...
    async def settle(self) -> None: ...


class Host(ClientSide, DocumentSide, Services, Protocol):
    """The server, as far as its features know it."""
