"""Code that depends on what tensors hold, which is not known in a capture: what it is, and what can be
written instead."""

from __future__ import annotations

from traceback import walk_tb

from torch._subclasses.fake_tensor import DynamicOutputShapeException

from ..loading.no_memory import CANNOT
from ..sentence import Sentence

_INSTEAD = {
    "bincount": Sentence("give the number of bins by zeros(n).index_add(0, x, ones)"),
    "nonzero": Sentence("use torch.where with three arguments in place of a mask as an index"),
    "masked_select": Sentence("use torch.where with three arguments"),
    "repeat_interleave": Sentence("give one number of repeats for all"),
}
_NAMES = {"_unique2": "unique", "nonzero": Sentence("nonzero, as a mask as an index does")}
_VALUES = ("DataDependent", "DynamicOutputShape", "_local_scalar_dense", "passed to FakeTensor.__format__")
_MEMORY = (
    CANNOT,
    "access the data pointer on an invalid python storage",
    "Not available for 'meta' device type",
    'Attempted to set the storage of a tensor on device "meta"',
    "pickle local object 'WeakValueDictionary",
)
"""What errors say where a tensor of a capture is asked for its elements, or for the memory that it lacks."""


def values_missing(error: BaseException, line: int) -> Sentence:
    """The sentence for code that is right but for values or memory that a capture does not have; empty for
    any other error."""
    text = f"{type(error).__name__}: {error}"
    if any(sign in text for sign in _MEMORY):
        return Sentence(
            "Line {line} reads the memory of a tensor, as copying or saving does, which a traced "
            "tensor lacks: do that outside of the call.",
            line=line,
        )
    if not any(sign in text for sign in _VALUES):
        return Sentence()
    if any(frame.f_code.co_filename.endswith("/batchnorm.py") for frame, _ in walk_tb(error.__traceback__)):
        return Sentence(
            "Line {line} is a batch normalisation in training with momentum=None, whose count of "
            "calls is not known before it runs: give it a momentum.",
            line=line,
        )
    return size_unknown(error, line) or Sentence(
        "Line {line} depends on the values of a tensor, which are not known before it runs.", line=line
    )


def size_unknown(error: BaseException, line: int) -> Sentence:
    """The sentence for an error of such an operation; empty for any other error."""
    if not isinstance(error, DynamicOutputShapeException):
        return Sentence()
    name = str(error.func).split(".")[1]
    told = {"line": line, "op": _NAMES.get(name, name)}
    if name in _INSTEAD:
        return Sentence(
            "Line {line} calls {op}: the size of its result depends on the values of a tensor, "
            "which are not known before it runs: {instead}.",
            instead=_INSTEAD[name],
            **told,
        )
    return Sentence(
        "Line {line} calls {op}: the size of its result depends on the values of a tensor, "
        "which are not known before it runs.",
        **told,
    )
