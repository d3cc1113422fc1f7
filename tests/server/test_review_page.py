"""The page of a review in Markdown: readable, and safe whatever names, sentences and files hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve
from evokernel_server.documents.private_pages import fit
from evokernel_server.review.contents import File, Gate, Guard, InnerKernel, Review, ReviewedInput, Variant
from evokernel_server.review.markdown import MOST_LINES, diff_of, review_page, variants_page
from evokernel_server.texts.strategies import ScheduleChange
from hypothesis import example, given
from hypothesis import strategies as st

from tests.server.reviewed import kernel, review

SIGNS = st.sampled_from("`[]()<>!*_#|~\\\n\r\t -=+1.:/@&\u202e\x00")
HOSTILE = st.text(st.one_of(SIGNS, st.characters(exclude_categories=["Cs"])), max_size=120)
HEADING = re.compile(r"^#{1,6} ")
FENCE = re.compile(r"^(`{3,})\w*$")


def outside(page: str) -> list[str]:
    """The lines that no fence holds, as CommonMark reads them. Every fence is closed."""
    lines, fence = [], ""
    for line in page.split("\n"):
        if fence:
            fence = "" if re.fullmatch(rf" {{0,3}}`{{{len(fence)},}}\s*", line) else fence
        elif (opened := FENCE.match(line)) is not None:
            fence = opened[1]
        else:
            lines.append(line)
    assert not fence
    return lines


def with_text(text: str) -> Review:
    """A review in which everything that others write is that text."""
    return review(
        file=text, name=text, title=text, before=text, after=f"{text}\nmore",
        guards=(Guard(text, text), Guard("", text)), why=(text,), kernel=evolve(
            kernel(), bottleneck=text, verifier=text, chip=text, strategy=(text,),
            gates=(Gate("audit", "passed", text),), inputs=(ReviewedInput(text, "float16", (8,)),),
        ),
        files=(File("op_kernel.cpp", "", f"y{text}"), File("tiling.h", text, f"x{text}")),
        parts=(InnerKernel("r", 3, text),),
    )  # fmt: skip


SECTIONS = [line for line in outside(review_page(with_text("x"))) if HEADING.match(line)]


@given(HOSTILE)
@example("```\n# heading\n```cpp")
@example("](command:evil) [x](javascript:alert(1)) <img src=x> ![a](b)")
@example("| a | b |\n|---|---|")
@example("# not a heading")
@example("````")
@example("`[")
def test_what_others_wrote_begins_no_markup(text: str) -> None:
    lines = outside(review_page(with_text(text)))
    headings = [line for line in lines if HEADING.match(line)]
    assert headings[1:] == SECTIONS[1:]
    for line in lines:
        bare = re.sub(r"\\.|`[^`]*`", "", line)  # without what is escaped and code spans, as they come
        assert not re.search(r"[\[\]<>*]", bare), line
        assert all(char.isprintable() for char in line)
        if line.startswith("|"):
            assert bare.count("|") == 3, line


@given(HOSTILE)
def test_a_list_of_variants_is_as_safe(text: str) -> None:
    hostile = evolve(kernel(), bottleneck=text, verifier=text, chip=text, strategy=(text,))
    lines = outside(
        variants_page(
            text,
            [
                Variant(
                    hostile,
                    1,
                    (ScheduleChange(text, text, text, text),),
                    installed=True,
                    rejected=False,
                    best=True,
                )
            ],
        )
    )
    assert sum(bool(HEADING.match(line)) for line in lines) == 1
    rows = [line for line in lines if line.startswith("|")]
    assert all(re.sub(r"\\.", "", line).count("|") == 7 for line in rows)


@given(HOSTILE, st.sampled_from(["diff", "md"]))
def test_names_of_files_stay_in_their_folder(text: str, ending: str) -> None:
    name = fit(f"{text}.{ending}")
    assert "/" not in name and "\\" not in name and "\0" not in name
    assert name.endswith(f".{ending}") and len(name) < 120
    assert Path("/cache", name).parent == Path("/cache")
    assert not name.startswith("..")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\n", "b\n", ["-a", "+b"]),
        ("a", "a\n", ["-a", "\\ No newline at end of file", "+a"]),
        ("", "a\n", ["+a"]),
        ("a\n", "a\n", []),
    ],
)
def test_a_diff_is_of_one_file(before: str, after: str, shown: list[str]) -> None:
    lines = diff_of(File("tiling.h", before, after), "accepted", "offered").splitlines()
    assert lines[3:] == shown
    assert not shown or lines[:2] == ["--- tiling.h (accepted)", "+++ tiling.h (offered)"]


def test_a_huge_file_is_cut() -> None:
    page = review_page(review(files=(File("op_kernel.cpp", "", "line\n" * 100_000),)))
    assert page.count("\n") < MOST_LINES + 100
    assert "further lines)" in page


def test_every_figure_has_its_word() -> None:
    page = review_page(review(installed=evolve(kernel(), source_id="old")))
    figures = re.findall(r"[\d.,]+ µs(?: (\w+))?", page)
    assert figures and set(figures) <= {"estimated", "measured"}


def test_what_is_called_already_says_so() -> None:
    text = "import torch\n"
    assert "calls this kernel already" in review_page(review(before=text, after=text))
