"""Each row of the table of the interface that the twin can break: its types, and its limits on both sides."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from evokernel_core.hardware.ascend.api import ApiRow, Limit, api_row, api_rows

TYPES = ("half", "float", "bfloat16_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t")
LANES = [row for row in api_rows() if row.lanes]
VECTOR = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufC;
    pipe.InitBuffer(bufA, 32768); pipe.InitBuffer(bufB, 32768); pipe.InitBuffer(bufC, 65536);
    LocalTensor<uint16_t> ra = bufA.Get<uint16_t>(), rb = bufB.Get<uint16_t>(), rc = bufC.Get<uint16_t>();
    Duplicate(ra, uint16_t(0), 16384); Duplicate(rb, uint16_t(0), 16384); Duplicate(rc, uint16_t(0), 32768);
    PipeBarrier<PIPE_ALL>();
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>(), c = bufC.Get<float>();
    LocalTensor<half> ha = bufA.Get<half>(), hc = bufC.Get<half>();
    LocalTensor<uint8_t> ua = bufA.Get<uint8_t>(), uc = bufC.Get<uint8_t>();
    LocalTensor<uint32_t> wb = bufB.Get<uint32_t>();
    LocalTensor<int8_t> bc = bufC.Get<int8_t>();
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0], 4096);
    z.SetGlobalBuffer((__gm__ float *)t[1], 4096);
    const int64_t value = tiling.size[1];
    uint64_t kept = 0;
    Nd2NzParams nz(1, 1, 16, 0, 16, 1, 1, 1);
    LocalTensor<half> l1{TPosition::A1, 0, 65536};
    SliceInfo slices[9] = {{0, 7, 0, 1, 8}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1},
                           {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}};
"""
CUBE = """
    GlobalTensor<half> x;
    GlobalTensor<float> z;
    x.SetGlobalBuffer((__gm__ half *)t[0]);
    z.SetGlobalBuffer((__gm__ float *)t[1]);
    LocalTensor<half> l1{TPosition::A1, 0, 65536}, l0a{TPosition::A2, 0, 16384}, l0b{TPosition::B2, 0, 16384};
    LocalTensor<int8_t> l1s{TPosition::B1, 0, 65536}, l0as{TPosition::A2, 0, 32768}, l0bs{TPosition::B2, 0, 32768};
    LocalTensor<float> l0c{TPosition::CO1, 0, 16384};
    LocalTensor<uint8_t> idx{TPosition::B1, 131072, 4096};
    const int64_t value = tiling.size[1];
    Nd2NzParams nz(1, 1, 16, 0, 16, 1, 1, 1);
    LoadData3DParamsV2<half> image;
    image.l1H = 1; image.l1W = 16; image.channelSize = 16; image.kExtension = 16; image.mExtension = 16;
    LoadData2DParams load; load.repeatTimes = 1;
    LoadData2dTransposeParams turned; turned.repeatTimes = 1;
    MmadParams product; product.m = product.n = product.k = 16;
    FixpipeParamsV220 out(16, 16, 16, 16, false);
"""
# key: {parameter: (code, statements)} on a vector core; `value` is what the parameter gets
ON_VECTOR = {
    "Cast": {"repeatTime": ("repeat-limit", "Cast(hc, a, RoundMode::CAST_RINT, uint64_t(8), value, {1, 1, 1, 1});")},
    "AddReluCast": {"repeatTime": ("repeat-limit", "AddReluCast(hc, a, a, uint64_t(8), value, {1, 1, 1, 1, 1, 1});")},
    "SubReluCast": {"repeatTime": ("repeat-limit", "SubReluCast(hc, a, a, uint64_t(8), value, {1, 1, 1, 1, 1, 1});")},
    "MulCast": {"repeatTime": ("repeat-limit", "MulCast(bc, ha, ha, uint64_t(8), value, {1, 1, 1, 1, 1, 1});")},
    "Duplicate": {
        "repeatTime": ("repeat-limit", "Duplicate(c, 0.0f, uint64_t(8), value, 1, 1);"),
        "dstBlockStride": ("stride-limit", "Duplicate(c, 0.0f, uint64_t(64), 1, value, 8);"),
    },
    "Brcb": {
        "repeatTime": ("repeat-limit", "Brcb(c, a, value, {1, 8});"),
        "dstBlkStride": ("stride-limit", "Brcb(c, a, 1, {static_cast<uint16_t>(value), 8});"),
    },
    "CreateVecIndex": {
        "repeatTime": ("repeat-limit", "CreateVecIndex(c, 0.0f, uint64_t(8), value, 1, 1);"),
        "dstBlkStride": ("stride-limit", "CreateVecIndex(c, 0.0f, uint64_t(64), 1, value, 8);"),
    },
    "Compare": {"repeatTime": ("repeat-limit", "Compare(uc, a, a, CMPMODE::LT, uint64_t(64), value, {1, 1, 1, 8, 1, 1});")},
    "Compares": {"repeatTime": ("repeat-limit", "Compares(uc, a, 0.0f, CMPMODE::LT, uint64_t(64), value, {1, 1, 8, 1});")},
    "Select": {
        "repeatTime": ("repeat-limit", "Select(c, ua, b, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, uint64_t(8), value, {1, 1, 1, 1, 1, 1});"),
        "dstBlkStride": ("stride-limit", "Select(c, ua, b, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, uint64_t(64), 1, {static_cast<uint8_t>(value), 1, 1, 8, 8, 8});"),
    },
    "Gather": {"repeatTime": ("repeat-limit", "Gather(c, a, wb, 0u, uint64_t(8), value, 1);")},
    "Gatherb": {"repeatTime": ("repeat-limit", "Gatherb(c.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), wb, value, {1, 8});")},
    "GatherMask": {"src1Pattern": ("mask-limit", "GatherMask(c, a, static_cast<uint8_t>(value), false, 0, {1, 1, 8, 0}, kept);")},
    "ReduceRepeat": {"repeatTime": ("repeat-limit", "ReduceRepeat<ReduceType::SUM>(c, a, 8, value, 1, 1, 1);")},
    "ReduceDataBlock": {"repeatTime": ("repeat-limit", "ReduceDataBlock<ReduceType::SUM>(c, a, 8, value, 1, 1, 1);")},
    "ReducePairElem": {"repeatTime": ("repeat-limit", "ReducePairElem<ReduceType::SUM>(c, a, 8, value, 1, 1, 1);")},
    "Sort32": {"repeatTime": ("repeat-limit", "Sort32(c, a, wb, value);")},
    "MrgSort": {"elementLengths": ("param-limit", "MrgSortSrcList<float> runs(a, b, a, b); uint16_t sizes[4] = {1, 1, 1, static_cast<uint16_t>(value)}; MrgSort(c, runs, MrgSort4Info(sizes, false, 3, 1));")},
    "TransposeImage": {
        "cSize": ("param-limit", "Transpose(hc, ha, uc[60000], TransposeParamsExt(1, value, 4, 4, TransposeType::TRANSPOSE_NCHW2NHWC));"),
        "hSize * wSize": ("param-limit", "Transpose(hc, ha, uc[60000], TransposeParamsExt(1, 1, 1, value, TransposeType::TRANSPOSE_NCHW2NHWC));"),
    },
    "Copy": {
        "repeatTime": ("repeat-limit", "Copy(c, a, uint64_t(8), value, {1, 1, 1, 1});"),
        "dstRepeatSize": ("param-limit", "Copy(c, a, uint64_t(8), 1, CopyRepeatParams(1, 1, value, 1));"),
        "srcRepeatSize": ("param-limit", "Copy(c, a, uint64_t(8), 1, CopyRepeatParams(1, 1, 1, value));"),
    },
    "DataCopyPadIn": {
        "blockCount": ("stride-limit", "DataCopyPad(c, x, DataCopyExtParams(value, 4, 0, 0, 0), {false, 0, 0, 0.0f});"),
        "blockLen": ("stride-limit", "DataCopyPad(uc, x.ReinterpretCast<uint8_t>(), DataCopyExtParams(1, value, 0, 0, 0), DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));"),
        "padding": ("stride-limit", "DataCopyPad(uc, x.ReinterpretCast<uint8_t>(), DataCopyExtParams(1, 32, 0, 0, 0), DataCopyPadExtParams<uint8_t>(true, value, 0, 0));"),
    },
    "DataCopyPadOut": {
        "blockCount": ("stride-limit", "DataCopyPad(z, c, DataCopyExtParams(value, 4, 0, 0, 0));"),
        "blockLen": ("stride-limit", "DataCopyPad(z.ReinterpretCast<uint8_t>(), uc, DataCopyExtParams(1, value, 0, 0, 0));"),
    },
    "DataCopyBlocksIn": {"blockCount": ("stride-limit", "DataCopy(c, x, DataCopyParams(value, 1, 0, 0));")},
    "DataCopyBlocksOut": {"blockCount": ("stride-limit", "DataCopy(z, c, DataCopyParams(value, 1, 0, 0));")},
    "DataCopyLocalBlocks": {"blockCount": ("stride-limit", "DataCopy(c, a, DataCopyParams(value, 1, 0, 0));")},
    "SetFlag": {"eventID": ("event-misuse", "SetFlag<HardEvent::V_S>(value); WaitFlag<HardEvent::V_S>(value);")},
    "WaitFlag": {"eventID": ("event-misuse", "SetFlag<HardEvent::V_S>(value); WaitFlag<HardEvent::V_S>(value);")},
    "DataCopyNz2Nd": {
        name: ("param-limit", f"Nz2NdParamsFull fractals(1, 16, 16, 1, 16, 16, 256); fractals.{name} = value; DataCopy(z, c, fractals);")
        for name in ("ndNum", "nValue", "dValue", "srcNdMatrixStride", "srcNStride")
    },
    "DataCopyNd2NzToUb": {
        name: ("param-limit", f"nz.{name} = value; DataCopy(c, x, nz);")
        for name in ("ndNum", "nValue", "dValue", "srcNdMatrixStride", "srcDValue", "dstNzC0Stride", "dstNzNStride")
    },
    "DataCopyNd2NzFromUb": {
        name: ("param-limit", f"{'nz.ndNum = 2; ' if name == 'dstNzMatrixStride' else ''}nz.{name} = value; DataCopy(l1, ha, nz);")
        for name in ("ndNum", "nValue", "dValue", "srcDValue", "dstNzC0Stride", "dstNzNStride")
    },
    "DataCopyPadToL1": {"ndNum": ("param-limit", "nz.ndNum = value; DataCopyPad(l1, ha, DataCopyExtParams(1, 32, 0, 0, 0), nz);")},
    "DataCopySliceIn": {"dimValue": ("param-limit", "DataCopy(c, x, slices, slices, value);")},
    "DataCopySliceOut": {"dimValue": ("param-limit", "DataCopy(z, c, slices, slices, value);")},
}  # fmt: skip
# The same on a cube core.
ON_CUBE = {
    "DataCopyNd2Nz": {
        name: ("param-limit", f"{'nz.ndNum = 2; ' if name == 'dstNzMatrixStride' else ''}nz.{name} = value; DataCopy(l1, x, nz);")
        for name in ("ndNum", "nValue", "dValue", "srcNdMatrixStride", "srcDValue", "dstNzC0Stride", "dstNzNStride", "dstNzMatrixStride")
    },
    "LoadData2D": {"repeatTimes": ("param-limit", "load.repeatTimes = value; LoadData(l0a, l1, load);")},
    "LoadData2DGlobal": {"repeatTimes": ("param-limit", "load.repeatTimes = value; LoadData(l1, x, load);")},
    "LoadDataWithTranspose": {"repeatTimes": ("param-limit", "turned.repeatTimes = value; LoadDataWithTranspose(l0b, l1, turned);")},
    "LoadDataWithSparse": {"repeatTimes": ("param-limit", "load.repeatTimes = value; LoadDataWithSparse(l0bs, l1s, idx, load);")},
    "LoadData3D": {
        name: ("param-limit", f"image.{name} = value; LoadData(l0a, l1, image);")
        for name in ("l1H", "l1W", "mStartPt", "strideW", "strideH", "dilationFilterW", "dilationFilterH")
    },
    "Mmad": {name: ("param-limit", f"product.{name} = value; Mmad(l0c, l0a, l0b, product);") for name in ("m", "n", "k")},
    "Fixpipe": {
        "nSize": ("param-limit", "out.nSize = value; Fixpipe(z, l0c, out);"),
        "mSize of ND": ("param-limit", "out.mSize = value; Fixpipe(z, l0c, out);"),
        "mSize": ("param-limit", "out.mSize = value; Fixpipe<float, float, CFG_NZ>(z, l0c, out);"),
        "ndNum": ("param-limit", "out.ndNum = value; Fixpipe(z, l0c, out);"),
        "srcNdStride": ("param-limit", "out.ndNum = 2; out.srcNdStride = value; Fixpipe(z, l0c, out);"),
        "dstNdStride": ("param-limit", "out.ndNum = 2; out.dstNdStride = value; Fixpipe(z, l0c, out);"),
    },
    "FixpipeToL1": {"nSize": ("param-limit", "out.quantPre = QuantMode_t::F322F16; out.nSize = value; Fixpipe<half, float, CFG_NZ>(l1, l0c, out);")},
    "DataCopyFromL0C": {"nSize": ("param-limit", "DataCopyCO12DstParams q; q.mSize = 16; q.srcStride = q.dstStride = 16; q.nSize = value; DataCopy(z, l0c, q);")},
    "DataCopyL0CToL1": {"nSize": ("param-limit", "DataCopyCO12DstParams q; q.mSize = 16; q.srcStride = q.dstStride = 16; q.quantPre = QuantMode_t::F322F16; q.nSize = value; DataCopy(l1, l0c, q);")},
    "DataCopyBlocksToL1": {"blockCount": ("stride-limit", "DataCopy(l1, x, DataCopyParams(value, 1, 0, 0));")},
    "DataCopyBlocksFromL1": {"blockCount": ("stride-limit", "DataCopy(x, l1, DataCopyParams(value, 1, 0, 0));")},
    "DataCopyBlocksUbToL1": {"blockCount": ("stride-limit", "LocalTensor<half> ub(TPosition::VECIN, 0, 1024); DataCopy(l1, ub, DataCopyParams(value, 1, 0, 0));")},
    "MmadWithSparse": {name: ("param-limit", f"product.{name} = value; MmadWithSparse(l0c.ReinterpretCast<int32_t>(), l0as, l0bs, product);") for name in ("m", "n", "k")},
    "SetFmatrix": {
        "l1H": ("param-limit", "SetFmatrix(value, 1, image.padList, FmatrixMode::FMATRIX_LEFT);"),
        "l1W": ("param-limit", "SetFmatrix(1, value, image.padList, FmatrixMode::FMATRIX_LEFT);"),
    },
    "SetFixpipeNz2ndFlag": {
        "ndNum": ("param-limit", "SetFixpipeNz2ndFlag(value, 1, 1);"),
        "srcNdStride": ("param-limit", "SetFixpipeNz2ndFlag(2, value, 1);"),
        "dstNdStride": ("param-limit", "SetFixpipeNz2ndFlag(2, 1, value);"),
    },
    "Fill": {
        name: ("param-limit", f"InitConstValueParams<half> fill(1, 1, 0, (half)0); fill.{name} = value; Fill(l1, fill);")
        for name in ("repeatTimes", "blockNum", "dstGap")
    },
    "SetLoadDataRepeat": {"repeatMode": ("param-limit", "LoadDataRepeatParam again; again.repeatMode = value; SetLoadDataRepeat(again);")},
}  # fmt: skip
MIXED = "    const int64_t value = tiling.size[1];\n"
ON_MIXED = {
    "CrossCoreSetFlag": {"flagId": ("event-misuse", "CrossCoreSetFlag<0, PIPE_MTE3>(value); CrossCoreWaitFlag(value % 16);")},
    "CrossCoreWaitFlag": {"flagId": ("event-misuse", "CrossCoreSetFlag<0, PIPE_MTE3>(value % 16); CrossCoreWaitFlag(value);")},
}  # fmt: skip
FORMS = {
    "binary": "{name}(d, a, b, uint64_t(8), value, BinaryRepeatParams(1, 1, 1, 1, 1, 1));",
    "unary": "{name}(d, a, uint64_t(8), value, UnaryRepeatParams(1, 1, 1, 1));",
    "scalar": "{name}(d, a, T(1), uint64_t(8), value, UnaryRepeatParams(1, 1, 1, 1));",
}
ZERO_STRIDES = {
    "binary": "{name}(d, a, b, uint64_t(128 / sizeof(T)), 1, BinaryRepeatParams(static_cast<uint8_t>(value), 1, 1, 8, 8, 8));",
    "unary": "{name}(d, a, uint64_t(128 / sizeof(T)), 1, UnaryRepeatParams(value, 1, 8, 8));",
    "scalar": "{name}(d, a, T(1), uint64_t(128 / sizeof(T)), 1, UnaryRepeatParams(value, 1, 8, 8));",
}
COUNTED = {
    "binary": "{name}(d, a, b, 16);",
    "unary": "{name}(d, a, 16);",
    "scalar": "{name}(d, a, T(1), 16);",
}
OWN_FORM = {"ShiftRight": "scalar", "Axpy": "scalar", "MulAddDst": "binary"}
"""The forms of lane instructions whose overloads are written by hand."""


