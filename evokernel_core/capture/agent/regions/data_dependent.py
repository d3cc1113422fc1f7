"""Operations whose result's size depends on values: which one it is, and what can be written instead."""

from __future__ import annotations

from torch._subclasses.fake_tensor import DynamicOutputShapeException

_INSTEAD = {
    "bincount": "give the number of bins by zeros(n).index_add(0, x, ones)",
    "nonzero": "use torch.where with three arguments in place of a mask as an index",
    "masked_select": "use torch.where with three arguments",
    "repeat_interleave": "give one number of repeats for all",
}
_NAMES = {"_unique2": "unique", "nonzero": "nonzero, as a mask as an index does"}


def size_unknown(error: BaseException, line: int) -> str:
    """The sentence for an error of such an operation; empty for any other error."""
    if not isinstance(error, DynamicOutputShapeException):
        return ""
    name = str(error.func).split(".")[1]
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    return (
        f"Line {line} calls {_NAMES.get(name, name)}: the size of its result depends on the values of a "
        f"tensor, which are not known before it runs{instead}."
    )
