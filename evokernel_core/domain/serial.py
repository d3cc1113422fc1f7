"""JSON for the frozen classes: one converter, and a canonical form for hashing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import cattrs
from attrs import fields, resolve_types
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.preconf.json import make_converter

from evokernel_core.domain.descriptor import Descriptor, read_descriptor
from evokernel_core.domain.eager import EagerComparison, Uncompared
from evokernel_core.domain.earlier_sources import named
from evokernel_core.domain.earlier_verdicts import apart
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.files import Files
from evokernel_core.domain.graph import Arg, DTypeArg, Graph, GraphInput, Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import KernelSource, Setting, Strategy
from evokernel_core.domain.sentence import Sentence, sentence_of
from evokernel_core.domain.tensor import Dim
from evokernel_core.domain.verdict import GateResult, Hazard, Latency, Verdict

T = TypeVar("T")

_SAID = "said"
"""The key of the sentences behind an object's texts."""


def _unstructure_float(value: float) -> Any:
    """JSON has no infinities: they travel as ``{"float": "inf"}``."""
    return value if math.isfinite(value) else {"float": str(value)}


def _structure_float(value: Any, _: Any = None) -> float:
    return float(value["float"] if isinstance(value, dict) else value)


def _structure_arg(value: Any, _: Any = None) -> Arg:
    match value:
        case {"ref": name, "index": index}:
            return ValueRef(name, index)
        case {"sym": expression}:
            return SymbolicInt(expression)
        case {"dtype": name}:
            return DTypeArg(name)
        case {"float": text}:
            return float(text)
        case list() | tuple():
            return tuple(_structure_arg(element) for element in value)
        case None | bool() | int() | float() | str():
            return value
    raise ValueError(f"{value!r} is not an argument of a graph node.")


def _make() -> cattrs.Converter:
    converter = make_converter()
    converter.register_unstructure_hook(ValueRef, lambda ref: {"ref": ref.name, "index": ref.index})
    converter.register_unstructure_hook(SymbolicInt, lambda arg: {"sym": arg.expression})
    converter.register_unstructure_hook(DTypeArg, lambda arg: {"dtype": arg.name})
    converter.register_unstructure_hook(float, _unstructure_float)
    converter.register_unstructure_hook(Sentence, Sentence.data)
    converter.register_structure_hook(Sentence, lambda data, _: sentence_of(data))
    converter.register_structure_hook(float, _structure_float)
    converter.register_structure_hook(ValueRef, lambda value, _: _structure_arg(value))
    converter.register_structure_hook_func(lambda kind: kind == Arg, _structure_arg)
    converter.register_structure_hook_func(lambda kind: kind == Dim, lambda value, _: _structure_dim(value))
    converter.register_structure_hook_func(lambda kind: kind == Setting, lambda value, _: value)
    # graphs without updates keep the text, and so the identity, that they had before there were any
    updates = override(omit_if_default=True)
    value = override(omit_if_default=True)
    inputs = make_dict_unstructure_fn(GraphInput, converter, value=value)
    converter.register_unstructure_hook(GraphInput, inputs)
    call = override(omit_if_default=True)
    converter.register_unstructure_hook(Node, make_dict_unstructure_fn(Node, converter, call=call))
    copies = override(omit_if_default=True)
    hook = make_dict_unstructure_fn(Graph, converter, updates=updates, copies=copies)
    converter.register_unstructure_hook(Graph, hook)
    converter.register_structure_hook(Descriptor, lambda data, _: read_descriptor(data))
    # services and stores from before a comparison was kept know no word of it, nor of programs' kernels
    left_out = {Verdict: ("eager",), Strategy: ("groups", "kernels")}
    for kind in (Uncompared, EagerComparison, Hazard, Latency, GateResult, Verdict, Strategy, Experience):
        _say_beside(converter, kind, **dict.fromkeys(left_out.get(kind, ()), updates))
    gate = converter.get_structure_hook(GateResult)

    def structure_gate(data: Any, kind: Any) -> GateResult:
        read: GateResult = gate(data, kind)
        return read if "case" in data else apart(read)

    converter.register_structure_hook(GateResult, structure_gate)
    strategy = converter.get_structure_hook(Strategy)
    converter.register_structure_hook(
        Strategy, lambda data, kind: strategy(structured({"version": 1, **data}), kind)
    )
    converter.register_unstructure_hook(
        KernelSource,
        lambda source: {
            "target": source.target,
            "files": dict(source.files),
            "strategy": converter.unstructure(source.strategy),
        },
    )
    source = make_dict_structure_fn(
        KernelSource,
        converter,
        target=override(struct_hook=_structure_name),
        files=override(struct_hook=lambda texts, _: Files(texts)),
    )
    converter.register_structure_hook(KernelSource, lambda data, kind: source(named(data), kind))
    return converter