def form_of(row: ApiRow) -> str:
    return row.form or OWN_FORM[row.key]


def typed(row: ApiRow, dtype: str, text: str) -> str:
    """A call of a lane instruction on tensors of one type."""
    shift = " T(1)" if row.name.startswith("Shift") else " T(1.0f)"
    statement = text.format(name=row.name).replace(" T(1)", shift)
    return f"using T = {dtype}; LocalTensor<T> d = bufC.Get<T>(), a = bufA.Get<T>(), b = bufB.Get<T>(); {statement}"


def limits_of_lanes() -> Iterator[tuple[ApiRow, Limit, str, str]]:
    """Limits that all element-wise instructions have: row, limit, the hazard's code and the statements."""
    for row in LANES:
        dtype, form = row.types[0].dst, form_of(row)
        yield row, row.limit("repeatTime"), "repeat-limit", typed(row, dtype, FORMS[form])
        yield row, row.limit("dstBlkStride"), "stride-limit", typed(row, dtype, ZERO_STRIDES[form])


def limits_in(table: dict[str, dict[str, tuple[str, str]]]) -> Iterator[tuple[ApiRow, Limit, str, str]]:
    for key, entries in table.items():
        for parameter, (code, text) in entries.items():
            yield api_row(key), api_row(key).limit(parameter), code, text


