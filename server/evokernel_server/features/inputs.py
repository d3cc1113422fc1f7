"""How a person says what a model is called with: by running something that uses it, or by a comment with
what such a run showed. Shapes are never guessed."""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_core.capture import finder
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.capture.observations import Observation, ObservationStore
from evokernel_core.capture.observed_text import comment_of
from evokernel_core.capture.suggest import command_for, own_program
from evokernel_core.domain.errors import InterpreterUnavailable
from evokernel_core.domain.region import RegionStatus
from evokernel_server.documents.edits import workspace_edit
from evokernel_server.documents.line_index import Edit, Extent
from evokernel_server.documents.workspace import Document
from evokernel_server.texts import command_names as names
from evokernel_server.texts.translations import _, marked

if TYPE_CHECKING:
    from evokernel_server.host import Host

RUN = marked("Run something that uses this model")


def actions(server: Host, document: Document, lines: Extent) -> Iterator[types.CodeAction]:
    """First to run a program where inputs are unknown, then to note as a comment what is known."""
    touched = [definition for definition in document.definitions_on(lines) if not definition.annotation]
    if touched and needs_shapes(document):
        command = types.Command(_(RUN), names.OBSERVE, arguments=[{"uri": document.uri}])
        yield types.CodeAction(
            title=_(RUN), kind=types.CodeActionKind.QuickFix, command=command, is_preferred=True
        )
    for definition in touched:
        edit = None if definition.has_inputs else shapes_edit(document, definition)
        if edit is not None:
            yield types.CodeAction(
                title=_("Insert input shapes for {name}", name=definition.qualname),
                kind=types.CodeActionKind.QuickFix,
                edit=workspace_edit(document, [edit], server.client_capabilities),
            )


def needs_shapes(document: Document) -> bool:
    """Whether something in the document waits for shapes."""
    if document.problem is not None and document.problem.reason == "needs_shapes":
        return True
    return bool(document.regions(RegionStatus.NEEDS_SHAPES))


def shapes_edit(document: Document, definition: finder.Definition) -> Edit | None:
    """A comment line above a definition with what was observed of it; None where nothing was, or where a
    comment cannot say it, as of a class that is built with an object."""
    known = ObservationStore().of(document.path)
    calls = (
        [observation for observation in known.observations if observation.qualname == definition.qualname]
        if known
        else []
    )
    number = definition.span.line - 1
    line = document.text.line(number)
    indent = line[: len(line) - len(line.lstrip())]
    extent = document.text.extent(definition.span)
    said = _first_said(calls, document.text.content[extent.start : extent.end]) if calls else None
    if said is None:
        return None
    start = document.text.starts[number]
    return Edit(start, start, f"{indent}# evokernel: {said}\n")


def _first_said(calls: list[Observation], text: str) -> str | None:
    init, forward = parameters_of(text)
    return next(filter(None, (comment_of(call, init, forward) for call in calls)), None)


def parameters_of(definition: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters of ``__init__`` and of ``forward``, without ``self``; of a function none and its own."""
    try:
        node = ast.parse(textwrap.dedent(definition)).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return (), ()
    if isinstance(node, ast.ClassDef):
        methods = {
            statement.name: statement for statement in node.body if isinstance(statement, ast.FunctionDef)
        }
        init, forward = (methods.get(name) for name in ("__init__", "forward"))
        return _names(init)[1:], _names(forward)[1:]
    return (), _names(node if isinstance(node, ast.FunctionDef) else None)


def _names(node: ast.FunctionDef | None) -> tuple[str, ...]:
    if node is None:
        return ()
    arguments = node.args
    return tuple(part.arg for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def observe_command(server: Host, document: Document) -> str:
    """The command line to observe a program that uses a document, in a terminal that knows neither us nor the
    Python with torch. Reads files and asks interpreters: call it on a thread."""
    return command_for(document.path, document.text.content, _python_of(server, document), own_program())


def _python_of(server: Host, document: Document) -> str:
    """The Python that a document is captured with; only ``python`` where its folder is not trusted."""
    setting = server.options.settings.interpreter
    if not setting and server.trusts(document):
        with contextlib.suppress(InterpreterUnavailable):
            root = server.trusted_root(document) or document.path.parent
            return find_interpreter("", document.path.parent, Path(root)).path
    return setting or "python"


def unknown_words(definition: finder.Definition) -> str:
    """Why there is no comment to insert, and what to do instead."""
    return _(
        "No input of {name} was observed that a comment can hold: run 'evokernel observe -- COMMAND' "
        "on a program that uses it, or add get_inputs().",
        name=definition.qualname,
    )
