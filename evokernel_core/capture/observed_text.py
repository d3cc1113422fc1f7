"""Observations in words: for a table, and as the shape comment that says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evokernel_core.capture.observations import Observation

_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
}  # fmt: skip
_LONGEST = 60


def call_words(call: Mapping[str, Any]) -> str:
    """``f32[8,128], mask=None``."""
    words = [words_of(argument) for argument in call["args"]]
    words += [f"{name}={words_of(value)}" for name, value in call["kwargs"].items()]
    return ", ".join(words)


def words_of(data: Any) -> str:
    """One encoded value, shortened."""
    text = _words(data)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _words(data: Any) -> str:
    if not isinstance(data, dict):
        return repr(data)
    kind, inner = next(iter(data.items()))
    return _WORDS[kind](inner) if kind in _WORDS else f"<{kind}>"


def _sequence(start: str, end: str) -> Callable[[Any], str]:
    return lambda inner: f"{start}{', '.join(map(_words, inner))}{end}"


def tensor_words(data: Mapping[str, Any]) -> str:
    """``f16[32,1024]``, as in the shape comment."""
    dtype = _SHORT.get(data["dtype"], data["dtype"])
    return f"{dtype}[{','.join(map(str, data['shape']))}]"


_WORDS: dict[str, Callable[[Any], str]] = {
    "tensor": tensor_words, "list": _sequence("[", "]"), "tuple": _sequence("(", ")"),
    "Size": _sequence("(", ")"), "set": _sequence("{", "}"), "frozenset": _sequence("{", "}"),
    "dict": lambda inner: f"{{{', '.join(f'{_words(key)}: {_words(element)}' for key, element in inner)}}}",
    "name": lambda inner: str(inner["qualname"]), "named": lambda inner: f"{inner[0]['qualname']}(...)",
    "object": lambda inner: f"{inner['class']['qualname']}(...)",
    "module": lambda inner: f"{inner['class']['qualname']}(...)",
    "modules": lambda inner: f"{inner[0]}({len(inner[1])})",
    "enum": lambda inner: f"{inner[0]['qualname']}.{inner[1]}", "opaque": lambda inner: f"<{inner}>",
    **dict.fromkeys(("float", "dtype", "device", "path"), str),
}  # fmt: skip


def comment_of(observation: Observation, init: Sequence[str], parameters: Sequence[str]) -> str | None:
    """The shape comment that says what was observed, None where a comment cannot: where a class is built
    with an object, or where a call passes something other than tensors and plain values. ``init`` and
    ``parameters`` are the names of the arguments of ``__init__`` and of the call, without ``self``."""
    said: dict[str, str] = {}
    calls = [(observation.built, init)] if observation.built is not None else []
    for call, names in [*calls, (observation.call, parameters)]:
        for name, data in _named(call, names):
            text = _sayable(data)
            if name is None or text is None or said.get(name, text) != text:
                return None
            said[name] = text
    return ", ".join(f"{name}={text}" for name, text in said.items())


def _named(call: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    for number, data in enumerate(call["args"]):
        yield (names[number] if number < len(names) else None), data
    for name, data in call["kwargs"].items():
        yield (name if name in names else None), data


def _sayable(data: Any) -> str | None:
    """The text of a value in a shape comment, None where it has none."""
    if not isinstance(data, dict):
        return repr(data)
    kind, inner = next(iter(data.items()))
    if kind == "tensor":
        return tensor_words(inner) if inner["dtype"] in _SHORT and "elements" not in inner else None
    if kind in ("list", "tuple"):
        items = [_sayable(element) for element in inner]
        if any(text is None or isinstance(element, dict) for text, element in zip(items, inner, strict=True)):
            return None
        end = "," if kind == "tuple" and len(items) == 1 else ""
        start, close = ("[", "]") if kind == "list" else ("(", ")")
        return f"{start}{', '.join(map(str, items))}{end}{close}"
    return None
