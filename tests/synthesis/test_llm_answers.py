"""From a model's words to a kernel: JSON or marked files, whole or as edits of the kernel that was shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evokernel_core.domain.descriptor import Descriptor, Overlap
from evokernel_core.domain.errors import AnswerUnreadable, ProposerError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.synthesis.proposers.llm_answer import FIELDS, edit_schema, read_answer, schema
from evokernel_core.synthesis.proposers.llm_text import Edit, applied, edits, sections
from evokernel_core.targets import load_knowledge
from evokernel_core.targets.ascendc.source import KERNEL as KERNEL_FILE
from evokernel_core.targets.ascendc.source import TARGET, ascendc_source
from evokernel_core.targets.ascendc.source import TILING as TILING_FILE
from evokernel_core.targets.sources import files_of

TILING = "#pragma once\nstruct OpTiling { int n; };"
KERNEL = '#include "tiling.h"\n// === not a marker of a file\nvoid Run() {}'
FILES = {"tiling.h": TILING, "op_kernel.cpp": KERNEL}
BASE = ascendc_source("t1\nt2\n", "a\nb\nb\nc\n", Strategy("schedule"))


def described(kernel: str) -> Descriptor:
    return load_knowledge(TARGET).descriptor_of({KERNEL_FILE: kernel})


def read(text: str) -> tuple[str, str, tuple[str, ...]]:
    source = read_answer(text, target=TARGET, move="")
    return source.files[TILING_FILE], source.files[KERNEL_FILE], source.strategy.notes


@pytest.mark.parametrize(
    "text",
    [
        f"=== tiling.h\n{TILING}\n=== op_kernel.cpp\n{KERNEL}\n=== notes\n- one\n- two\n=== end\nDone!",
        f"=== tiling.h ===\n\n{TILING}\n\n=== op_kernel.cpp ===\n{KERNEL}\n=== notes ===\none\n\ntwo",
        f"Here it is.\n\n### `tiling.h`\n```cpp\n{TILING}\n```\n### `op_kernel.cpp`\n```cpp\n{KERNEL}\n```\n"
        "That is all.\n## Notes\n* one\n* two\n",
        f"```\n=== tiling.h\n{TILING}\n=== op_kernel.cpp\n{KERNEL}\n=== notes\none\ntwo\n```\nEnjoy.",
        f"**op_kernel.cpp**\nThe kernel:\n```cpp\n{KERNEL}\n```\n**tiling.h:**\n```\n{TILING}\n```\n"
        "=== notes\none\ntwo",
        f"=== FILE: src/tiling.h\r\n{TILING}\r\n=== FILE: op_kernel.cpp\r\n{KERNEL}\r\n=== notes\r\none\r\n"
        "two\r\n",
        json.dumps({"files": FILES, "notes": ["one", "two"]}),
        json.dumps({"tiling_h": TILING, "op_kernel_cpp": KERNEL, "notes": ["one", "two"]}),  # as once asked
        "## Notes\nI split rows.\n```json\n"
        + json.dumps({"files": FILES, "notes": ["one", "two"]})
        + "\n```\n## Notes\nDone.",
        json.dumps({"files": FILES, "edits": [], "notes": ["one", "two"]}),
    ],
)
def test_the_files_of_an_answer(text: str) -> None:
    assert read(text) == (TILING + "\n", KERNEL + "\n", ("one", "two"))


BLOCK = "<<<<<<< SEARCH\na\nb\n=======\nnew\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text",
    [
        f"=== op_kernel.cpp\n{BLOCK}=== notes\nsplit",
        f"=== edit op_kernel.cpp\n```\n{BLOCK}```\n=== notes\nsplit",
        json.dumps(
            {
                "files": dict.fromkeys(("tiling.h", "op_kernel.cpp")),
                "edits": [{"file": "op_kernel.cpp", "search": "a\nb\n", "replace": "new\n"}],
                "notes": ["split"],
            }
        ),
        json.dumps(
            {
                "edits": [{"file": "op_kernel.cpp", "search": "a\r\nb", "replace": "new"}],
                "notes": ["split"],
            }
        ),
    ],
)
def test_edits_are_made_in_the_kernel_that_was_shown(text: str) -> None:
    source = read_answer(text, target=TARGET, move="model", base=BASE)
    assert (source.files[TILING_FILE], source.files[KERNEL_FILE]) == ("t1\nt2\n", "new\nb\nc\n")
    assert (source.strategy.family, source.strategy.notes) == ("model", ("split",))


def block(search: str, replace: str = "x") -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "form",
    [
        "{0}{1}",
        "```\n{0}{1}```\n",
        "```cpp\n{0}```\n```cpp\n{1}```\n",
        "First:\n```cpp\n{0}```\nThen `c`:\n\n```cpp\n{1}```\nThat is all.\n",
        "```\n{0}```\n{1}",
    ],
)
def test_every_edit_is_made_however_they_are_fenced(form: str) -> None:
    text = form.format(block("a", "A"), block("c", "C"))
    text = f"=== op_kernel.cpp\n{text}=== notes\n- two\n=== end"
    source = read_answer(text, target=TARGET, move="model", base=BASE)
    assert source.files[KERNEL_FILE] == "A\nb\nb\nC\n"


FENCED = "int a;\n/*\n## Notes\n** tiling.h\n=== end ===\n*/\nint b;"


@pytest.mark.parametrize(
    "text",
    [
        f"=== tiling.h\n```cpp\n{TILING}\n```\n=== op_kernel.cpp\n```cpp\n{FENCED}\n```\n=== notes\nn",
        f"=== op_kernel.cpp\n```\n{FENCED}\n```\n=== tiling.h\n```cpp\n{TILING}\n=== notes\nn\n=== end",
    ],
)
def test_what_looks_like_a_marker_within_a_fence_is_code(text: str) -> None:
    assert read(text) == (TILING + "\n", FENCED + "\n", ("n",))


@pytest.mark.parametrize(
    ("depth", "overlap"),
    [
        ("2", Overlap.PIPELINED),
        ("BUFFERS", Overlap.PIPELINED),
        ("outBuffers", Overlap.PIPELINED),
        ("1", Overlap.NONE),
        ("SLOTS", Overlap.NONE),
    ],
)
def test_queues_of_two_buffers_overlap(depth: str, overlap: Overlap) -> None:
    assert described(f"pipe.InitBuffer( inQueue , {depth} , TILE * 2);\n").overlap is overlap


@pytest.mark.parametrize("word", ["BUFFER", "InitBuffer(a,", "InitBuffer  ", "Reduce"])
def test_a_kernel_of_one_long_line_is_described(word: str) -> None:
    """Patterns that try every split of such a line take minutes, which the suite's time limit ends."""
    assert described("InitBuffer(a," + word * (2**21 // len(word)) + "\n").overlap is Overlap.NONE


FLAWED = {
    "nothing": ("=== op_kernel.cpp\n" + block("a\nc"), "Edit 1 of op_kernel.cpp matches nothing"),
    "twice": ("=== op_kernel.cpp\n" + block("b"), "Edit 1 of op_kernel.cpp matches 2 places"),
    "overlapping": (
        "=== op_kernel.cpp\n" + block("c", "b") + block("b\nb"),
        "Edit 2 of op_kernel.cpp matches 2 places",
    ),
    "after the first": ("=== op_kernel.cpp\n" + block("c", "b") + block("b"), "Edit 2 .* matches 3 places"),
    "empty": ("=== tiling.h\n" + block("  "), "Edit 1 of tiling.h searches for nothing"),
    "open": ("=== tiling.h\n<<<<<<< SEARCH\nt1\n=======\nx\n", "Edit 1 of tiling.h is not closed"),
    "other file": (
        json.dumps({"edits": [{"file": "/etc/passwd", "search": "a", "replace": ""}], "notes": []}),
        "'/etc/passwd'; there are tiling.h and op_kernel.cpp",
    ),
    "other types": (
        json.dumps({"edits": [{"file": "tiling.h", "search": 1, "replace": ""}], "notes": []}),
        "objects of three texts",
    ),
    "no edits": (json.dumps({"edits": [], "notes": []}), "has no file"),
    "two files of a name": ("=== tiling.h\na\n=== tiling.h\nb\n", "holds tiling.h twice"),
    "emptied": ("=== tiling.h\n" + block("t1\nt2", ""), "tiling.h was empty"),
}


@pytest.mark.parametrize("name", FLAWED)
def test_an_edit_that_cannot_be_made_says_why(name: str) -> None:
    text, words = FLAWED[name]
    with pytest.raises(ProposerError, match=words) as raised:
        read_answer(text, target=TARGET, move="model", base=BASE)
    assert str(raised.value).endswith(".")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"=== tiling.h\n{TILING}\n", "has no op_kernel.cpp"),
        ("=== notes\nnone\n", "has no file under a marker"),
        (f"=== op_kernel.cpp\n{BLOCK}", "has no tiling.h and no op_kernel.cpp"),
        ("=== tiling.h\n\n=== op_kernel.cpp\nb\n", "tiling.h was empty"),
    ],
)
def test_a_draft_is_whole(text: str, words: str) -> None:
    with pytest.raises(ProposerError, match=words):
        read_answer(text, target=TARGET, move="")


