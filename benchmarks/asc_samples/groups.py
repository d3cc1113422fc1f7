"""Which part of the interface a sample is about, by the identifiers that its sources use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

_SOURCES = ("*.asc", "*.cpp", "*.cc", "*.h", "*.hpp")


class Group(StrEnum):
    """The strongest that applies: Matmul object, basic cube, high-level, basic vector, no kernel launch."""

    VECTOR = "vector"
    CUBE = "cube-basic"
    MATMUL = "matmul-object"
    HIGH_LEVEL = "high-level"
    OTHER = "other"


_MATMUL = frozenset(
    ["REGIST_MATMUL_OBJ", "MatmulImpl", "BatchMatmul", "MultiCoreMatmulTiling", "MatmulApiTiling"]
)
_CUBE = frozenset(
    ["Mmad", "LoadData", "LoadDataWithTranspose", "LoadDataWithSparse", "Fixpipe", "Nd2NzParams", "Gemm"]
)
_HIGH_LEVEL_NAMES = (
    "Acos Acosh AdjustSoftMaxRes AntiQuantize Arange ArithProgression AscendAntiQuant AscendDequant "
    "AscendQuant Asin Asinh Atan Atanh BatchNorm BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BroadCast "
    "Broadcast Ceil Clamp ClampMax ClampMin Concat ConfusionTranspose Cos Cosh CumSum DeepNorm Dequantize "
    "Digamma DropOut Erf Erfc FasterGelu FasterGeluV2 Floor Fma Fmod Frac GeGLU Gelu GroupNorm Hypot "
    "IsFinite IsInf IsNan LayerNorm LayerNormGrad LayerNormGradBeta Lgamma Log Log10 Log2 LogSoftMax "
    "LogicalAnd LogicalNot LogicalOr LogicalXor Mean Normalize Pad PhiloxRandom Power Quantize ReGlu "
    "ReduceAll ReduceAny ReduceMean ReduceProd ReduceXorSum Rint RmsNorm Round SelectWithBytesMask "
    "Sigmoid Sign Silu SimpleSoftMax Sin SinCos Sinh SoftMax SoftmaxFlash SoftmaxFlashV2 SoftmaxFlashV3 "
    "SoftmaxGrad SoftmaxGradFront Sort Sum SwiGLU Swish Tan Tanh TopK TransData Trunc UnPad "
    "WelfordFinalize WelfordUpdate Where Xor"
)
_HIGH_LEVEL = frozenset(_HIGH_LEVEL_NAMES.split())
_LAUNCH = frozenset(("<<<", "ACLRT_LAUNCH_KERNEL"))


def group_of(folder: Path) -> Group:
    """The group of the sample in ``folder``."""
    text = "\n".join(path.read_text(errors="replace") for path in _source_files(folder))
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    words = set(re.findall(r"[A-Za-z_]\w*|<<<", code))
    called = set(re.findall(r"\b(?:AscendC::)?([A-Z]\w*)\s*(?:<[^;(){}]*>)?\s*\(", code))
    if words & _MATMUL or re.search(r"\bMatmul\s*<|\bMatmulType\b", code):
        return Group.MATMUL
    if words & _CUBE:
        return Group.CUBE
    if not words & _LAUNCH:
        return Group.OTHER
    return Group.HIGH_LEVEL if called & _HIGH_LEVEL else Group.VECTOR


def _source_files(folder: Path) -> Iterable[Path]:
    return (path for pattern in _SOURCES for path in sorted(folder.rglob(pattern)))
