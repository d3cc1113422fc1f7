"""Edits to a person's file: for exactly the version that they were planned on, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from evokernel_server.documents.line_index import Edit, Extent, Text
from evokernel_server.documents.workspace import Document
from evokernel_server.texts.translations import _

_ANNOTATION = "evokernel"


class Editor(Protocol):
    """The client, as far as it edits files."""

    @property
    def client_capabilities(self) -> types.ClientCapabilities: ...
    async def workspace_apply_edit_async(
        self, params: types.ApplyWorkspaceEditParams
    ) -> types.ApplyWorkspaceEditResult: ...


@frozen
class Refusal:
    """Why an edit was not made: one sentence."""

    reason: str


def read_edits(text: Text, edits: Sequence[Mapping[str, Any]]) -> tuple[Edit, ...]:
    """The worker's edits (0-based lines and characters) as character offsets."""
    characters = Text(text.content, "utf-32")
    return tuple(
        Edit(
            characters.offset(_position(edit["range"]["start"])),
            characters.offset(_position(edit["range"]["end"])),
            str(edit["new_text"]),
        )
        for edit in edits
    )


def _position(data: Mapping[str, int]) -> types.Position:
    return types.Position(data["line"], data["character"])


def workspace_edit(
    document: Document,
    edits: Sequence[Edit],
    capabilities: types.ClientCapabilities,
    annotation: types.ChangeAnnotation | None = None,
) -> types.WorkspaceEdit:
    """The edit in the richest form that the client takes: with the document's version where it can, and with
    an annotation where it understands them."""
    changes = [types.TextEdit(document.text.range(Extent(edit.start, edit.end)), edit.text) for edit in edits]
    can = capabilities.workspace.workspace_edit if capabilities.workspace else None
    if can is None or not can.document_changes:
        return types.WorkspaceEdit(changes={document.uri: changes})
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    if annotation is None or can.change_annotation_support is None:
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, list(changes))])
    annotated = [types.AnnotatedTextEdit(_ANNOTATION, change.range, change.new_text) for change in changes]
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(identifier, list(annotated))],
        change_annotations={_ANNOTATION: annotation},
    )


async def apply(
    editor: Editor,
    document: Document,
    edits: Sequence[Edit],
    label: str,
    annotation: types.ChangeAnnotation | None = None,
) -> Refusal | None:
    """Asks the client to make the edits; a Refusal says why it did not."""
    workspace = editor.client_capabilities.workspace
    if workspace is None or not workspace.apply_edit:
        return Refusal(
            _("This editor does not let a language server edit files; use `evokernel synth --apply`.")
        )
    edit = workspace_edit(document, edits, editor.client_capabilities, annotation)
    try:
        answer = await editor.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label))
    except JsonRpcException as error:
        return Refusal(_("The editor refused the edit: {why}.", why=error))
    if answer.applied:
        return None
    why = answer.failure_reason or _("it gave no reason")
    return Refusal(_("The editor refused the edit: {why}.", why=why))
