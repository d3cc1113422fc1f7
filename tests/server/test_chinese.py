"""Whatever a Chinese editor shows is Chinese, but for code and names: the real worker, torch agent, author
and twin, over a file that is offered kernels in some places and refused them in others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.review.contents import kernel_of
from evokernel_server.texts.translations import speak, told
from lsprotocol import types

from evokernel_core.domain.sentence import Sentence, read, sentence_of
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.synthesis.lessons import summary
from evokernel_core.twin.page_words import page_words, templates_in
from evokernel_core.twin.said import sentence_said
from tests.chinese import english
from tests.server.reviewed import LATENCY, SOURCE, TASK, VERDICT
from tests.server.story import PATIENCE_S, SETTINGS

FILE = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(256))

    def forward(self, x):
        y = torch.softmax(x * self.scale, dim=-1)
        spectrum = torch.fft.fft(y).real
        picked = y[y > 0.5]
        y = torch.erfinv(y * 0.5)
        return y + spectrum, picked


def unseen(x):
    return torch.relu(x) * 2


# evokernel: x=f16[16
def malformed(x):
    return torch.relu(x) + 1


def get_inputs():
    return [torch.rand(512, 256)]
"""
BROKEN = "import torch\n\n\ndef f(x):\n    return torch.relu(x) + undefined_name(x)\n\n\nf(torch.rand(4))\n"
NOT_WORDS = frozenset(
    {"uri", "file", "before", "after", "regionId", "sourceId", "name", "version", "path", "inputs", "status"}
    | {"code", "dtype", "pipes", "files", "kind", "state", "stage", "mode", "verifier", "chip", "source"}
    | {"symbol", "parts", "where", "interpreter"}
)
"""Fields of answers that hold code, paths and codes for programs."""


def texts(value: Any, key: str = "") -> Iterator[str]:
    """The words of an answer, however deep."""
    value = value if isinstance(value, dict | list | tuple | str) else getattr(value, "__dict__", None)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in NOT_WORDS:
                yield from texts(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item, key)


def of_page(page: str) -> Iterator[str]:
    """The words of a timeline's page: its own, and the sentences in its data."""
    words, data = (json.loads(found) for found in re.findall(r'type="application/json">(.*?)</script>', page))
    assert words["lang"] == "zh-CN"
    said = [
        page_words(),
        templates_in(sentence_of(item["said"]) for item in data["cores"] + data["launches"]),
    ]
    for template in chain(*said):
        yield words["words"][template]


async def shown(editor: Any, uri: str) -> list[str]:
    """All that an editor can ask about a file."""
    document = types.TextDocumentIdentifier(uri)
    found = [str(hint.label) for hint in await editor.hints(uri)]
    for hint in await editor.hints(uri):
        full = await editor.client.inlay_hint_resolve_async(hint)
        found += texts(getattr(full.tooltip, "value", full.tooltip) or "")
    for line in range(editor.texts[uri].count("\n")):
        found += [action.title for action in await editor.actions(uri, line)]
        for column in (4, 12, 20):
            asked = types.HoverParams(document, types.Position(line, column))
            hover = await editor.client.text_document_hover_async(asked)
            found += texts(getattr(hover.contents, "value", "")) if hover else ()
    found += [item.message for item in editor.client.diagnostics.get(uri, ())]
    lenses = await editor.client.text_document_code_lens_async(types.CodeLensParams(document)) or ()
    found += [lens.command.title for lens in lenses if lens.command]
    for name in ("evokernel.whyNot", "evokernel.dashboard"):
        found += texts(await editor.command(name, {"uri": uri}))
    found += [item.text for item in editor.statuses]
    return [*found, *(item.message for item in editor.client.messages)]


