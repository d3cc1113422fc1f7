"""The audit of Triton's texts: every construct beyond its lists is refused, and what kernels are made of
passes."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.targets.triton.audit import allowed, audit
from evokernel_core.targets.triton.kernels.helpers import HELPERS
from evokernel_core.targets.triton.kernels.text import kernel_text
from evokernel_core.targets.triton.launch import LaunchRecord, Scratch, View, read_launches
from evokernel_core.targets.triton.source import HEADER, KERNEL, LAUNCH, triton_source
from tests.targets.triton.written import (
    PARTIAL,
    SOFTMAX,
    SOFTMAX_LAUNCH,
    library_source,
    library_task,
    product_source,
    product_task,
    softmax_source,
    softmax_task,
    total_source,
    total_task,
)

RECORD = LaunchRecord(("x",), ("output",), (SOFTMAX_LAUNCH,), ("s0", "s1"))


def _audited(text: str, header: str = HEADER) -> GateResult:
    return audit(softmax_task(), triton_source(f"{header}{text}", RECORD, Strategy("model")))


def _with_line(line: str) -> str:
    """The softmax with one more statement in its body."""
    return SOFTMAX.replace("    powers =", f"    {line}\n    powers =")


def test_what_people_write_passes() -> None:
    kernels = [(softmax_task(), softmax_source()), (total_task(), total_source())]
    kernels += [(product_task(), product_source()), (library_task(), library_source())]
    for task, source in kernels:
        result = audit(task, source)
        assert result.status is GateStatus.PASSED, result.feedback


def test_what_the_author_prints_passes() -> None:
    head = kernel_text("Softmax of rows.", HELPERS, [], load_gpu())
    text = f"{head}\n\n{SOFTMAX.strip()}\n"
    result = audit(softmax_task(), triton_source(text, RECORD, Strategy("fused")))
    assert result.status is GateStatus.PASSED, result.feedback


@pytest.mark.parametrize(
    "line",
    [
        "half: tl.constexpr = BLOCK // 2",
        "other, more = tl.split(tl.reshape(values, [BLOCK // 2, 2]))",
        "best = tl.maximum(values, 0.0, propagate_nan=tl.PropagateNan.ALL)",
        "wide = values.to(tl.float64).to(x.dtype.element_ty)",
        "turned = values[None, :].T",
        "extra = tl.load(x + column, mask=inside, other=0.0, eviction_policy='evict_last')",
        "small = min(columns, 4)",
        "values = values if columns > 3 else -values",
        "values += ~(column > 3) & (row != 2)",
        "for place in tl.static_range(3): pass",
        "if columns is not None: pass",
        "tl.debug_barrier()",
        "input = values",
    ],
)
def test_ordinary_lines_pass(line: str) -> None:
    result = _audited(_with_line(line))
    assert result.status is GateStatus.PASSED, result.feedback


FORBIDDEN_LINES = [
    *("import os", "from os import path", "global row", "nonlocal row", "assert row", "raise row", "del row"),
    *("try:\n        pass\n    except:\n        pass", "with x: pass", "class A: pass", "return lambda: row"),
    *("def inner(): pass", "yield row", "a = await row", "async def f(): pass", "a = [i for i in range(3)]"),
    *(
        "a = {1: 2}",
        "a = {1, 2}",
        "a = (b := 3)",
        "a = f'{row}'",
        "a = 'text'",
        "a = b'bytes'",
        "a = ...",
        "a = 1j",
    ),
    *(
        "tl.device_print('x', row)",
        "tl.device_assert(row)",
        "tl.static_assert(BLOCK > 3)",
        "tl.assume(row > 3)",
    ),
    *(
        "a = tl.inline_asm_elementwise('', '', [row], tl.int32, True, 1)",
        "a = tl.extra.cuda.libdevice.exp(row)",
    ),
    *("a = tl.core.load(x)", "a = tl.math.core", "a = tl.standard.sum(row)", "a = tl.rand(1, column)"),
    *("a = tl.make_block_ptr(x, [1], [1], [0], [1], [0])", "a = tl.__name__", "a = tl.semantic"),
    *("a = triton.next_power_of_2(3)", "a = triton.runtime", "a = tl", "a = triton", "a = row.__class__"),
    *(
        "a = row.handle",
        "a = row.handle.data",
        "a = x.data_ptr()",
        "a = softmax_rows.fn",
        "row.x = 3",
        "row[0] = 3",
    ),
    *(
        "a = eval('1')",
        "a = exec",
        "a = getattr(row, 'x')",
        "a = open",
        "a = print(row)",
        "a = compile",
        "a = vars()",
    ),
    *(
        "a = __import__",
        "a = __builtins__",
        "a = unknown",
        "a = type(row)",
        "a = isinstance(row, int)",
        "a = str(1)",
    ),
    *("tl = row", "range = row", "softmax_rows = row", "triton = row", "float = row", "__a = 1"),
    *(
        "a = b = row",
        "a, *b = row",
        "a = tl.cat(*row)",
        "a = tl.cat(**row)",
        "(a, (b, c)) = row",
        "a: int = 3",
    ),
    *("a: tl.constexpr", "a = 2 ** 100", "a = row @ row", "a = 3 in row", "a = row[0:1]", "a = row[::2]"),
    *(
        "for a in row: pass",
        "for a in range(3): break",
        "for a in range(3):\n        pass\n    else:\n        pass",
    ),
    *(
        "while row: continue",
        "for a, b in range(3): pass",
        "match row:\n        case 1: pass",
        "a = float('0x1')",
    ),
    *("a = tl.dot(row, row, input_precision='bf16x9')", "a = tl.load(x, name='evict_last')", "row", "'doc'"),
    *(
        f"a = {1 << 70}",
        "a = tl.where(row, 'inf', 1)",
        "a = (lambda: 1)()",
        "a = row.to(tl.float32).__dict__",
    ),
    *(
        "a = tl.PropagateNan.__members__",
        "a = tl.PropagateNan",
        "a = (row if row else tl.load).fn",
        "a = row()()",
    ),
    *("a = float('inf').fromhex('1')", "a = (1).from_bytes", "a = row.shape.index", "a = \u017f_x"),
]


@pytest.mark.parametrize("line", FORBIDDEN_LINES)
def test_every_other_construct_is_refused(line: str) -> None:
    result = _audited(_with_line(line))
    assert (result.gate, result.status) in (
        (GateName.AUDIT, GateStatus.FAILED),
        (GateName.COMPILE, GateStatus.FAILED),
    )
    assert result.code.startswith("audit-") or result.code == "syntax"
    assert result.feedback.startswith(KERNEL)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import os\n" + SOFTMAX, "audit-import"),
        ("x = 1\n" + SOFTMAX, "audit-top"),
        ("if True: pass\n" + SOFTMAX, "audit-top"),
        ("'text'\n" + SOFTMAX, "audit-top"),
        ("class A: pass\n" + SOFTMAX, "audit-top"),
        (SOFTMAX.replace("@triton.jit\n", ""), "audit-decorator"),
        (SOFTMAX.replace("triton.jit", "triton.jit(debug=True)"), "audit-decorator"),
        (SOFTMAX.replace("@triton.jit", "@triton.autotune([], key=[])\n@triton.jit"), "audit-decorator"),
        (SOFTMAX.replace("def softmax", "async def softmax"), "audit-top"),
        (SOFTMAX + SOFTMAX, "audit-name"),
        (SOFTMAX.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr = print"), "audit-default"),
        (SOFTMAX.replace("BLOCK: tl.constexpr", "*, BLOCK: tl.constexpr"), "audit-parameter"),
        (SOFTMAX.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, *rest"), "audit-parameter"),
        (SOFTMAX.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, **rest"), "audit-parameter"),
        (SOFTMAX.replace("(x,", "(x, /,"), "audit-parameter"),
        (SOFTMAX.replace("(x,", "(x: print(1),"), "audit-annotation"),
        (SOFTMAX.replace("tl.constexpr):", "tl.constexpr) -> int:"), "audit-annotation"),
        (SOFTMAX.replace("rows,", "range,"), "audit-name"),
        (SOFTMAX.replace("tl.exp(", "softmax_rows("), "audit-recursion"),
        (SOFTMAX + "\n# \u202e", "audit-text"),
        (SOFTMAX + "\n\x0c", "audit-text"),
        (SOFTMAX + "#" * allowed.LONGEST, "audit-size"),
        (_with_line("a = " + "(" * 90 + "1" + ")" * 90), "audit-size"),
        (_with_line("a = " + "-" * 3000 + "1"), "audit-size"),
        (_with_line("a = 1" + " + 1" * 5000), "audit-size"),
        (SOFTMAX.replace("tl.exp(", "tl.exp(("), "syntax"),
        (SOFTMAX + "\0", "audit-text"),
    ],
)  # fmt: skip
def test_a_file_that_is_more_than_jit_functions_is_refused(text: str, code: str) -> None:
    assert _audited(text).code == code


@pytest.mark.parametrize(
    "header",
    [
        "",
        "import triton\n",
        HEADER.replace("as tl", "as language"),
        "import triton, os\nimport triton.language as tl\n",
        "from triton import *\nimport triton.language as tl\n",
        "import triton.language as tl\nimport triton\n",
        "# -*- coding: utf-7 -*-\n" + HEADER,
        '"""Text."""\nimport numpy\n' + HEADER,
    ],
)
def test_the_header_is_ours(header: str) -> None:
    assert _audited(SOFTMAX, header).code in ("audit-import", "audit-text")


def test_a_docstring_may_stand_first() -> None:
    assert _audited(SOFTMAX, '"""What it computes."""\n\n' + HEADER).status is GateStatus.PASSED


LAUNCH_ROWS = [
    ({"inputs": ("y",)}, "the task has"),
    ({"inputs": ("x", "z")}, "the task has"),
    ({"outputs": ("result",)}, "the task has"),
    ({"symbols": ("s0",)}, "the task has"),
    ({"symbols": ("s1", "s0")}, "the task has"),
    ({"scalars": ("eps",)}, "the task has"),
    ({"launches": ()}, "launches no kernel"),
    ({"requires": ("s0 < 2",)}, "declines the sizes"),
    ({"requires": ("s7 < 2",)}, "no number over the sizes"),
    ({"scratch": (Scratch("other", "float8", "s0"),)}, "has the dtype 'float8'"),
    ({"scratch": (Scratch("other", "float32", "s0 - 1000"),)}, "fewer than no elements"),
    ({"scratch": (Scratch("other", "float32", "s9"),)}, "no number over the sizes"),
]
CHANGED_LAUNCHES = [
    ({"kernel": "other"}, "no function of kernel.py"),
    ({"kernel": "tl"}, "no function of kernel.py"),
    ({"grid": ("s9",)}, "no number over the sizes"),
    ({"grid": ()}, "no device launches that"),
    ({"grid": ("s0", "1", "100000")}, "no device launches that"),
    ({"arguments": ("x", "output", "s0")}, "takes the arguments"),
    ({"arguments": ("x", "output", "s0", "s1", "s1")}, "takes the arguments"),
    ({"arguments": ("x", "output", "s0", "s9")}, "no number over the sizes"),
    ({"arguments": ("x", "x", "s0", "s1")}, "No launch has the output"),
    ({"constants": {}}, "has the constants"),
    ({"constants": {"BLOCK": "4", "WIDTH": "4"}}, "has the constants"),
    ({"constants": {"columns": "4"}}, "has the constants"),
    ({"constants": {"BLOCK": "x"}}, "no number over the sizes"),
    *(({"warps": warps}, "warps and") for warps in (0, 3, 64, -1)),
    *(({"stages": stages}, "stages; give") for stages in (0, 9)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "words"),
    [
        *((evolve(RECORD, **changed), words) for changed, words in LAUNCH_ROWS),
        *(
            (evolve(RECORD, launches=(evolve(SOFTMAX_LAUNCH, **changed),)), words)
            for changed, words in CHANGED_LAUNCHES
        ),
    ],
)
def test_a_record_that_does_not_fit_is_refused(record: LaunchRecord, words: str) -> None:
    result = audit(softmax_task(), triton_source(HEADER + SOFTMAX, record, Strategy("model")))
    assert result.status is GateStatus.FAILED and result.code == "audit-launch"
    assert words in result.feedback and result.feedback.startswith(LAUNCH)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"op": "aten.bmm.default"}, "none of the task's operations"),
        ({"op": "aten.relu.default"}, "none of the task's operations"),
        ({"op": "os.system"}, "none of the task's operations"),
        ({"result": "a"}, "a tensor that the record does not have"),
        ({"result": "other"}, "a tensor that the record does not have"),
        ({"arguments": (View("other", ("s0",), ("1",)),)}, "a tensor that the record does not have"),
        ({"arguments": (View("a", ("s0",), ("s9",)),)}, "no number over the sizes"),
        ({"arguments": (View("a", ("s0",), ("1", "1")),)}, "no shape of its strides"),
        ({"arguments": (View("a", ("s0",), ("0 - 1",)),)}, "no shape of its strides"),
        ({"shape": ("s9",)}, "no number over the sizes"),
    ],
)
def test_a_library_call_that_does_not_fit_is_refused(changed: dict[str, Any], words: str) -> None:
    record = read_launches(library_source().files[LAUNCH])
    call, launch = record.launches
    record = evolve(record, launches=(evolve(call, **changed), launch))
    result = audit(library_task(), triton_source(library_source().files[KERNEL], record, Strategy("model")))
    assert result.code == "audit-launch" and words in result.feedback


def test_what_is_no_record_is_refused() -> None:
    source = KernelSource("triton", {KERNEL: HEADER + SOFTMAX, LAUNCH: "{}"}, Strategy("model"))
    assert audit(softmax_task(), source).code == "audit-launch"


def test_scratch_may_have_any_dtype_of_the_target() -> None:
    record = evolve(RECORD, scratch=(evolve(PARTIAL, dtype="bfloat16"),))
    result = audit(softmax_task(), triton_source(HEADER + SOFTMAX, record, Strategy("model")))
    assert result.status is GateStatus.PASSED
