"""What a review says that applying leaves is what the edits leave, in any text."""

from __future__ import annotations

from evokernel_server.documents.line_index import Text
from evokernel_server.review.gather import planned_of
from hypothesis import example, given
from hypothesis import strategies as st

from evokernel_core.capture.edit import minimal_edits
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
    assert (planned.before.content, planned.after, planned.version) == (before, after, 3)
    assert planned.guards == ("x is float16.",)