@pytest.mark.timeout(900)
async def test_a_chinese_editor_shows_no_english_sentence(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    (workspace / "model.py").write_text(FILE, "utf-8")
    (workspace / "broken.py").write_text(BROKEN, "utf-8")
    editor = await sessions.start(locale="zh-cn", settings=SETTINGS)
    uri, broken = (editor.open(workspace / name) for name in ("model.py", "broken.py"))
    here = editor.line_of(uri, "torch.softmax")

    async def analysed() -> bool:
        titles = [item.title for item in await editor.actions(uri, here)]
        refused = await editor.command("evokernel.whyNot", {"uri": broken})
        return any(title.startswith("生成 NPU 算子") for title in titles) and bool(_reasons(refused))

    await eventually(analysed, PATIENCE_S)
    said = [*await shown(editor, uri), *await shown(editor, broken)]
    answer = await editor.run(await editor.action(uri, here, "生成 NPU 算子"))
    said += texts(answer)
    assert answer["status"] == "ready", answer
    place = {"uri": uri, "regionId": answer["regionId"]}
    said += texts(await editor.command("evokernel.review", place))
    said += texts(await editor.command("evokernel.variants", place))
    said += of_page(Path((await editor.command("evokernel.timeline", place))["path"]).read_text("utf-8"))
    said += await shown(editor, uri)
    assert len([text for text in said if re.search("[\u4e00-\u9fff]", text)]) > 50
    assert "\n".join(sorted({text for text in said if english(text)})) == ""


RACE = {
    "format": "%s %s %s, which %s of %s may still be %s%s; put %s between %s.",
    "values": [
        "Add",
        {"format": "reads", "values": []},
        {
            "format": "bytes %llu to %llu of %s",
            "values": ["0", "63", {"format": "the unified buffer", "values": []}],
        },
        "DataCopy",
        {"format": "line %d", "values": ["12"]},
        {"format": "writing", "values": []},
        "",
        "SetFlag/WaitFlag MTE2_V",
        {"format": "the two calls of %s", "values": [{"format": "line %d", "values": ["12"]}]},
    ],
}
"""What the runner writes of a race."""
ENDED = Sentence("The kernel did not finish within {seconds} s.", seconds="5")
FAILURES = {
    GateName.AUDIT: Sentence(
        "{where}: {what}", where="op_kernel.cpp:7",
        what=Sentence("{name}() is not AscendC's nor the kernel's own; do without it.", name="exit"),
    ),
    GateName.COMPILE: Sentence(
        "Nothing defines {names}; define it in op_kernel.cpp or call another function.", names="Missing"
    ),
    GateName.CORRECTNESS: Sentence("{where}: {what}", where="missing-sync", what=sentence_said(RACE)),
    GateName.LATENCY: Sentence("{feedback} (at full size)", feedback=ENDED),
}  # fmt: skip


@pytest.mark.parametrize("gate", GateName)
def test_what_failed_at_a_gate_is_told_in_chinese(gate: GateName) -> None:
    """In the review, and as a job's reason; also after both were kept and read again."""
    failed = GateResult(gate, GateStatus.FAILED, "code", FAILURES[gate])
    verdict = loads(dumps(evolve(VERDICT, gates=(failed,), latency=None)), Verdict)
    speak("zh-cn")
    try:
        shown = [item.detail for item in kernel_of(SOURCE, verdict, LATENCY, TASK).gates]
        shown.append(told(read(summary(verdict).written())))
    finally:
        speak("")
    assert all(re.search("[\u4e00-\u9fff]", text) for text in shown), shown
    assert not any(map(english, shown)), shown


def _reasons(answer: Any) -> Any:
    return answer["reasons"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("第 5 行使用了 aten.fft，现有算子不计算它。", ""),
        ("Line 5 uses aten.fft, which no kernel does.", "which no kernel does"),
        ("生成 NPU 算子（softmax）", ""),
        ("请运行 `evokernel observe -- python x.py`。", ""),
        ("Cancelled by you.", "Cancelled by you"),
    ],
)
def test_what_counts_as_an_english_sentence(text: str, found: str) -> None:
    assert english(text) == found
