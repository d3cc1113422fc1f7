"""What a review says that applying leaves is what the edits leave, in any text."""

from __future__ import annotations

import pytest
from evokernel_server.documents.line_index import Text
from evokernel_server.review.contents import Guard
from evokernel_server.review.gather import guard_of, planned_of
from hypothesis import example, given
from hypothesis import strategies as st

from evokernel_core.capture.edit import minimal_edits
from evokernel_core.domain.sentence import Sentence
from evokernel_core.synthesis.worker import edit_data

LINE = st.text(
    st.one_of(st.sampled_from("ab \t😀µ\f\u2028"), st.characters(exclude_categories=["Cs"])), max_size=6
)
TEXT = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n"])), max_size=8).map(
    lambda lines: "".join("".join(item) for item in lines)
)


@given(TEXT, TEXT, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
@example("a\r\nb\r\n", "a\r\nc\r\nb\r\n", "utf-16")
@example("😀\n", "😀😀\n", "utf-16")
def test_the_text_after_is_that_of_the_edits(before: str, after: str, encoding: str) -> None:
    edits = [edit_data(change) for change in minimal_edits(before, after)]
    answer = {"name": "exp_1f", "edits": edits, "guards": ["x\u202eis\nfloat16."], "rival": None}
    planned = planned_of(Text(before, encoding), 3, answer)
    assert (planned.before.content, planned.after.content, planned.version) == (before, after, 3)
    assert planned.guards == (Guard("", "x is float16."),)


FAR = "import torch\n" + "\n" * 2000
INDENT = "def f(x):\n    "
IMPORT = "import torch\nfrom evokernel_kernels import exp_1f\n"


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (f"{FAR}{INDENT}return exp(x)\n", f"{IMPORT}{FAR[13:]}{INDENT}return run(x)\n", 2003),
        (
            f"{FAR}{INDENT}y = exp(x)\n",
            f"{IMPORT}{FAR[13:]}{INDENT}if ok:\n        run(x)\n    y = exp(x)\n",
            2003,
        ),
        (f"{FAR}{INDENT}y = exp(x)\r\n", f"{FAR}{INDENT}y = run(x)\r\n", 2002),
        ("# 注释\ny = exp(x)\nz = 1\n", "# 注释\ny = run(x)\nz = 2\n", 1),
        ("y = exp(x)\n", "y = exp(x)\n", 0),
    ],
    ids=["import above", "a guard before", "no import", "several hunks", "nothing"],
)
def test_a_review_opens_at_the_change_of_the_region(before: str, after: str, line: int) -> None:
    edits = [edit_data(change) for change in minimal_edits(before, after)]
    planned = planned_of(Text(before), 1, {"name": "exp_1f", "edits": edits, "guards": [], "rival": None})
    assert planned.changed_line(before.index("exp(x)")) == line


@pytest.mark.parametrize(
    ("sentence", "guard"),
    [
        (Sentence("{name} is {dtype}.", name="x", dtype="float16"), ("x", "is float16.")),
        (Sentence("{names}: any size from {least}.", names="s0", least=1), ("s0", "any size from 1.")),
        (Sentence("{value} equals {expected}.", value="self.p", expected="0"), ("self.p", "equals 0.")),
        (Sentence("Contiguous in memory: {names}.", names="x"), ("", "Contiguous in memory: x.")),
        (Sentence("x is plain."), ("", "x is plain.")),
    ],
)  # fmt: skip
def test_a_guard_is_parted_from_what_it_is_about(sentence: Sentence, guard: tuple[str, str]) -> None:
    assert guard_of(sentence) == Guard(*guard)