def sides(cases: list[tuple[ApiRow, Limit, str, str]]) -> list[tuple[int, int, int]]:
    """Number of the case, a value at its end, and one beyond it: above where the field holds that, else below."""
    found = []
    for number, (_, limit, _, _) in enumerate(cases):
        if limit.high not in _FIELD_ENDS:
            found.append((number, limit.high, limit.high + 1))
        if limit.low > 0:
            found.append((number, limit.low, limit.low - 1))
        if limit.parameter in _WIDER_FIELDS and limit.high in _FIELD_ENDS:
            found.append((number, limit.high, limit.high + 1))
    return found


_FIELD_ENDS = {255, 65535, 4294967295}
_WIDER_FIELDS = {"repeatTime", "repeatTimes", "dValue", "srcNdMatrixStride", "srcDValue", "mSize", "ndNum"}
"""Parameters that the twin takes in a wider type than the one that is published."""

KINDS = {"vector": (VECTOR, None), "cube": (CUBE, (1, 0, "false")), "mixed": (MIXED, (0, 1, "true"))}
"""What a kernel begins with, and its cores and whether its type is a mixed one."""
CASES = {
    "vector": [*limits_of_lanes(), *limits_in(ON_VECTOR)],
    "cube": list(limits_in(ON_CUBE)),
    "mixed": list(limits_in(ON_MIXED)),
}