def _say_beside(converter: cattrs.Converter, kind: type, **overrides: Any) -> None:
    """An object's sentences travel as English text, with what they are made of beside them: readers from
    before there were sentences show the text."""
    names = [field.name for field in fields(resolve_types(kind)) if field.type is Sentence]
    write: Any = make_dict_unstructure_fn(kind, converter, **overrides)
    read: Any = make_dict_structure_fn(kind, converter)

    def unstructure(value: Any) -> Any:
        data = write(value)
        said = {name: data[name] for name in names if not isinstance(data[name], str)}
        texts = {name: str(getattr(value, name)) for name in said}
        return {**data, **texts, _SAID: said} if said else data

    def structure(data: Any, _: Any) -> Any:
        said = data.get(_SAID) if isinstance(data, Mapping) else None
        if isinstance(said, Mapping):
            data = {**data, **{name: said[name] for name in names if name in said}}
        return read(data, kind)

    converter.register_unstructure_hook(kind, unstructure)
    converter.register_structure_hook(kind, structure)


def _structure_name(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{ascii(value)[:60]} is not a name.")
    return value


def _structure_dim(value: Any) -> Dim:
    return value if isinstance(value, int) else str(value)


_converter = _make()


def to_data(value: Any) -> Any:
    """Plain dicts, lists and scalars that ``json.dumps`` accepts."""
    return _converter.unstructure(value)


def from_data(data: Any, kind: type[T]) -> T:
    """The frozen object that ``to_data`` gave. Raises cattrs' ClassValidationError on bad data."""
    return _converter.structure(data, kind)


def canonical_json(value: Any) -> str:
    """Sorted keys and no spaces: equal values give equal text."""
    return json.dumps(to_data(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> str:
    """JSON text of a frozen object."""
    return json.dumps(to_data(value), allow_nan=False)


def loads(text: str, kind: type[T]) -> T:
    """The frozen object of a JSON text."""
    return from_data(json.loads(text), kind)


_PROGRAM, _GROUPS, _FAMILY = "program", "groups", "family"


def structured(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a strategy with its groups and kernels apart; as it is where nothing of it is of an earlier
    form. A text that names no nodes gives no groups, which no task has."""
    given = data.get("settings")
    settings = dict(given.items() if isinstance(given, Mapping) else given or ())
    if data.get("family") != _PROGRAM or _GROUPS not in settings:
        return data
    groups = _groups(str(settings.pop(_GROUPS)))
    kernels: dict[int, dict[str, Any]] = {}
    for key in [key for key in settings if str(key).partition(".")[0].isdigit() and "." in str(key)]:
        number, _, name = str(key).partition(".")
        kernels.setdefault(int(number), {})[name] = settings.pop(key)
    schedules = [
        {"family": str(own.pop(_FAMILY, "")), "settings": list(own.items())}
        for _, own in sorted(kernels.items())
    ]
    return {**data, "settings": list(settings.items()), _GROUPS: groups, "kernels": schedules}


def _groups(text: str) -> list[list[int]]:
    try:
        return [[int(index) for index in group.split(",")] for group in text.split("|")]
    except ValueError:
        return []
