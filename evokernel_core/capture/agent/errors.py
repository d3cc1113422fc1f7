"""What the agent reports: a stable reason code and one sentence."""

from __future__ import annotations

from .sentence import Sentence, Told

OF_COMPLEX = "(complex)"
"""Ends the name of an operation that is given complex tensors."""


class AgentError(Told):
    """``reason`` is one of domain.errors' reason codes; the message is for the person. ``stale``: another
    process may not meet the error, which comes of what this one has run before."""

    def __init__(self, reason: str, template: str, /, *, stale: bool = False, **values: object) -> None:
        super().__init__(template, **values)
        self.reason = reason
        self.stale = stale


class Unsupported(Told):
    """The region is outside what the product covers; the message is one sentence."""


def describe(error: BaseException) -> str:
    """The exception's type and the first line of its text, at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


_PLAIN_WORDS = {
    Sentence("a matrix product"): ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mv", "dot", "addmv"),
    Sentence("a convolution"): ("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose2d"),
    Sentence("attention"): ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    Sentence("a batch normalisation"): (
        "native_batch_norm",
        "_native_batch_norm_legit_functional",
        "batch_norm",
    ),
    Sentence("pooling"): (
        "max_pool2d_with_indices",
        "avg_pool2d",
        "_adaptive_avg_pool2d",
        "max_pool3d_with_indices",
    ),
    Sentence("a Fourier transform"): ("_fft_r2c", "_fft_c2c", "_fft_c2r"),
    Sentence("a table look-up"): ("embedding", "index", "gather", "index_select"),
}

_ADVICE = {
    "a Fourier transform": Sentence(
        "leave it to PyTorch and take the lines around it, or multiply short rows of a fixed length "
        "by its cosine and sine matrices"
    )
}


def uncovered(op: str, line: int, *, in_programs: bool = False) -> Sentence:
    """Why a line has no kernel, from the overload name of the op that stands in the way. ``in_programs``: one
    fused kernel of that line alone cannot be, a program of several may."""
    if op.startswith("evokernel."):
        return Sentence("Line {line} already calls a generated kernel.", line=line)
    name = ".".join(op.removesuffix(OF_COMPLEX).split(".")[:2])
    if op.startswith("torch_npu."):
        return Sentence(
            "Line {line} calls {op}, whose meaning for these arguments is not known: it is skipped.",
            line=line,
            op=name,
        )
    what: str = name
    if op.endswith(OF_COMPLEX):
        what = Sentence("{op} on complex numbers", op=name)
    words = next((words for words, ops in _PLAIN_WORDS.items() if name.removeprefix("aten.") in ops), None)
    if words is not None:
        what = Sentence("{what} ({op})", what=words, op=what)
    if in_programs:
        return Sentence(
            "Line {line} computes {op}, which is not supported as a single fused kernel.", line=line, op=what
        )
    if words in _ADVICE:
        advice = _ADVICE[str(words)]
        return Sentence(
            "Line {line} computes {op}, which no kernel supports: {advice}.",
            line=line,
            op=what,
            advice=advice,
        )
    return Sentence("Line {line} computes {op}, which no kernel supports.", line=line, op=what)


class Refused(Told):
    """A function that cannot become one region as a whole; the message is one sentence."""
