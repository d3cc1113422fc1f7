"""Labels, tooltips, commands, highlights and pipes: tables over documents without a server's process."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.app import EvoKernelServer
from evokernel_server.documents.capture import read_regions
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Captured, Document, FileProblem
from evokernel_server.features.highlight import highlights
from evokernel_server.features.hover import hover_at
from evokernel_server.features.inlay_hint import Showing, hints, resolved
from evokernel_server.offers.evidence import bar, installed_evidence, picture
from evokernel_server.offers.gain_words import kernel_gain_words, ratio, speed_words
from evokernel_server.offers.overlaps import choice
from evokernel_server.texts import command_names as names
from evokernel_server.texts.translations import speak
from lsprotocol import types

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import Baseline, Latency, LatencySource
from evokernel_core.synthesis.offers import Estimate
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.vendor.rival import Rival
from tests.chinese import english
from tests.server.regions import captured, document, estimate, found

MODEL = "import torch\n\ndef f(x):\n    y = torch.softmax(x, dim=0)\n    return torch.softmax(y, dim=1) + 1\n"
CALL = "import torch\nfrom evokernel_kernels import k\nz = k.run(x)\n"
EVERYTHING = types.Range(types.Position(0, 0), types.Position(99, 0))
LAZY = Showing(parts=True, lazy=True)
LATENCY = Latency(
    20.0, LatencySource.MODELLED, "ascend910b1", 24, (("V", 5.0), ("MTE2", 18.0), ("S", 0.0)),
    "MTE2", 10.0, 90.0,
)  # fmt: skip
INSTALLED = Installed(
    "k", Path("/work/evokernel_kernels/k (1)"), "t", "s", LATENCY, "twin 0.1.0", sources=(KERNEL, TILING)
)


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    yield
    speak("")


def serving(home: Path, document: Document, **inlay_hint: Any) -> EvoKernelServer:
    """A server that has been initialized by a client, with one open document."""
    server = EvoKernelServer()
    experimental = {"evokernel": {"commandLinks": True}} if inlay_hint else {}
    params = {
        "capabilities": {"textDocument": {"inlayHint": inlay_hint}, "experimental": experimental},
        "processId": None, "rootUri": None,
    }  # fmt: skip
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    server.protocol.handle_message(server.protocol.structure_message(message))
    server.documents.documents[document.uri] = document
    return server


LONGEST = 43
"""Characters of a hint that VS Code shows, unless a person sets another limit."""
VSCODE = {"resolveSupport": {"properties": ["tooltip", "textEdits", "label.tooltip", "label.command"]}}


def with_estimate(given: Estimate) -> Document:
    made = document(MODEL)
    made.accept([evolve(item, estimate=given) for item in found(made.text)[:1]], made.text, made.mark())
    return made


MODELLED, MEASURED = Rival("torch_npu.f", 40.0), Rival("torch_npu.f", 40.0, 15.0, "a row")


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (estimate(), "⚡ 2.6x  24 µs est."),
        (estimate(412.0, 35.0), "⚡ 12x  35 µs est."),
        (estimate(100.0, 70.0), "⚡ 1.4x  70 µs est."),
        (estimate(90_000.0, 10.0), "⚡ 9,000x  10 µs est."),
        (evolve(estimate(), rival=MODELLED), "⚡ 1.7x  24 µs est."),
        (evolve(estimate(), rival=MEASURED), "⚡ 15 µs measured ascend910b1, torch_npu.f"),
        (evolve(estimate(), rival=Rival("torch_npu.f", 20.0)), "⚡ 3.1x  20 µs est., torch_npu.f"),
        (estimate(100.0, 99.0), None),
    ],
)
def test_a_label_says_how_many_times_as_fast(given: Estimate, label: str | None) -> None:
    assert [item.label for item in hints(with_estimate(given), EVERYTHING)] == ([label] if label else [])


BIG = estimate(1_234_567.0, 900_123.0)
FUSION = "torch_npu.npu_fusion_attention"
WORDS = {"en": "est.", "zh-cn": "估算"}
LABELLED = {
    "a gain": BIG,
    "a gain over an operator": evolve(BIG, rival=Rival(FUSION, 1_300_000.0)),
    "an operator": evolve(BIG, rival=Rival(FUSION, 345_678.0)),
}


@pytest.mark.parametrize("locale", ["en", "zh-cn"])
@pytest.mark.parametrize("name", LABELLED)
def test_what_matters_of_a_label_is_not_cut(name: str, locale: str) -> None:
    """The gain and the figure with its word come before what an editor may cut, also around other offers."""
    speak(locale)
    made = captured(MODEL)
    made.accept([evolve(item, estimate=LABELLED[name]) for item in found(made.text)], made.text, made.mark())
    labels = [str(item.label) for item in hints(made, EVERYTHING)]
    assert len(labels) == 3
    for label in labels[:2]:
        assert re.match(rf"⚡ [\d.,]+x\D.*µs.{{0,2}}{WORDS[locale]}", label[:LONGEST]), label
    nested = labels[2]
    assert FUSION in nested if name == "an operator" else re.match(r"⚡ [\d.,]+x", nested)
    assert not re.search("µs", nested), "its figures are in the tooltip: the first label needs the room"


@pytest.mark.parametrize("locale", ["en", "zh-cn"])
def test_a_ready_label_is_not_cut_and_comes_first_on_its_line(locale: str) -> None:
    speak(locale)
    made = captured(MODEL)
    outer = max(made.tracked, key=lambda item: item.extent.end - item.extent.start)
    made.ready = {outer.region.id: evolve(LATENCY, us=123_456.0, baseline_us=234_567.0)}
    (_, first, second) = [str(item.label) for item in hints(made, EVERYTHING)]
    assert WORDS[locale] in first and "1.9x  123,456 µs" in first
    assert len(first) <= LONGEST, "its place is whole or not there"
    assert re.match(r"⚡ [\d.]+x", second)


@pytest.mark.parametrize(
    ("before", "after", "words", "said"),
    [
        (9.94, 1, "9.9x", "9.9 times as fast"),
        (9.96, 1, "10x", "10 times as fast"),
        (1, 2, "0.50x", "2.0 times as long"),
        (103, 100, "", "3 % faster"),
        (100, 103, "", "3 % slower"),
        (100.1, 100, "", "as fast"),
        (0, 100, "0.00x", "no ratio"),
    ],
)
def test_gains_have_the_digits_that_they_deserve(before: float, after: float, words: str, said: str) -> None:
    assert (ratio(before, after), speed_words(before, after)) == (words, said)


ON_GPU = evolve(LATENCY, us=18.0, chip="nvidia_h200", baseline_us=34.0)
MEASURED_EAGER = Baseline(34.0, 34.0, 34.0, "a row")


@pytest.mark.parametrize(
    ("latency", "words"),
    [
        (LATENCY, "4.5x  20 µs est."),
        (ON_GPU, "Triton, not timed (no GPU)"),
        (evolve(ON_GPU, source=LatencySource.MEASURED), "1.9x est.  18 µs measured H200"),
        (evolve(ON_GPU, source=LatencySource.MEASURED, baseline=MEASURED_EAGER), "1.9x  18 µs measured H200"),
        (evolve(LATENCY, us=0.123), "732x  0.12 µs est."),
        (evolve(LATENCY, us=89.0), "89 µs est."),
    ],
)
def test_a_verified_kernel_says_how_its_latency_is_known(latency: Latency, words: str) -> None:
    ready, calls = captured(MODEL), document(CALL)
    ready.ready = {ready.tracked[0].region.id: latency}
    calls.installed = {"k": evolve(INSTALLED, latency=latency)}
    assert kernel_gain_words(latency, latency.baseline_us) == words
    labels = [hints(made, EVERYTHING)[0].label for made in (ready, calls)]
    assert labels == [f"⚡ ready {words}", f"⚡ {words}"]


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", ["now_us", "after_us", "bound_us", "rival"])
def test_a_figure_that_no_time_has_never_reaches_a_hint(wrong: float, name: str) -> None:
    change: dict[str, Any] = {name: Rival("torch_npu.f", wrong) if name == "rival" else wrong}
    made = document(MODEL)
    region = found(made.text)[0].region
    answer = {"regions": [{"region": to_data(region), "estimate": {**to_data(estimate()), **change}}]}
    if name == "rival":
        answer["regions"][0]["estimate"]["rival"] = {"name": "torch_npu.f", "modelled_us": wrong}
    (item,) = read_regions(json.loads(json.dumps(answer)))
    assert item == Captured(region, None)
    made.accept([item], made.text, made.mark())
    assert hints(made, EVERYTHING) == []


def test_a_sound_estimate_is_read() -> None:
    region = found(document(MODEL).text)[0].region
    (item,) = read_regions({"regions": [{"region": to_data(region), "estimate": to_data(estimate())}]})
    assert item.estimate == estimate()


def test_only_wanted_lines_get_hints() -> None:
    made = captured(MODEL)
    lines = {hint.position.line for hint in hints(made, EVERYTHING)}
    assert lines == {3, 4}
    for first in range(6):
        wanted = types.Range(types.Position(first, 0), types.Position(first, 9))
        assert {hint.position.line for hint in hints(made, wanted)} == lines & {first}


def test_clients_that_resolve_nothing_get_all_at_once() -> None:
    for hint in hints(captured(MODEL), EVERYTHING):
        assert isinstance(hint.label, str) and hint.data is None
        assert "estimated on ascend910b1, not yet verified" in hint.tooltip.value


def test_clients_that_resolve_get_tooltip_and_command_when_they_ask(home: Path) -> None:
    made = captured(MODEL)
    server = serving(home, made, **VSCODE)
    hint, *_ = hints(made, EVERYTHING, LAZY)
    assert hint.tooltip is None and hint.label[0].command is None
    before = types.InlayHint(hint.position, list(hint.label), data=dict(hint.data))
    done = resolved(server, hint)
    assert "not yet verified" in done.tooltip.value
    command = done.label[0].command
    assert command.command == names.GENERATE
    assert command.arguments == [{"uri": made.uri, "regionId": made.tracked[0].region.id, "version": 1}]
    made.update([types.TextDocumentContentChangeWholeDocument("# new\n" + MODEL)], 2)
    assert resolved(server, evolve(before)) == before, "what is stale comes back as it was"


@pytest.mark.parametrize(
    "data", [None, 7, [], {}, {"uri": 1}, {"uri": "file:///work/model.py", "version": 1}]
)
def test_foreign_data_give_the_hint_back(data: Any, home: Path) -> None:
    hint = types.InlayHint(types.Position(0, 0), "x", data=data)
    assert resolved(serving(home, captured(MODEL), **VSCODE), hint) == types.InlayHint(
        types.Position(0, 0), "x", data=data
    )


def test_a_kernel_that_is_ready_is_reviewed_by_a_click(home: Path) -> None:
    made = captured(MODEL)
    server = serving(home, made, **VSCODE)
    made.ready = {made.tracked[0].region.id: LATENCY}
    done = resolved(server, hints(made, EVERYTHING, LAZY)[0])
    assert done.label[0].value.startswith("⚡ ready ")
    assert done.label[0].command.command == names.REVIEW
    assert "MTE2  " in done.tooltip.value and "← bottleneck" in done.tooltip.value


def test_nested_offers_read_as_a_choice(home: Path) -> None:
    made = captured(MODEL)
    whole = made.tracked[-1]
    assert whole.region.op_category == "program"
    assert [item.region.op_category for item in choice(made, whole)] == ["softmax", "program"]
    assert choice(made, made.tracked[0]) == ()
    server = serving(home, made, **VSCODE)
    words = hover_at(server, made, types.Position(4, 14)).contents.value
    assert "1. softmax, line 5: 2.6x  24 µs est. ← here" in words
    assert "2. [program, line 5](command:evokernel.generate?" in words
    plain = hover_at(serving(home, made), made, types.Position(4, 14)).contents.value
    assert "2. program, line 5: 2.6x" in plain and "command:" not in plain


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((3, 0), (8, 31)), ((3, 12), (8, 31)), ((4, 0), (11, 34)), ((4, 14), (11, 34)), ((4, 36), (4, 38)),
        ((0, 3), None), ((2, 0), None), ((99, 0), None),
    ],
)  # fmt: skip
def test_the_lines_of_a_hint_are_highlighted(
    place: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    found = highlights(captured(MODEL), types.Position(*place))
    if expected is None:
        assert found is None, "another server is asked then"
    else:
        ((start, end),) = [(item.range.start, item.range.end) for item in found]
        assert (start.line, end.line) == (place[0], place[0])
        assert (start.character, end.character) == expected


def test_what_is_not_offered_is_not_highlighted() -> None:
    assert highlights(with_estimate(estimate(100.0, 99.0)), types.Position(3, 12)) is None


def test_a_calls_hover_shows_pipes_and_files(home: Path) -> None:
    made = document(CALL)
    made.installed = {"k": INSTALLED}
    words = hover_at(serving(home, made), made, types.Position(2, 5)).contents.value
    assert "- 4.5 times as fast" in words
    assert f"MTE2  {'█' * 18}░░   90 %  ← bottleneck\nV     {'█' * 5}{'░' * 15}   25 %\n```" in words
    assert "[op_kernel.cpp](file:///work/evokernel_kernels/k%20%281%29/op_kernel.cpp)" in words
    assert "[tiling.h](file:///work/evokernel_kernels/k%20%281%29/tiling.h)" in words
    (hint,) = hints(made, EVERYTHING)
    assert hint.label == "⚡ 4.5x  20 µs est."


@pytest.mark.parametrize("us", [4.66, 31.1, 71.6, 823.4, 12_345.6])
def test_vs_code_shows_the_whole_label(us: float) -> None:
    """It cuts what is longer than `editor.inlayHints.maximumLength`: figures would lose their word."""
    slow = evolve(LATENCY, us=us, baseline_us=3 * us)
    ready, calls = captured(MODEL), document(CALL)
    ready.ready = {ready.tracked[0].region.id: slow}
    calls.installed = {"k": evolve(INSTALLED, latency=slow)}
    for made in (ready, with_estimate(estimate(3 * us, us)), calls):
        label = hints(made, EVERYTHING)[0].label
        assert len(label) <= LONGEST and "est." in label


def test_the_vendors_operator_has_neither_pipes_nor_files(home: Path) -> None:
    made = document(CALL)
    borrowed = evolve(INSTALLED, function="torch_npu.f", latency=evolve(LATENCY, pipes=()))
    made.installed = {"k": borrowed}
    shown = hover_at(serving(home, made), made, types.Position(2, 5)).contents.value
    assert shown == installed_evidence(borrowed)


@pytest.mark.parametrize(
    ("share", "cells"),
    [
        (0.0, "░" * 20), (1.0, "█" * 20), (7.5, "█" * 20), (-1.0, "░" * 20), (0.5, "█" * 10 + "░" * 10),
        (0.525, "█" * 10 + "▌" + "░" * 9),
    ],
)  # fmt: skip
def test_bars(share: float, cells: str) -> None:
    assert bar(share) == cells


def test_pipes_that_a_package_made_up_stay_in_their_block() -> None:
    wrong = (("```\n[x](command:y)", 1.0), ("V", math.nan), ("S", math.inf), ("M" * 10_000, 3.0))
    shown = list(picture(evolve(LATENCY, pipes=wrong, bottleneck="```")))
    assert (shown[0], shown[-1]) == ("```text", "```")
    assert len(shown) == 4 and not any("`" in line for line in shown[1:-1])
    assert max(map(len, shown)) < 80
    assert list(picture(evolve(LATENCY, pipes=()))) == []


def test_why_a_file_has_no_regions_is_told_in_the_language_of_the_editor() -> None:
    made = document(MODEL)
    how = "{how} at line {line}"
    reason = Sentence(how, how=Sentence("it had not called a model after {seconds} s", seconds=5), line=3)
    made.problem = FileProblem("needs_shapes", reason)
    speak("zh-cn")
    (hint,) = hints(made, EVERYTHING)
    assert "5 秒" in hint.tooltip.value and not english(hint.tooltip.value)
