"""The vendor's operator in the editor: hint, hover, the first code action, and the way back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.server.story import SETTINGS

pytestmark = pytest.mark.usefixtures("warm_torch")

MODEL = """\
import torch


# evokernel: x=f16[2048,4096], w=f16[4096]
def norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
"""
USED = r"⚡ [\d.]+x  [\d.]+ µs est\., torch_npu.npu_rms_norm"


@pytest.mark.timeout(300)
async def test_the_operator_is_used_and_taken_out(sessions: Any, workspace: Path, eventually: Any) -> None:
    path = workspace / "model.py"
    path.write_text(MODEL, "utf-8")
    editor = await sessions.start(settings=SETTINGS)
    uri = editor.open(path)
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert re.fullmatch(USED, hint.label)
    line = editor.line_of(uri, "torch.rsqrt")
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, 12))
    hover = await editor.client.text_document_hover_async(place)
    assert "- as one operator, `torch_npu.npu_rms_norm`: " in hover.contents.value
    assert " over torch_npu.npu_rms_norm, not offered" in hover.contents.value
    await eventually(lambda: "npu_rms_norm" in editor.statuses[-1].text)

    first, *others = await editor.actions(uri, line)
    assert first.title.startswith("Use torch_npu.npu_rms_norm (")
    assert not [action for action in others if action.title.startswith("Use ")]
    answer = await editor.command(first.command.command, *first.command.arguments)
    assert answer["status"] == "applied", answer
    name = answer["name"]
    call = f"{name}.run(x, w)\n        if (False if torch.jit.is_scripting() else {name}.holds(x, w))\n"
    assert f"{call}        else x * torch.rsqrt(" in editor.texts[uri]
    package = workspace / "evokernel_kernels" / name
    assert "torch_npu.npu_rms_norm(x, w, epsilon=1e-06)" in (package / "__init__.py").read_text()

    labels = await eventually(lambda: editor.hints(uri))
    assert any(re.fullmatch(USED, item.label) for item in labels)
    line = editor.line_of(uri, f"{name}.run")
    titles = [action.title for action in await editor.actions(uri, line)]
    assert "Revert torch_npu.npu_rms_norm" in titles
    back = await editor.run(await editor.action(uri, line, "Revert torch_npu.npu_rms_norm"))
    assert back["status"] == "reverted"
    assert editor.texts[uri] == MODEL