def switched(statements: list[str]) -> str:
    cases = "".join(f"        case {i}: {{ {text} break; }}\n" for i, text in enumerate(statements))
    return f"    switch (tiling.size[0]) {{\n{cases}    }}\n    PipeBarrier<PIPE_ALL>();\n"


Case = tuple[ApiRow, Limit, str, str]


def breaks(ran, case: Case) -> bool:
    """Whether the run has the case's hazard; where many limits have one code, it is told by its sentence."""
    _, limit, code, _ = case
    said = f" {limit.parameter} of {limit.low} to {limit.high}," if code == "param-limit" else ""
    hazards = [hazard for hazard in ran.result.hazards if hazard.severity == "error"]
    return any(hazard.code == code and said in hazard.message for hazard in hazards)


@pytest.fixture(scope="module")
def runs(compile_kernel):
    """Runs a case of a kind of core with a value."""
    kernels = {
        kind: compile_kernel(setup + switched([text for *_, text in CASES[kind]]), sizes=2, kind=cores)
        for kind, (setup, cores) in KINDS.items()
    }
    x = np.zeros(65536, np.float16)
    return lambda kind, number, value: kernels[kind].run([x], [(4096, np.float32)], [number, value])


@pytest.mark.parametrize(
    ("kind", "number", "inside", "outside"),
    [(kind, *side) for kind in KINDS for side in sides(CASES[kind])],
    ids=str,
)
def test_a_limit_holds_on_both_sides(runs, kind: str, number: int, inside: int, outside: int) -> None:
    case = CASES[kind][number]
    name = f"{case[0].key}.{case[1].parameter}"
    assert not breaks(runs(kind, number, inside), case), name
    assert breaks(runs(kind, number, outside), case), name


