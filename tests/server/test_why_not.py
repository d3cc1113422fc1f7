"""Why code has no kernel on offer, by reason code, with what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.documents.line_index import Extent, Text
from evokernel_server.documents.workspace import Captured, Document, FileProblem, Tracked
from evokernel_server.features.hover import hover_at
from evokernel_server.offers.no_candidate import situation
from evokernel_server.offers.why_not import HELP, OTHERWISE, PROGRAMS, reasons, reasons_on
from evokernel_server.trust import REASON
from lsprotocol import types

from evokernel_core.domain import errors
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.synthesis.offers import Estimate
from evokernel_core.twin.hazards import explain
from evokernel_core.vendor.rival import Rival
from tests.server.test_hints import serving

DOCS = Path(__file__).parents[2]
CODE = "import torch\n\n\ndef f(x):\n    y = torch.exp(x)\n    return torch.relu(y)\n"
ESTIMATE = Estimate(20.0, 5.0, 4.0, "ascend910b1")
POOR = evolve(ESTIMATE, after_us=19.0)


def tracked(
    status: RegionStatus,
    estimate: Estimate | None,
    source: str = "torch.exp(x)",
    *,
    id: str = "r",
    reason: str = "",
) -> Tracked:
    start = CODE.index(source)
    span = Span(1, 0, 1, 0)
    region = Region(id, "/m.py", "f", span, source, "", "elementwise", status, reason)
    return Tracked(Captured(region, estimate), Extent(start, start + len(source)))


def document(*items: Tracked, problem: FileProblem | None = None) -> Document:
    made = Document("file:///m.py", Path("/m.py"), 1, Text(CODE))
    made.tracked, made.problem = items, problem
    return made


CANDIDATE = RegionStatus.CANDIDATE
REFUSED = {
    "unsupported": tracked(RegionStatus.UNSUPPORTED, None, reason="Line 5 uses aten.fft."),
    "needs_shapes": tracked(RegionStatus.NEEDS_SHAPES, None, reason="Nothing says the shapes."),
    "infeasible": tracked(RegionStatus.INFEASIBLE, POOR),
    "left_out": tracked(RegionStatus.UNSUPPORTED, None, id=PROGRAMS, reason="Programs are left out."),
    "no_gain": tracked(CANDIDATE, POOR),
    "vendor_leads": tracked(CANDIDATE, evolve(ESTIMATE, rival=Rival("torch_npu.npu_x", 3.0))),
}


def test_a_kernel_that_failed_by_a_hazard_is_told_what_helps() -> None:
    reason = "Failed at {gate} ({code}): {feedback}"
    told = Sentence(reason, gate="correctness", code="missing-sync", feedback="DataCopy and Add.")
    whole = Sentence("{reason} Last failure: {failure}", reason="All were tried.", failure=told)
    (found,) = reasons(document(tracked(RegionStatus.INFEASIBLE, POOR, reason=whole)))
    assert found.help == f"{explain('missing-sync').help} {HELP['infeasible']}"


@pytest.mark.parametrize("code", REFUSED)
def test_a_refused_region_is_explained(code: str) -> None:
    (reason,) = reasons(document(REFUSED[code]))
    assert (reason.code, reason.line, reason.help) == (code, 4, HELP[code])
    assert reason.why.endswith(".")
    assert reasons_on(document(REFUSED[code]), 4, 4) == (reason,)
    assert reasons_on(document(REFUSED[code]), 5, 5) == ()


@pytest.mark.parametrize(
    ("estimate", "says"),
    [
        (POOR, "at 19.0 µs estimated on ascend910b1, the code now at 20.0 µs estimated: a gain of 5 %"),
        (evolve(ESTIMATE, after_us=21.0), "it gains nothing"),
    ],
)
def test_no_gain_is_said_in_figures(estimate: Estimate, says: str) -> None:
    (reason,) = reasons(document(tracked(CANDIDATE, estimate)))
    assert says in reason.why


@pytest.mark.parametrize("code", ["import_failed", "no_interpreter", REASON, "something_new"])
def test_a_file_that_was_not_analysed_is_explained_where_it_is_told(code: str) -> None:
    (reason,) = reasons(document(problem=FileProblem(code, Sentence("It failed at line {line}.", line=6))))
    assert (reason.code, reason.line, reason.why) == (code, 5, "It failed at line 6.")
    assert reason.help == HELP.get(code, OTHERWISE)


def test_what_is_offered_needs_no_explanation() -> None:
    assert reasons(document(tracked(CANDIDATE, ESTIMATE))) == ()


def test_neither_does_what_an_offered_region_holds() -> None:
    whole = tracked(CANDIDATE, ESTIMATE, CODE[CODE.index("torch.exp") :].rstrip(), id="whole")
    assert reasons(document(REFUSED["no_gain"], whole)) == ()
    assert len(reasons(document(REFUSED["no_gain"], tracked(CANDIDATE, ESTIMATE, "torch.relu(y)")))) == 1


def test_every_code_of_a_capture_has_help() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.reason for kind in kinds if issubclass(kind, errors.CaptureError)}
    assert codes <= set(HELP)


NEVER = "At 1 place you said never: *Offer Kernels Again* takes that back."
WITHOUT = Document("file:///m.py", Path("/m.py"), 1, Text("def f(x):\n    return x + 1\n"))


def offered(**changes: Any) -> Document:
    made = document(tracked(CANDIDATE, ESTIMATE))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("made", "lines", "says"),
    [
        pytest.param(
            WITHOUT,
            None,
            "m.py does not import torch: open",
            id="no torch",
        ),
        pytest.param(offered(), None, "has a kernel: 1 offered, 0 ready, 0 accepted.", id="all offered"),
        pytest.param(offered(hidden=frozenset({"x"})), None, NEVER, id="never"),
        pytest.param(offered(), (4, 4), "kernel is offered here (", id="an offer on the line"),
        pytest.param(offered(), (0, 0), "Nothing was captured here", id="a line without tensors"),
        pytest.param(offered(hidden=frozenset({"x"})), (0, 0), NEVER, id="a line, and never elsewhere"),
        pytest.param(document(), None, "No class or function of", id="nothing captured"),
    ],
)
def test_where_nothing_is_refused_it_is_said_what_is_so(
    made: Document, lines: tuple[int, int] | None, says: str
) -> None:
    said = situation(made, analysing=False, lines=lines)
    assert says in said and said.endswith(".")


def test_an_analysis_under_way_is_waited_for() -> None:
    assert "is being analysed: ask again" in situation(document(), analysing=True)
    assert "is offered here" in situation(offered(), analysing=True, lines=(4, 4)), "that is known already"


@pytest.mark.parametrize("code", HELP)
def test_help_names_pages_that_there_are(code: str) -> None:
    pages = [word.strip("(),.;") for word in HELP[code].split() if "docs/" in word]
    assert all((DOCS / page).is_file() for page in pages)
    assert HELP[code].endswith((".", ")."))


def test_the_hover_says_what_would_help(home: Path) -> None:
    made = document(REFUSED["unsupported"])
    hover = hover_at(serving(home, made), made, types.Position(4, 10))
    assert hover is not None and isinstance(hover.contents, types.MarkupContent)
    assert "docs/author.md lists them by family" in hover.contents.value
