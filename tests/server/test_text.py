"""Properties of positions, shifting and re-anchoring."""

from __future__ import annotations

import pytest
from evokernel_server.documents.line_index import Edit, Extent, Text, narrow, re_anchor, shift
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from evokernel_core.domain.region import Span

ENCODINGS = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
contents = st.text(alphabet="ab µ😀é\n\r\f\x0b", max_size=40)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, Edit]:
    content = draw(contents)
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, len(content)))
    return content, Edit(start, end, draw(contents))


@given(contents, st.sampled_from(ENCODINGS), st.data())
def test_an_offset_survives_the_way_through_the_clients_units(
    content: str, encoding: str, data: st.DataObject
) -> None:
    text = Text(content, encoding)
    offset = data.draw(st.integers(0, len(content)))
    if content[offset - 1 : offset + 1] == "\r\n" or content[offset : offset + 1] in ("\n", "\r"):
        return  # the end of a line has one position, however long its line end is
    position = text.position(offset)
    assert text.offset(position) == offset
    codec, width = CODECS[encoding]
    line = content[text.starts[position.line] : offset]
    assert position.character == len(line.encode(codec)) // width


@given(contents, st.data())
def test_a_span_survives_the_way_through_offsets(content: str, data: st.DataObject) -> None:
    text = Text(content)
    start = data.draw(st.integers(0, len(content)))
    extent = Extent(start, data.draw(st.integers(start, len(content))))
    assert text.extent(text.span(extent)) == extent


@given(edits(), st.data())
def test_an_untouched_region_keeps_its_text(made: tuple[str, Edit], data: st.DataObject) -> None:
    content, edit = made
    start = data.draw(st.integers(0, len(content)))
    extent = Extent(start, data.draw(st.integers(start, len(content))))
    moved = shift(extent, edit)
    overlaps = edit.start < extent.end and extent.start < edit.end
    inserted_inside = edit.start == edit.end and extent.start < edit.start < extent.end
    if moved is None:
        assert overlaps or inserted_inside
    else:
        after = Text(content).apply(edit).content
        assert after[moved.start : moved.end] == content[extent.start : extent.end]


@given(contents, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), contents), max_size=6))
def test_lines_after_edits_start_where_they_do_in_the_text(
    content: str, made: list[tuple[float, float, str]]
) -> None:
    """As where an edit parts a carriage return from its line feed, or joins two of them."""
    text = Text(content)
    for first, second, new in made:
        start, end = sorted(round(at * len(text.content)) for at in (first, second))
        text = text.apply(Edit(start, end, new))
        assert text.starts == Text(text.content).starts


@given(edits())
def test_a_narrowed_edit_makes_the_same_text(made: tuple[str, Edit]) -> None:
    content, edit = made
    narrowed = narrow(content, edit)
    assert Text(content).apply(narrowed) == Text(content).apply(edit)
    assert narrowed.end - narrowed.start <= edit.end - edit.start


@given(st.lists(edits(), max_size=5), st.sampled_from(["utf-8", "utf-16"]))
def test_a_clients_changes_give_the_clients_text(made: list[tuple[str, Edit]], encoding: str) -> None:
    text = Text("".join(content for content, _ in made), encoding)
    for _, edit in made:
        end = min(edit.end, len(text.content))
        start = min(edit.start, end)
        wanted = Text(text.content, encoding).range(Extent(start, end))
        change = types.TextDocumentContentChangePartial(range=wanted, text=edit.text)
        planned = text.edit(change)
        text = text.apply(narrow(text.content, planned))
        assert text.content[planned.start : planned.start + len(edit.text)] == edit.text


@given(contents, contents.filter(bool), contents)
def test_a_region_is_found_again_exactly_where_it_is_unique(before: str, source: str, after: str) -> None:
    content = before + source + after
    here = Extent(len(before), len(before) + len(source))
    assert re_anchor(content, here, source) == here
    found = re_anchor(content, None, source)
    places = [n for n in range(len(content)) if content.startswith(source, n)]
    assert found == (here if places == [len(before)] else None)


@pytest.mark.parametrize(
    ("content", "lines"),
    [("a\nb", 2), ("a\r\nb\rc", 3), ("a\fb\x0bc\u2028d", 1), ("", 1), ("a\n", 2)],
)
def test_lines_end_where_the_protocol_says(content: str, lines: int) -> None:
    assert len(Text(content).starts) == lines


def test_a_position_past_the_end_means_the_end() -> None:
    text = Text("one\ntwo")
    assert text.offset(types.Position(0, 99)) == 3
    assert text.offset(types.Position(9, 0)) == 7
    assert text.extent(Span(9, 0, 9, 5)) == Extent(7, 7)


def test_a_range_that_ends_before_it_starts_is_the_text_between() -> None:
    places = types.Position(1, 1), types.Position(0, 1)
    text = Text("abc\ndef\n")
    for start, end in (places, places[::-1]):
        change = types.TextDocumentContentChangePartial(types.Range(start, end), "x")
        assert text.apply(text.edit(change)).content == "axef\n"