def test_a_file_that_stays_may_be_left_out() -> None:
    source = read_answer("=== op_kernel.cpp\nnew\n", target=TARGET, move="model", base=BASE)
    assert (source.files[TILING_FILE], source.files[KERNEL_FILE]) == (BASE.files[TILING_FILE], "new\n")


@given(st.text())
@example("\ufeff")
def test_no_words_bring_the_reader_down(text: str) -> None:
    for answer in (
        text,
        f"=== tiling.h\n{text}\n=== op_kernel.cpp\n{text}",
        f"=== op_kernel.cpp\n{block(text)}",
    ):
        try:
            source = read_answer(answer, target=TARGET, move="", base=BASE)
        except ProposerError:
            continue
        assert source.files[KERNEL_FILE].strip()


line = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6).filter(
    lambda text: text[0] not in "=<>#*`"
)
lines = st.lists(line, min_size=1, max_size=8)


@given(lines, lines, st.data())
def test_an_edit_of_lines_that_are_there_once_makes_the_file_anew(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    """What a block replaces is what a careful reader would: the numbers make each line one of a kind."""
    old = [f"{number}:{text}\n" for number, text in enumerate(before)]
    start = data.draw(st.integers(0, len(old) - 1))
    end = data.draw(st.integers(start + 1, len(old)))
    new = [f"{text}\n" for text in after]
    text = f"<<<<<<< SEARCH\n{''.join(old[start:end])}=======\n{''.join(new)}>>>>>>> REPLACE"
    (edit,) = edits("f", text)
    made = applied({"f": "".join(old)}, [edit])["f"]
    assert made == "".join([*old[:start], *new, *old[end:]])


@given(lines, lines)
def test_marked_files_are_what_was_written(tiling: list[str], kernel: list[str]) -> None:
    files = {"tiling.h": "\n".join(tiling), "op_kernel.cpp": "\n".join(kernel)}
    text = "\n".join(f"=== {name}\n{body}" for name, body in files.items())
    assert sections(text, files_of(TARGET)) == files


def test_a_deletion_is_an_edit() -> None:
    (edit,) = edits("f", "<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE")
    assert edit == Edit("f", "a\n", "")


@pytest.mark.parametrize(
    ("notes", "kept"),
    [
        ('"one"', ("one",)),
        ('"one\\ntwo"', ("one", "two")),
        ('["one", 2, null, "two"]', ("one", "two")),
        ('{"why": "one"}', ()),
        ("null", ()),
        ("7", ()),
        ("", ()),
    ],
)
def test_what_is_said_of_a_kernel_does_not_throw_it_away(notes: str, kept: tuple[str, ...]) -> None:
    more = f', "notes": {notes}' if notes else ""
    assert read(f'{{"files": {json.dumps(FILES)}{more}}}') == (TILING + "\n", KERNEL + "\n", kept)


WHOLE = json.dumps({"files": FILES, "notes": ["one"]})


@pytest.mark.parametrize("end", [1, 10, 14, 40, len(WHOLE) // 2, len(WHOLE) - 12, len(WHOLE) - 1])
@pytest.mark.parametrize("before", ["", "\n ", "```json\n"])
def test_an_object_that_breaks_off_is_called_so(before: str, end: int) -> None:
    with pytest.raises(AnswerUnreadable, match="breaks off before its end"):
        read(before + WHOLE[:end])


@pytest.mark.parametrize("text", ["{x} is set", "I cannot improve it.", "{'a': 1}", "Use { here"])
def test_what_is_no_object_does_not_break_off(text: str) -> None:
    with pytest.raises(AnswerUnreadable, match="not JSON"):
        read(text)


def test_schemas_are_strict() -> None:
    """Structured output asks that every field is required and no other is allowed."""
    whole, edited = schema(TARGET), edit_schema(TARGET)
    ending = schema(TARGET, refines=True), edit_schema(TARGET, refines=True)
    for part in (whole, edited, *ending, edited["properties"]["edits"]["items"]):
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False
    assert whole["required"] == list(FIELDS)
