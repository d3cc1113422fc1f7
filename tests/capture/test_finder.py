"""The finder: which definitions hold tensor code, found incrementally."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evokernel_core.capture.annotation import TensorShape, parse_annotation
from evokernel_core.capture.finder import Document, find, imports_torch
from evokernel_core.capture.text import text_at
from evokernel_core.domain.errors import ShapesNeeded

MODEL = dedent('''
    """Docstring."""
    import torch
    import torch.nn as nn
    from torch.nn import functional as F


    # evokernel: x=f16[32,1024]
    @torch.compile
    class Block(nn.Module):
        def forward(self, x):
            return F.silu(x)

        class Inner(nn.Module):
            def forward(self, x):
                return x


    def loss(a, b):  # evokernel: a=f32[8], b=f32[8]
        return (a - b).abs()


    def helper(größe):
        return größe * 2


    try:
        def guarded(x):
            # evokernel: x=f32[4]
            return torch.relu(x)
    except ImportError:
        pass


    def get_inputs():
        return [torch.rand(4)]
''').lstrip()


def names(text: str) -> list[str]:
    return [item.qualname for item in find(Document(text))]


def test_definitions_with_tensor_code_are_found() -> None:
    found = {item.qualname: item for item in find(Document(MODEL))}
    assert list(found) == ["Block", "Block.Inner", "loss", "guarded"]
    assert found["Block"].kind == "class"
    assert found["Block"].annotation == "x=f16[32,1024]"
    assert found["loss"].annotation == "a=f32[8], b=f32[8]"
    assert found["guarded"].annotation == "x=f32[4]"
    assert all(item.has_inputs for item in found.values())
    assert text_at(MODEL, found["Block"].span).startswith("@torch.compile\nclass Block")
    assert text_at(MODEL, found["guarded"].name_span) == "guarded"


def test_columns_are_characters() -> None:
    text = 'import torch\nif "größe": \n    def ä(x): return torch.relu(x)\n'
    (found,) = find(Document(text))
    assert text_at(text, found.name_span) == "ä"
    assert text_at(text, found.span) == "def ä(x): return torch.relu(x)"


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("import os, torch.nn as n, sys", "n.functional.relu(x)"),
        ("import torch.nn.functional", "torch.nn.functional.relu(x)"),
        ("from torch.nn.functional import (\n    silu,  # one\n    relu as r,\n)", "r(x)"),
        ("from torch import relu, exp", "exp(x)"),
    ],
)
def test_names_that_imports_bind(imports: str, use: str) -> None:
    assert names(f"{imports}\ndef f(x):\n    return {use}\n") == ["f"]
    assert names(f"{imports}\ndef f(x):\n    return other(x)\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch", True),
        ("  import torch.nn as nn", True),
        ("from torch.nn import functional", True),
        ("import os, torch as t", True),
        ("import torchvision", False),
        ("import os, torchvision", False),
        ("x = 'import torch'", False),
        ("# torch", False),
        ("", False),
    ],
)
def test_imports_torch(text: str, expected: bool) -> None:
    assert imports_torch(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ndef f(x:\n    return torch.relu(x)\n",
        "import torch\nclass A(\n",
        "import torch\ndef f(x):\n    return torch.relu(x\n\n\ndef g(x):\n    return torch.relu(x)\n",
        "import torch\n\t\x0c\0def",
        "import torch\r\ndef f(x):\r    return torch.relu(x)\r\n",
    ],
)
def test_broken_text_never_raises(text: str) -> None:
    find(Document(text))


def test_a_syntax_error_hides_only_its_surroundings() -> None:
    broken = MODEL.replace("return (a - b).abs()", "return (a - b")
    assert "Block" in names(broken)


EDITS = st.tuples(
    st.integers(0, 10_000),
    st.integers(0, 12),
    st.sampled_from(
        ["", "x", "\n", "    ", "(", ")", "'", '"""', "é", "𝛼", "\r\n", "#", ":", "\t",
         "def f(x):\n    return torch.relu(x)\n", "# evokernel: x=f32[2]\n",
         "class A(nn.Module):\n    def forward(self): pass\n"]
    ),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(EDITS, max_size=12))
