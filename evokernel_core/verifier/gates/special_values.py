"""Of which graphs it is asked what a kernel makes of NaN and infinities, and how strictly.

PyTorch passes them on: a NaN in a row makes its sum, norm and softmax NaN, and a kernel that makes a number
of it hides a broken model. What cannot be asked is declared here with its reason, and in docs/cases.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from evokernel_core.capture.reference import HIGHEST, INFINITIES, LOWEST, NANS, SPECIAL
from evokernel_core.domain.graph import Graph

MOVES = frozenset(
    """view _unsafe_view reshape expand permute transpose t unsqueeze squeeze slice select cat stack flip roll
    repeat clone contiguous alias detach split split_with_sizes unbind flatten unflatten diagonal
    broadcast_to index_select""".split()  # noqa: SIM905
)
"""Operations that only move elements."""
_PASSING = frozenset(
    """abs add addcmul cos cumprod cumsum div elu erf exp exp2 expm1 floor gelu leaky_relu lerp
    linalg_vector_norm log log1p logsumexp _log_softmax _softmax mean mish mul native_layer_norm neg pow prod
    reciprocal relu round rsqrt rsub sigmoid silu sin softplus sqrt std sub sum tanh tril triu var _to_copy
    avg_pool2d constant_pad_nd full scalar_tensor lift_fresh_copy""".split()  # noqa: SIM905
)
"""Operations through which a NaN passes in PyTorch and in the kernels of the schedule proposer."""
_PRODUCTS = frozenset(("mm", "bmm", "addmm", "baddbmm", "convolution"))
_INFINITE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "amax max argmax max_pool2d_with_indices logsumexp _softmax _log_softmax topk".split(),  # noqa: SIM905
        (LOWEST,),
    ),
    **dict.fromkeys(("amin", "min", "argmin"), (HIGHEST,)),
    "sort": (LOWEST, HIGHEST),
}
"""Operations that are asked about whole rows of what they begin with or pad with, too."""
UNDOCUMENTED: Mapping[str, str] = {
    **dict.fromkeys(
        """maximum minimum amax amin max min clamp clamp_min clamp_max hardtanh hardsigmoid hardswish
        max_pool2d_with_indices argmax argmin""".split(),  # noqa: SIM905
        "AscendC does not document what Max, Min and their reductions make of a NaN",
    ),
    **dict.fromkeys(
        "gt ge lt le eq ne where masked_fill sign".split(),  # noqa: SIM905
        "AscendC does not document what Compare and Select make of a NaN",
    ),
    **dict.fromkeys(
        ("sort", "topk"),
        "PyTorch orders NaN behind the infinities, AscendC's sort does not document where it puts them",
    ),
}
"""Operations of which infinities alone are asked, and why."""


class NonFinite(StrEnum):
    """What a kernel's output may be where its or the reference's is no finite number."""

    SAME = "same"
    """NaN for NaN, and the same infinity; for that also a number at the end of the range, as values that are
    rounded otherwise may just not overflow."""
    EXACT = "exact"
    """NaN for NaN, and the same infinity: they were inputs."""
    UNDEFINED = "undefined"
    """For NaN also an infinity: infinities that meet give either, by the order of the operations."""
    SPREAD = "spread"
    """No finite number where the reference has none; elsewhere anything: fast products (Winograd, Strassen,
    operands in narrow parts) let one element reach others."""


def distributions_for(graph: Graph) -> tuple[str, ...]:
    """The distributions with NaN or infinities that kernels of a graph are asked about.

    Infinities are drawn for one operation alone: in longer graphs ``inf - inf`` comes and goes with their
    order.
    """
    packets = {node.op.split(".")[1] for node in graph.nodes} - MOVES
    if (
        not packets
        or _is_open_power(graph)
        or not (packets <= _PLACES or all(spec.dtype in _FLOATS for spec in graph.output_specs()))
    ):
        return ()  # what only moves has a distribution of its own
    result = []
    if packets <= _PASSING | _PRODUCTS:
        result.append(NANS)
    if len(packets) == 1 and packets <= _PASSING | UNDOCUMENTED.keys():
        result.extend(_INFINITE.get(next(iter(packets)), (INFINITIES,)))
    return tuple(result)


_FLOATS = ("float16", "bfloat16", "float32")
_PLACES = frozenset(("argmax", "argmin"))
"""Operations of floats whose result is none."""


def _is_open_power(graph: Graph) -> bool:
    """Whether a power may have the exponent 0 or the base 1, which make a number of a NaN."""
    powers = (node for node in graph.nodes if node.op.startswith("aten.pow."))
    return any(node.op != "aten.pow.Tensor_Scalar" or node.args[1] == 0 for node in powers)


def strictness(graph: Graph, distribution: str) -> NonFinite:
    """How non-finite outputs are compared where inputs are drawn so."""
    if any(node.op.split(".")[1] in _PRODUCTS for node in graph.nodes):
        return NonFinite.SPREAD if distribution in (NANS, INFINITIES) else NonFinite.SAME
    if distribution in (INFINITIES, LOWEST, HIGHEST):
        return NonFinite.UNDEFINED
    return NonFinite.EXACT if distribution in (NANS, SPECIAL) else NonFinite.SAME
