"""Calls of public operators with what PyTorch says of them.

    python benchmarks/public_cases.py VALIDATION OUT

VALIDATION is a folder of NPUKernelBench with ``module.py``, ``prepare_inputs.py`` and ``test_cases.csv``.
Writes below OUT what the binding is given in the first call that is not too large, what the reference
answers, and ``call.json``.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib.util
import json
import re
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evokernel_core.twin.operators.case import combination_in
from evokernel_core.twin.operators.definition import Operator, OperatorParameter
from evokernel_core.twin.operators.kernel import dtype_of

TOLERANCES = {"float16": 5e-3, "bfloat16": 2e-2, "float32": 1e-3}
_MOST_ELEMENTS = 1 << 22
_SECONDS = 120


def cases_below(root: Path) -> Path | None:
    """The folder with the calls of an operator of NPUKernelBench, None where there is none."""
    found = root.parents[1] / "validation" if root.parent.name == "answer" else root
    return found if (found / "module.py").is_file() and (found / "test_cases.csv").is_file() else None


def write_case(validation: Path, operator: Operator, work: Path) -> Path:
    """CASE.json of the first call that is not too large, with its files. Raises ValueError."""
    command = [sys.executable, __file__, str(validation), str(work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["it ended"])[-1])
    call = json.loads((work / "call.json").read_text())
    case = _case(operator, call, work)
    _clear(case["outputs"], outputs_cleared(validation / "pybind.cpp", operator), work)
    path = work / "CASE.json"
    path.write_text(json.dumps(case))
    return path


def _case(operator: Operator, call: Mapping[str, Any], work: Path) -> dict[str, Any]:
    inputs, attributes = _matched(operator, call["arguments"], call["names"], work)
    combination = combination_in(operator, {name: _dtypes(item) for name, item in inputs.items()})
    outputs, expect = {}, {}
    changed = {name: files for name, item in inputs.items() if (files := _changed(item))}
    if not operator.outputs and changed:
        return _written(operator, inputs, attributes, {}, changed)
    # An operator without outputs whose reference changes nothing changes its first inputs.
    answering = operator.outputs or operator.inputs
    for parameter, found in zip(answering, _results(answering, call["results"]), strict=False):
        dtype = dtype_of(parameter, combination)
        shapes = [{"shape": item["shape"], "dtype": dtype} for item in found]
        if operator.outputs:
            outputs[parameter.name] = shapes if parameter.kind == "dynamic" else shapes[0]
        expect[parameter.name] = [item["file"] for item in found]
    return _written(operator, inputs, attributes, outputs, expect)


def _written(
    operator: Operator,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    outputs: Mapping[str, Any],
    expect: Mapping[str, Any],
) -> dict[str, Any]:
    """CASE.json as data."""
    loose = max(
        (TOLERANCES.get(each, 0.0) for item in inputs.values() for each in _dtypes(item)), default=0.0
    )
    return {
        "operator": operator.type, "inputs": inputs, "attributes": attributes, "outputs": outputs,
        "expect": expect, "rtol": loose, "atol": loose,
    }  # fmt: skip


_CLEARED = re.compile(
    r"\b(\w+)\s*=\s*(?:torch|at)::zeros(?:_like)?\(|\b(\w+)\.(?:zero_\(|fill_\(0(?:\.0*f?)?\))"
)
_COMMAND = re.compile(r"EXEC_NPU_CMD\(([^;]*)\);")


def outputs_cleared(binding: Path, operator: Operator) -> set[str]:
    """The outputs that the C++ binding clears before it calls the operator, whose last arguments they are."""
    text = binding.read_text() if binding.is_file() else ""
    cleared = {name for names in _CLEARED.findall(text) for name in names if name}
    found = set()
    for command in _COMMAND.findall(text):
        given = [word.strip() for word in command.split(",")][-len(operator.outputs) :]
        found |= {
            output.name for output, word in zip(operator.outputs, given, strict=False) if word in cleared
        }
    return found


def _clear(outputs: Mapping[str, Any], cleared: set[str], work: Path) -> None:
    for name in cleared & outputs.keys():
        if isinstance(output := outputs[name], dict):
            dtype = "uint16" if output["dtype"] == "bfloat16" else output["dtype"]
            output["file"] = f"{name}.zeros.npy"
            np.save(work / output["file"], np.zeros(output.pop("shape"), dtype))


def _given(item: Any) -> list[dict[str, Any]]:
    return [each for each in (item if isinstance(item, list) else [item]) if each]


def _dtypes(item: Any) -> list[str]:
    return [each["dtype"] for each in _given(item)]


def _changed(item: Any) -> list[str]:
    """What the reference makes of the tensors of an argument in place, [] where it leaves them."""
    return [each["after"] for each in _given(item) if "after" in each]


def _results(parameters: Sequence[OperatorParameter], results: Sequence[Any]) -> Iterator[list[Any]]:
    """What each of the parameters should hold; one that is a list takes all that are left."""
    left = list(results)
    for parameter in parameters:
        if not left:
            return
        if parameter.kind == "dynamic":
            taken = left if len(parameters) == 1 else left[: len(left) // len(parameters)]
        else:
            taken = left[:1]
        left = left[len(taken) :]
        yield taken


def _matched(
    operator: Operator, arguments: Sequence[Any], names: Sequence[str], work: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by name: tensors go to parameters in their order, all else to attributes in theirs; where the
    call names its arguments after all inputs, by these names."""
    arguments = _in_order(operator, arguments, names)
    parameters, attributes = list(operator.inputs), list(operator.attributes)
    inputs: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for place, argument in enumerate(arguments):
        is_tensor = isinstance(argument, dict) or argument is None
        is_list = isinstance(argument, list) and bool(argument) and isinstance(argument[0], dict)
        if (is_tensor or is_list) and parameters:
            inputs[parameters.pop(0).name] = argument
        elif attributes and not (is_tensor or is_list):
            values[attributes.pop(0).name] = argument
        elif parameters:
            parameter = parameters.pop(0)
            inputs[parameter.name] = _as_tensor(parameter, argument, place, work)
        else:
            raise ValueError(f"argument {place} of the binding is none of the operator's")
    return inputs, values