@example([(272, 5, '"""'), (1458, 12, '"""')])
def test_incremental_equals_from_scratch(edits: list[tuple[int, int, str]]) -> None:
    """After any edits the text is right, and so are the definitions."""
    document, text = Document(MODEL), MODEL
    for at, length, new in edits:
        start = at % (len(text) + 1)
        end = min(len(text), start + length)
        text = text[:start] + new + text[end:]
        document.edit(start, end, new)
        fresh = Document(text)
        assert document.text == text
        assert document.source == fresh.source
        assert find(document) == find(fresh)


@pytest.mark.parametrize("name", ["transformer_block.py", "cnn_head.py", "training_loss.py"])
def test_examples_are_found(name: str) -> None:
    text = (Path(__file__).parents[2] / "examples" / name).read_text()
    assert imports_torch(text)
    assert find(Document(text))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("x=f16[32,1024]", {"x": TensorShape((32, 1024), "float16")}),
        ("x = bf16 [ 2, 3 ], s=3.14", {"x": TensorShape((2, 3), "bfloat16"), "s": 3.14}),
        ("x=float32[], flag=True", {"x": TensorShape((), "float32"), "flag": True}),
        ("x=i64[1_000], shape=(2, 3), mode='a,b'", {
            "x": TensorShape((1000,), "int64"), "shape": (2, 3), "mode": "a,b"}),
        ("x=bool[4], none=None,", {"x": TensorShape((4,), "bool"), "none": None}),
    ],
)  # fmt: skip
def test_annotations_parse(values: str, expected: dict[str, object]) -> None:
    assert parse_annotation(values) == expected


@pytest.mark.parametrize("values", ["x", "x=", "x=f16[32", "x=f99[3]", "x=f16[-1]", "3=f16[1]"])
def test_malformed_annotations_say_where(values: str) -> None:
    with pytest.raises(ShapesNeeded, match="does not parse at"):
        parse_annotation(values)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ("a=f16[2,3] b=f16[3,4]", "no comma before 'b=f16[3,4]'"),
        ("a=f16[2] b=f16[3], c=2", "no comma before 'b=f16[3]'"),
        ("a=2 b=f16[3,4]", "no comma before 'b=f16[3,4]'"),
        ("x=f16[4], a=0.5 flag=True", "no comma before 'flag=True'"),
        ("y=i64[2048]<5000", "'<5000' behind y=i64[2048]"),
        ("x=f16[4], y=i64[2048] in [0, 5000)", "'in [0' behind y=i64[2048]"),
        ("y=i64[2048]!, z=f32[2]", "'!' behind y=i64[2048]"),
    ],
)
def test_a_comment_that_says_too_much_names_the_part(values: str, part: str) -> None:
    with pytest.raises(ShapesNeeded) as raised:
        parse_annotation(values)
    assert part in str(raised.value)
    assert str(raised.value).endswith(".")


def test_long_runs_of_comments_change_nothing() -> None:
    """tree-sitter needs the square of their number: they are blanked for it, but not near a definition."""
    comments = "# note\n\n" * 400 + "    # more\n" * 400
    text = (
        f"import torch\n{comments}S = \"\"\"\n{'# in a string' * 3}\n" + "# in a string\n" * 300 + '# """\n'
        + comments + "# evokernel: x=f32[4]\ndef f(x):\n    return torch.relu(x)\n" + comments
    )  # fmt: skip
    document = Document(text)
    (found,) = find(document)
    assert (found.qualname, found.annotation) == ("f", "x=f32[4]")
    assert found.span.line == text[: text.index("def f")].count("\n") + 1
    assert document.source == text.encode()
    assert not document.tree.root_node.has_error
