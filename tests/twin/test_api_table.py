"""The table of the interface: its data, what is made of it, and that what the author emits has rows."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from evokernel_core.hardware.ascend.api import api_row, api_rows, most_of, named, rows
from evokernel_core.hardware.ascend.api.header import api_header
from evokernel_core.targets.ascendc.knowledge.facts import call_lines, limit_lines

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import api_table as check  # noqa: E402

AUTHOR = ROOT / "evokernel_core" / "targets" / "ascendc"
ROW = """[[api]]
name = "Add"
page = "Add.md"
pipe = "V"
types = ["half", "float <- half"]
limits = { repeatTime = [0, 255] }
signatures = ["template <typename T> void Add(const LocalTensor<T>& dst, const int32_t& count)"]
"""
PAGE = """## 产品支持情况
<!-- npu="910b" id1 -->
- Atlas A2 训练系列产品/Atlas A2 推理系列产品：支持
<!-- end id1 -->
## 函数原型
```cpp
template <typename T>
__aicore__ inline void Add(const LocalTensor<T> &dst, const int32_t &count)
```
## 数据类型
half、float
<!-- npu="950" id2 -->
int8_t
<!-- end id2 -->
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts one file of rows in the table's place and reads it."""

    def read(text: str):
        (tmp_path / "rows.toml").write_text(text)
        monkeypatch.setattr(rows, "FOLDER", tmp_path)
        return rows.api_rows.__wrapped__()

    return read


def test_a_row_is_read(table) -> None:
    (row,) = table(ROW)
    assert (row.key, row.limit("repeatTime").high) == ("Add", 255)
    assert [(rule.dst, rule.sources) for rule in row.types] == [("half", ()), ("float", ("half",))]


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        ('pipe = "V"', 'pipe = "VECTOR"'),
        ('"float <- half"', '"float from half"'),
        ('"float <- half"', '"float <- fp16"'),
        ('"float <- half"', '"float <- half : CAST_NONE"'),
        ("[0, 255]", "[255, 0]"),
        ('pipe = "V"', 'pipe = "V"\ncolour = "red"'),
        ('pipe = "V"', 'pipe = "V"\ncost = "cheap"'),
        ('pipe = "V"', 'pipe = "V"\noverlap = "maybe"'),
    ],
)
def test_wrong_data_is_refused(table, was: str, is_now: str) -> None:
    assert was in ROW
    with pytest.raises(rows.TableError):
        table(ROW.replace(was, is_now))


def test_a_key_stands_once(table) -> None:
    with pytest.raises(rows.TableError, match="Add"):
        table(ROW + ROW)


def test_asking_for_what_the_table_has_not_is_an_error() -> None:
    with pytest.raises(rows.TableError):
        api_row("AddTwice")
    with pytest.raises(rows.TableError):
        most_of("Add", "patience")
    assert [row.key for row in named("WholeReduceSum")] == ["ReduceRepeat"]
    assert named("AddTwice") == ()


def test_a_row_has_its_place_in_the_header() -> None:
    text = api_header()
    assert "X(FusedMulAddRelu, MulAddRelu)" in text  # a former name gets overloads of its own
    for row in api_rows():
        assert f"    {row.key}," in text
    assert text == api_header(tuple(api_rows()))


def test_a_pattern_gives_what_a_row_does_not_state() -> None:
    sub, shift = api_row("Sub"), api_row("ShiftLeft")
    assert sub.signatures[0].startswith("template <typename T> void Sub(")
    assert (sub.overlap, api_row("Div").overlap, shift.sources) == ("accumulates", "same", 1)


@pytest.mark.parametrize("row", api_rows(), ids=lambda row: row.key)
def test_cards_can_say_what_a_row_is(row) -> None:
    (line,) = call_lines([row.key])
    assert row.name in line and all(name in line for name in row.former)
    told = "".join(limit_lines([row.key]))
    assert all(
        re.search(rf"\b{re.escape(item.parameter)}( [\w*]+)* {item.low}\.\.{item.high}", told)
        for item in row.limits
    )


def literals(path: Path) -> str:
    """The strings of a module: what it may put into a kernel, and the methods that it defines there."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "method"
    ]
    given = (item.value for call in calls for item in call.args if isinstance(item, ast.Constant))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return ";\n".join([*found, *(f"void {name}(" for name in given if str(name).isidentifier())])


def test_what_the_author_emits_has_rows() -> None:
    texts = [path.read_text() for path in (*AUTHOR.rglob("*.jinja"), *(ROOT / "docs").rglob("*.cpp"))]
    text = "\n".join([*texts, *(literals(path) for path in (AUTHOR / "kernels").rglob("*.py"))])
    assert check.unlisted_calls(text) == set()
    assert {"DataCopyPad", "Mmad", "WholeReduceMax", "TransDataTo5HD"} <= check.interface_names()
    assert check.unlisted_calls("Gather(a, b); SoftMax<float>(a, b);") == {"SoftMax"}


@pytest.mark.parametrize(
    ("was", "is_now", "said"),
    [
        ("", "", ""),
        ("count)", "total)", "the page has no"),
        ("half、", "", "does not name half"),
        ("：支持", "：不支持", "does not say"),
        ('npu="910b" id1', 'npu="950" id1', "does not say"),
    ],
)
def test_the_documentation_bears_a_row_out(table, tmp_path: Path, was: str, is_now: str, said: str) -> None:
    (tmp_path / "Add.md").write_text(PAGE.replace(was, is_now) if was else PAGE)
    found = list(check.differences(table(ROW)[0], tmp_path))
    assert bool(found) == bool(said) and all(said in text for text in found)
