"""What neutral code reads in texts of kernels in Triton: which are the same code, and their numbers."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.synthesis.code import code_id
from evokernel_core.targets.triton.language import LANGUAGE
from evokernel_core.verifier.gates.latency import merges

TEXT = """\
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # where
    if n > 4:
        at = at // 2
    tl.store(y + at, tl.load(x + at, at < n), at < n)
"""
RECORD = '{"inputs": ["x"], "launches": [{"kernel": "add", "grid": ["cdiv(n, 128)"]}]}'


def _id(text: str = TEXT, record: str = RECORD) -> str:
    return code_id(KernelSource("triton", {"kernel.py": text, "launch.json": record}, Strategy("model")))


SAME = {
    "a comment": TEXT.replace("  # where", "  # elsewhere"),
    "no comment": TEXT.replace("  # where", ""),
    "a line of a comment": TEXT.replace("    if", "  # so\n    if"),
    "spaces": TEXT.replace("at // 2", "at  //  2"),
    "blank lines": TEXT.replace("\n\n\n", "\n"),
    "a call on two lines": TEXT.replace("tl.store(y + at, ", "tl.store(y + at,\n  "),
    "line ends": TEXT.replace("\n", "\r\n"),
}
OTHER = {
    "a divisor": TEXT.replace("// 2", "// 3"),
    "an indentation": TEXT.replace("    tl.store", "        tl.store"),
    "two statements": TEXT.replace("at = at // 2", "at\n        at = at // 2"),
    "a docstring": TEXT.replace("    at =", '    """x"""\n    at =', 1),
    "nothing": "",
}


@pytest.mark.parametrize("what", SAME)
def test_what_means_nothing_is_no_part_of_the_code(what: str) -> None:
    assert _id(SAME[what]) == _id()


def test_texts_that_compute_something_else_are_other_code() -> None:
    assert len({_id(), *map(_id, OTHER.values())}) == 1 + len(OTHER)
    assert _id(record=RECORD.replace("128", "256")) != _id() == _id(record=RECORD.replace('], "', '],\n "'))


@example("'\\\n1'")  # a string that ends a line later
@given(st.text(st.sampled_from("a1.\"'#\\\n ()=<_e+\t"), max_size=40))
def test_any_text_is_read_whole(text: str) -> None:
    for name in ("kernel.py", "launch.json"):
        tokens = LANGUAGE.tokens(name, text)
        assert all(1 <= token.line <= text.count("\n") + 1 for token in tokens)
        assert [token.line for token in tokens] == sorted(token.line for token in tokens)
    LANGUAGE.is_complete(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1_024", 1024), ("0x1F", 31), ("1e-5", 1e-5), ("2.", 2.0), ("0b11", 3), ("0xe", 14), ("1j", None)],
)
def test_literals_are_those_of_python(text: str, value: float | None) -> None:
    assert LANGUAGE.number(text) == value


def test_a_launch_takes_as_long_on_any_values() -> None:
    text = TEXT.replace("add", "GetMrgSortResult")
    assert not merges(KernelSource("triton", {"kernel.py": text, "launch.json": RECORD}, Strategy("model")))


def test_a_statement_ends_where_no_bracket_is_open() -> None:
    assert LANGUAGE.is_complete("x = f(a, b)") and not LANGUAGE.is_complete("x = f(a,")