@pytest.fixture(scope="module")
def on_types(compile_kernel):
    statements = [typed(row, dtype, COUNTED[form_of(row)]) for row in LANES for dtype in TYPES]
    kernel = compile_kernel(VECTOR + switched(statements), sizes=2)
    x = np.zeros(4096, np.float32)
    return lambda number: kernel.run([x], [(4096, np.float32)], [number, 0]).codes()


@pytest.mark.parametrize("row", LANES, ids=lambda row: row.key)
def test_an_instruction_takes_its_types_and_no_other(on_types, row: ApiRow) -> None:
    first = LANES.index(row) * len(TYPES)
    takes = {dtype for i, dtype in enumerate(TYPES) if "dtype-unsupported" not in on_types(first + i)}
    assert takes == {rule.dst for rule in row.types if not rule.sources}


OFFSETS = {"dstStride", "srcStride", "startIndex", "dstGap", "srcGap"}
"""What they lead to is checked as bounds."""
ONE_MATRIX = ("DataCopyNd2NzFromUb", "dstNzMatrixStride")
"""Not read where there is one matrix."""


def test_every_limit_is_tried_or_held_by_its_field() -> None:
    """What no kernel can break is what the published parameter's type cannot hold: 8, 16 or 32 bits."""
    tried = {(row.key, limit.parameter) for cases in CASES.values() for row, limit, _, _ in cases}
    left = [
        f"{row.key}.{limit.parameter}"
        for row in api_rows()
        for limit in row.limits
        if (row.key, limit.parameter) not in tried | {ONE_MATRIX}
        and limit.high not in _FIELD_ENDS
        and limit.parameter not in OFFSETS
    ]
    assert left == []
