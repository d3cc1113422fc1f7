"""What the agent reports: a stable reason code and one sentence."""

from __future__ import annotations

OF_COMPLEX = "(complex)"
"""Ends the name of an operation that is given complex tensors."""


class AgentError(Exception):
    """``reason`` is one of domain.errors' reason codes; the message is for the person. ``stale``: another
    process may not meet the error, which comes of what this one has run before."""

    def __init__(self, reason: str, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.stale = stale


class Unsupported(Exception):
    """The region is outside what the product covers; the message is one sentence."""


def describe(error: BaseException) -> str:
    """The exception's type and the first line of its text, at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


_PLAIN_WORDS = {
    "a matrix product": ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mv", "dot", "addmv"),
    "a convolution": ("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose2d"),
    "attention": ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    "a batch normalisation": ("native_batch_norm", "_native_batch_norm_legit_functional", "batch_norm"),
    "pooling": ("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "max_pool3d_with_indices"),
    "a Fourier transform": ("_fft_r2c", "_fft_c2c", "_fft_c2r"),
    "a table look-up": ("embedding", "index", "gather", "index_select"),
}

_ADVICE = {
    "a Fourier transform": "leave it to PyTorch and take the lines before and behind it, or multiply short "
    "rows of a fixed length by the matrices of its cosines and sines",
}


def uncovered(op: str, line: int) -> str:
    """Why a line has no kernel, from the overload name of the op that stands in the way."""
    if op.startswith("evokernel."):
        return f"Line {line} already calls a generated kernel."
    name = ".".join(op.removesuffix(OF_COMPLEX).split(".")[:2])
    if op.startswith("torch_npu."):
        return f"Line {line} calls {name}, whose meaning for these arguments is not known: it stays as it is."
    given = " on complex numbers" if op.endswith(OF_COMPLEX) else ""
    for words, ops in _PLAIN_WORDS.items():
        if name.removeprefix("aten.") in ops:
            advice = f": {_ADVICE[words]}." if words in _ADVICE else "."
            return (
                f"Line {line} is {words} ({name}){given}, which the kernels on offer do not compute{advice}"
            )
    return f"Line {line} uses {name}{given}, which the kernels on offer do not compute."


class Refused(Exception):
    """A function that cannot become one region as a whole; the message is one sentence."""
