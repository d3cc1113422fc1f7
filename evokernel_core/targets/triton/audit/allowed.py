"""What a text of jit functions may use, as tables: every name beyond them is refused.

A name of ``tl`` stands in a group with the reason for which kernels have it; what people often ask for and no
kernel has stands in ``REFUSED`` with the reason why not.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.domain.sentence import Sentence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Group:
    """Names of ``tl``, and what kernels have them for."""

    reason: str
    names: frozenset[str]


GROUPS = (
    Group(
        "dtypes, and what marks a parameter as known when a kernel is compiled",
        _names("""int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64
        constexpr"""),
    ),
    Group("which program of the launch this is", _names("program_id num_programs")),
    Group(
        "memory by pointers and masks, whose addresses the interpreter checks",
        _names("""load store atomic_add atomic_max atomic_min atomic_cas atomic_xchg atomic_and atomic_or
        atomic_xor"""),
    ),
    Group(
        "making blocks and changing their shape",
        _names("""arange zeros zeros_like full reshape broadcast broadcast_to expand_dims trans permute cat
        join split interleave ravel view flip gather cast"""),
    ),
    Group(
        "numbers of each element",
        _names("""exp exp2 log log2 sin cos sqrt sqrt_rn rsqrt erf abs floor ceil fma sigmoid softmax umulhi
        div_rn fdiv maximum minimum clamp where cdiv add sub mul"""),
    ),
    Group(
        "reductions and scans of a block",
        _names("""sum max min argmax argmin reduce xor_sum reduce_or associative_scan cumsum cumprod sort
        topk histogram"""),
    ),
    Group("products of blocks", _names("dot")),
    Group(
        "loops, and hints that change no result",
        _names("range static_range multiple_of max_contiguous max_constancy debug_barrier swizzle2d"),
    ),
)
TL: frozenset[str] = frozenset[str]().union(*(group.names for group in GROUPS))
MODULES: Mapping[str, frozenset[str]] = {
    "math": _names("abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"),
    "PropagateNan": _names("ALL NONE"),
}
"""Attributes of attributes of ``tl``."""
VALUE = _names("""to T dtype type element_ty scalar shape numel abs argmax argmin associative_scan
    broadcast_to cast cdiv ceil cos cumprod cumsum erf exp exp2 expand_dims flip floor gather log log2
    logical_and logical_or max min permute ravel reduce reshape rsqrt sigmoid sin softmax split sqrt sum trans
    view xor_sum""")
"""Attributes of values."""
BUILTINS = _names("range min max float int len")
"""Those of Python that Triton has too."""
_HOST = Sentence("it acts on the host or prints, and a kernel only computes")
_FOREIGN = Sentence("its text is no Triton, and nothing here reads it")
_BLOCKS = Sentence("kernels address memory by pointers and masks")
_RANDOM = Sentence("a kernel's results are those of its inputs")
REFUSED: Mapping[str, Sentence] = {
    **dict.fromkeys(("device_print", "device_assert", "static_print", "static_assert", "assume"), _HOST),
    **dict.fromkeys(("inline_asm_elementwise", "extra", "core", "standard", "map_elementwise"), _FOREIGN),
    **dict.fromkeys(("make_block_ptr", "advance", "make_tensor_descriptor"), _BLOCKS),
    **dict.fromkeys(("load_tensor_descriptor", "store_tensor_descriptor"), _BLOCKS),
    **dict.fromkeys(("rand", "randn", "randint", "rand4x", "randint4x", "philox"), _RANDOM),
}
OTHERWISE = Sentence("it is not on the list of what kernels use")
WORDS: Mapping[str, frozenset[str]] = {
    "input_precision": _names("ieee tf32 tf32x3"),
    "eviction_policy": _names("evict_first evict_last"),
    "cache_modifier": _names(".ca .cg .cs .wb .wt"),
    "sem": _names("relaxed acquire release acq_rel"),
    "scope": _names("gpu cta sys"),
    "fp_downcast_rounding": _names("rtne rtz"),
}
"""What text the arguments of these names may be; no other argument is text."""
FLOATS = _names("inf -inf nan")
"""What text ``float`` may be given."""
LONGEST = 1_000_000
"""Characters of a file."""
MOST_NODES = 300_000
DEEPEST = 60
"""Of a file's syntax tree: its nodes, and how deep they nest."""
MOST_LAUNCHES = 2_000
MOST_SCRATCH = 2_000
