"""What language servers and scripted workers make at their first messages, made when this is imported: the
functions that read and write the types of both protocols. The parent of forked servers imports it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import attrs
from cattrs import Converter
from cattrs.errors import StructureHandlerNotFoundError
from evokernel_server.app import converter
from evokernel_server.jobs.queue import Report
from lsprotocol import types
from pygls.protocol import json_rpc

from evokernel_core.domain import serial
from evokernel_core.domain.region import Region
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.offers import Estimate

_METHODS = (
    types.INITIALIZE,
    types.INITIALIZED,
    types.SHUTDOWN,
    types.EXIT,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_SAVE,
    types.TEXT_DOCUMENT_INLAY_HINT,
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.CODE_ACTION_RESOLVE,
    types.WORKSPACE_EXECUTE_COMMAND,
    types.WORKSPACE_APPLY_EDIT,
    types.WINDOW_LOG_MESSAGE,
    types.WINDOW_SHOW_MESSAGE_REQUEST,
    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
    types.PROGRESS,
    types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
    types.WORKSPACE_INLAY_HINT_REFRESH,
)
_EDITOR = (
    *(kind for method in _METHODS for kind in types.METHOD_TO_TYPES[method][:2]),
    *(types.WorkDoneProgressBegin, types.WorkDoneProgressReport, types.WorkDoneProgressEnd),
    *(json_rpc.JsonRPCNotification, json_rpc.JsonRPCResponseMessage),
)
_WORKER = (Region, Report, Estimate, Settings)


def _classes(kind: Any, seen: set[Any]) -> Iterator[Any]:
    """A type's own classes, and those of their fields, whose types are known once a class was asked for."""
    for inner in get_args(kind):
        yield from _classes(inner, seen)
    if isinstance(kind, type) and attrs.has(kind) and kind not in seen:
        seen.add(kind)
        yield kind
        for item in attrs.fields(kind):
            yield from _classes(item.type, seen)


def prepare(made: Converter, kinds: Iterable[Any]) -> None:
    """Each list that is found makes the converter forget classes: a second look keeps all of them."""
    seen = set[Any]()
    for kind in kinds:
        for found in _classes(kind, seen):
            with contextlib.suppress(StructureHandlerNotFoundError):
                made.get_structure_hook(found)
            made.get_unstructure_hook(found)
    for found in (list, tuple, dict, *seen):
        made.get_unstructure_hook(found)


prepare(converter(), _EDITOR)
prepare(serial._converter, _WORKER)
