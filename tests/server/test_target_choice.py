"""The target in an editor: which kernels actions, hovers and the status speak of, and who chooses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.server.conftest import MODEL

pytestmark = pytest.mark.usefixtures("scripted")
NPU, TRITON = "Generate NPU kernel (softmax", "Generate Triton kernel (softmax"
QUIET = {"refineInBackground": False, "codeLens": True}


@pytest.fixture
def model(workspace: Path) -> Path:
    path = workspace / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def gpu(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine on whose PATH NVIDIA's driver is."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}


async def offered(editor: Any, uri: str) -> list[str]:
    """The actions that generate, without their figures."""
    actions = await editor.actions(uri, editor.line_of(uri, "torch.softmax"))
    return [action.title.split(":")[0].split(")")[0] for action in actions if "Generate" in action.title]


@pytest.mark.parametrize(
    ("settings", "titles", "chip", "kind"),
    [
        ({}, [NPU], "ascend910b1", "NPU"),
        ({"target": "ascendc", "chip": "ascend910b2"}, [NPU], "ascend910b2", "NPU"),
        ({"target": "triton"}, [TRITON], "nvidia_h200", "Triton"),
        ({"chip": "nvidia_a100"}, [TRITON], "nvidia_a100", "Triton"),
    ],
)
async def test_the_target_is_the_chosen_one(
    settings: dict[str, str],
    titles: list[str],
    chip: str,
    kind: str,
    sessions: Any,
    model: Path,
    eventually: Any,
) -> None:
    editor = await sessions.start(settings={**QUIET, **settings})
    uri = editor.open(model)
    await eventually(lambda: editor.hints(uri))
    assert await offered(editor, uri) == titles
    assert (editor.statuses[-1].chip, editor.statuses[-1].kind) == (chip, kind)
    (hint,) = await editor.hints(uri)
    assert f"estimated on {chip}" in hint.tooltip.value
    lenses = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    (lens,) = await editor.client.text_document_code_lens_async(lenses)
    assert lens.command.title.startswith(f"Generate {kind} kernel: ")


async def test_a_machine_with_cuda_offers_triton_until_somebody_chooses(
    sessions: Any, model: Path, gpu: dict[str, str], eventually: Any
) -> None:
    editor = await sessions.start(settings=QUIET, environment=gpu)
    uri = editor.open(model)
    await eventually(lambda: editor.hints(uri))
    assert await offered(editor, uri) == [NPU, TRITON]
    line = editor.line_of(uri, "torch.softmax")
    answer = await editor.run(await editor.action(uri, line, TRITON))
    assert (answer["status"], answer["target"]) == ("ready", "triton")
    assert editor.statuses[-1].chip == "nvidia_h200"
    titles = [action.title for action in await editor.actions(uri, line)]
    assert any(title.startswith("Review the softmax kernel that is ready") for title in titles), titles
    assert not any("NPU" in title for title in titles)


async def test_a_chosen_target_has_no_other_beside_it(
    sessions: Any, model: Path, gpu: dict[str, str], eventually: Any
) -> None:
    editor = await sessions.start(settings={**QUIET, "target": "ascendc"}, environment=gpu)
    uri = editor.open(model)
    await eventually(lambda: editor.hints(uri))
    assert await offered(editor, uri) == [NPU]


async def test_a_target_without_the_chip_is_one_sentence(sessions: Any, model: Path, eventually: Any) -> None:
    editor = await sessions.start(settings={**QUIET, "target": "ascendc", "chip": "nvidia_h200"})
    editor.open(model)
    await eventually(lambda: editor.client.messages)
    (message,) = {message.message for message in editor.client.messages}
    assert "Kernels for nvidia_h200 in AscendC are not supported yet" in message