def _in_order(operator: Operator, arguments: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """``f(input_label, input_predict)`` in the order of an operator with predict and label."""
    named = {
        item.name: [place for place, name in enumerate(names) if name in (item.name, f"input_{item.name}")]
        for item in operator.inputs
    }
    if len(names) != len(arguments) or any(len(places) != 1 for places in named.values()):
        return list(arguments)
    places = [found[0] for found in named.values()]
    rest = [argument for place, argument in enumerate(arguments) if place not in places]
    return [*(arguments[place] for place in places), *rest]


def _names_called(module: Path) -> list[str]:
    """The names of what ``ModelNew`` gives to the binding, "" for what is no name."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("kernel_gen_ops."):
            return [ast.unparse(item).removeprefix("self.") for item in node.args]
    return []


def _as_tensor(parameter: OperatorParameter, value: Any, place: int, work: Path) -> dict[str, Any]:
    """A number that the operator takes as a tensor."""
    dtype = dtype_of(parameter, 0)
    array = np.atleast_1d(np.asarray(value, "float32" if dtype == "bfloat16" else dtype))
    file = f"number{place}.npy"
    np.save(work / file, array)
    return {"file": file, "dtype": str(array.dtype)}


# --- in a process of its own


def main() -> int:
    validation, out = Path(sys.argv[1]), Path(sys.argv[2])
    sys.modules |= _stand_ins(calls := [])
    sys.path.insert(0, str(validation))
    module, prepare = _module(validation / "module.py"), _module(validation / "prepare_inputs.py")
    import torch

    torch.manual_seed(0)
    rows = list(csv.DictReader((validation / "test_cases.csv").read_text().splitlines(), delimiter=";"))
    row, inputs = _small_enough(rows, prepare)
    given = prepare.get_init_inputs(row)
    copies = _copied(inputs)
    with torch.no_grad():
        results = module.Model(*given)(*copies)
        with contextlib.suppress(_Called):
            module.ModelNew(*given)(*inputs)
    save = _Saver(out, _pairs(inputs, copies))
    flat = results if isinstance(results, (list, tuple)) else [results]
    call = {
        "arguments": [save(item) for item in calls[0]],
        "names": _names_called(validation / "module.py"),
        "results": [save(item) for item in flat],
    }
    (out / "call.json").write_text(json.dumps(call, default=_plain))
    return 0


class _Called(Exception):
    """The binding was called: what it was called with is known."""


def _stand_ins(calls: list[Any]) -> dict[str, types.ModuleType]:
    """Modules that exist only where an NPU is; the binding notes its arguments."""

    def called(*args: Any) -> Any:
        calls.append(args)
        raise _Called

    class Bindings(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return called

    names = (
        "torch_npu",
        "torch_npu.contrib",
        "torch_npu.contrib.transfer_to_npu",
        "framework",
        "framework.utils",
    )
    found = {name: types.ModuleType(name) for name in names}
    found["torch_npu.contrib"].transfer_to_npu = None  # type: ignore[attr-defined]
    found["framework.utils"].check_precision = None  # type: ignore[attr-defined]
    return {**found, "kernel_gen_ops": Bindings("kernel_gen_ops")}


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _small_enough(rows: Sequence[Mapping[str, str]], prepare: Any) -> tuple[dict[str, Any], Any]:
    for row in rows:
        typed = {key: _typed(value) for key, value in row.items()}
        inputs = prepare.get_inputs(typed)
        if sum(item.numel() for item in _tensors(inputs)) <= _MOST_ELEMENTS:
            return typed, inputs
    raise ValueError(f"every call has more than {_MOST_ELEMENTS} elements")


def _typed(value: str) -> Any:
    """A cell of the table as pandas reads it."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"True": True, "False": False}.get(value, value)


def _tensors(items: Any) -> Iterator[Any]:
    import torch

    if isinstance(items, torch.Tensor):
        yield items
    elif isinstance(items, (list, tuple)):
        for item in items:
            yield from _tensors(item)


def _copied(items: Any) -> Any:
    import torch

    if isinstance(items, torch.Tensor):
        return items.clone()
    return type(items)(map(_copied, items)) if isinstance(items, (list, tuple)) else items


def _pairs(inputs: Any, copies: Any) -> dict[int, Any]:
    """By identity of an input whose copy the reference wrote to: what the copy holds since. All tensors of a
    list of which it wrote to some count as written."""
    pairs = {}
    for given, copy in zip(inputs, copies, strict=True):
        found = list(zip(_tensors([given]), _tensors([copy]), strict=True))
        if any(written._version > 0 for _, written in found):
            pairs |= {id(tensor): written for tensor, written in found}
    return pairs


def _plain(value: Any) -> Any:
    """A number of numpy's as Python's."""
    return value.item()


class _Saver:
    """Tensors as files, other values as they are."""

    def __init__(self, out: Path, changed: Mapping[int, Any]) -> None:
        self.out, self.count, self.changed = out, 0, changed

    def __call__(self, item: Any) -> Any:
        import torch

        if isinstance(item, (list, tuple)):
            return list(map(self, item))
        if not isinstance(item, torch.Tensor):
            return item
        after = self.changed.get(id(item))
        return {**self._saved(item), **({} if after is None else {"after": self._saved(after)["file"]})}

    def _saved(self, item: Any) -> dict[str, Any]:
        import torch

        file = f"tensor{self.count}.npy"
        self.count += 1
        item = item.detach().contiguous()
        array = (
            item.view(torch.int16).numpy().view(np.uint16) if item.dtype == torch.bfloat16 else item.numpy()
        )
        np.save(self.out / file, array)
        return {"file": file, "dtype": str(item.dtype).removeprefix("torch."), "shape": list(item.shape)}


if __name__ == "__main__":
    sys.exit(main())
