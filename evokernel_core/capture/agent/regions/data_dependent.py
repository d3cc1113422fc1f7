"""Operations whose result's size depends on values: which one it is, and what can be written instead."""

from __future__ import annotations

from torch._subclasses.fake_tensor import DynamicOutputShapeException

from ..sentence import Sentence

_INSTEAD = {
    "bincount": Sentence("give the number of bins by zeros(n).index_add(0, x, ones)"),
    "nonzero": Sentence("use torch.where with three arguments in place of a mask as an index"),
    "masked_select": Sentence("use torch.where with three arguments"),
    "repeat_interleave": Sentence("give one number of repeats for all"),
}
_NAMES = {"_unique2": "unique", "nonzero": Sentence("nonzero, as a mask as an index does")}


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
