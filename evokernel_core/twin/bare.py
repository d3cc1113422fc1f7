"""A bare device kernel, launched on files as a LAUNCH.json says."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import UsageError
from evokernel_core.hardware.ascend.abi import KERNEL
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.twin.build import Around, BuiltKernel, CandidateError, build_files, check_callees, prepare
from evokernel_core.twin.dtypes import DTYPES, from_memory, nbytes_of, to_memory
from evokernel_core.twin.expected import (
    Tolerance,
    check_references,
    compared,
    elements_of,
    operands,
    outputs_of,
)
from evokernel_core.twin.expression import Expression, parse
from evokernel_core.twin.fills import Fills, check_fill
from evokernel_core.twin.framework import (
    DTYPE_MACROS,
    Framework,
    framework_macros,
    number_definitions,
    read_framework,
)
from evokernel_core.twin.images import device_units, kernels_of
from evokernel_core.twin.kernels import DeclaredKernel, kernel_type
from evokernel_core.twin.lexer import Token, tokenize
from evokernel_core.twin.preprocess import LaunchSyntaxError, without_launches
from evokernel_core.twin.program import define_flags
from evokernel_core.twin.run import ExitStatus, Limits, Mode, RunRequest, RunResult, TensorFile, run_kernel
from evokernel_core.twin.sources import ProgramSource, read_sources

SCALARS: Mapping[str, str] = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float32": "float", "float": "float", "float64": "double", "double": "double", "bool": "bool"},
    **{"float16": "half", "half": "half", "int": "int", "uint": "unsigned"},
}
"""Names of scalar types in a LAUNCH.json, and C++'s."""


@frozen
class LaunchFile:
    """A LAUNCH.json: blocks, arguments in the kernel's order, what outputs are compared with by their names
    (golden files, expressions), tolerance."""

    block_dim: int
    args: tuple[Mapping[str, Any], ...]
    expect: Mapping[str, str]
    reference: Mapping[str, Expression]
    tolerance: Tolerance
    workspace_bytes: int
    framework: Framework


@frozen
class Bare:
    """A built bare kernel, its launch, the names of its parameters, and the tensors that it gets."""

    built: BuiltKernel
    launch: LaunchFile
    parameters: tuple[str, ...]
    tensors: TensorTable


def read_launch(path: Path) -> LaunchFile:
    """Reads a LAUNCH.json. Raises UsageError that names what is wrong in it."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON ({error}); see `evokernel twin run --help`."
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("args"), list):
        raise UsageError(f'{path} has no list "args"; write {{"block_dim": 8, "args": [{{"in": "x.npy"}}]}}.')
    kinds = ("in", "out", "scalar", "bytes", "workspace", "list", "same", "null")
    for position, arg in enumerate(data["args"]):
        if not isinstance(arg, dict) or sum(kind in arg for kind in kinds) != 1:
            raise UsageError(f"Argument {position} of {path} needs exactly one of {', '.join(kinds)}.")
        _check_argument(position, arg, path)
    return LaunchFile(
        block_dim=int(data.get("block_dim", 1)),
        args=tuple(data["args"]),
        expect=dict(data.get("expect", {})),
        reference={name: parse(str(text)) for name, text in data.get("reference", {}).items()},
        tolerance=Tolerance(float(data.get("rtol", 1e-3)), float(data.get("atol", 1e-3))),
        workspace_bytes=max((int(arg["workspace"]) for arg in data["args"] if "workspace" in arg), default=0),
        framework=read_framework(data, path),
    )


def _check_argument(position: int, arg: Mapping[str, Any], path: Path) -> None:
    if "same" in arg and arg["same"] not in range(position):
        raise UsageError(f'Argument {position} of {path} has "same": {arg["same"]!r}; name one before it.')
    for each in arg.get("list", ()):
        _check_argument(position, each, path)
    if isinstance(arg.get("in"), Mapping):
        check_fill(arg["in"])
    elif not isinstance(arg.get("in", ""), str):
        raise UsageError(f'Argument {position} of {path} needs "in" to be a file, or how to fill it.')
    if "out" in arg and (arg.get("dtype") not in DTYPES or not isinstance(arg.get("shape"), list)):
        raise UsageError(f'Argument {position} of {path} needs "shape" and a "dtype" of {", ".join(DTYPES)}.')
    if "scalar" in arg and (arg["scalar"] not in SCALARS or "value" not in arg):
        raise UsageError(f'Argument {position} of {path} needs "value" and a type of {", ".join(SCALARS)}.')


def filled(launch: LaunchFile, folder: Path) -> LaunchFile:
    """The launch with files in a folder in place of inputs that it says how to fill. Raises UsageError."""
    return evolve(launch, args=tuple(map(Fills(folder).filled, launch.args)))


def build_bare(program: ProgramSource, entry: str, launch: LaunchFile, cwd: Path) -> Bare:
    """Compiles a kernel with a launcher for this LAUNCH.json. Raises CandidateError, UsageError.

    ``program`` is the kernel's file with its folders and macros.
    """
    (source,) = program.files
    texts = read_sources(program)
    kernel = find_kernel(program, texts, entry)
    for unit in device_units(program, texts):
        shown = {program.shown(path): tokens for path, tokens in unit.items()}
        check_callees(shown, constexpr_on_device=True)
    sources = {program.shown(path): text for path, text in texts.items()}
    text = sources.pop(source.name)
    declared = tuple(tokenize(parameter) for parameter in kernel.parameters)
    if len(declared) != len(launch.args):
        raise UsageError(
            f"{entry} has {len(declared)} parameters, but the launch file {len(launch.args)} args."
        )
    names = tuple(parameter.split(" ")[-1] for parameter in kernel.parameters)
    check_references(launch.reference, names, launch.args)
    table = tensor_table(launch, declared, cwd)
    launcher = launcher_text(entry, declared, launch, table, cwd)
    inside = {name: included for name, included in sources.items() if not name.startswith("..")}
    # Files above the source's folder are found through -I; their text is part of the cache's key.
    outside = hashlib.sha256(repr(sorted(sources.items())).encode("utf-8", "replace")).hexdigest()[:16]
    reads = tuple(folder.resolve() for folder in (source.parent, *program.includes))
    folders = (f"-I{folder}" for folder in reads)
    dtypes = _dtypes(kernel, launch, cwd)
    macros = framework_macros(launch.framework, dtypes, "\n".join(texts.values()), program.defines)
    defines = define_flags((*macros, *program.defines))
    try:
        text = without_launches(text)
    except LaunchSyntaxError as error:
        raise CandidateError("compile", f"{source.name}: {error}") from error
    whole = f'{_prologue(launch, source, texts.values())}{text}\n#line 1 "launch.json"\n{launcher}'
    built = build_files(
        prepare(),
        {KERNEL: whole, **inside},
        glue=_GLUE.format(block_dim=launch.block_dim, workspace=launch.workspace_bytes),
        options=(*_PACKAGE, *folders, f"-DEVOKERNEL_INCLUDED_{outside}", *defines),
        label=source.name,
        kernels={kernel.name: _as_launched(kernel, launch.framework)},
        around=Around((*reads, *{path.parent for path in texts}), tuple(path.name for path in texts)),
    )
    return Bare(built, launch, names, table)


def find_kernel(program: ProgramSource, texts: Mapping[Path, str], entry: str) -> DeclaredKernel:
    """The kernel that ``--entry`` names. Raises UsageError where there is none."""
    kernels = kernels_of(program, texts)
    name = entry.partition("<")[0].rpartition("::")[2]
    if name not in kernels:
        known = f" (it has {', '.join(sorted(kernels))})" if kernels else ""
        raise UsageError(f"{program.files[0]} has no __global__ function {entry!r}{known}; check --entry.")
    return kernels[name]


def _dtypes(kernel: DeclaredKernel, launch: LaunchFile, cwd: Path) -> dict[str, str]:
    """The dtypes of the tensors by the names of the kernel's parameters, in upper case."""
    result = {}
    for parameter, arg in zip(kernel.parameters, launch.args, strict=False):
        name = parameter.split(" ")[-1].upper()
        file = str(arg.get("in", ""))
        if "dtype" in arg:
            result[name] = str(arg["dtype"])
        elif file.endswith(".npy"):
            result[name] = str(np.load(_resolve(file, cwd), mmap_mode="r").dtype)
    return {name: dtype for name, dtype in result.items() if dtype in DTYPE_MACROS}


def _as_launched(kernel: DeclaredKernel, framework: Framework) -> DeclaredKernel:
    """The kernel with the cores of this launch: its type, or that of its tiling key."""
    ratio = kernel_type(framework.kernel_type) or kernel.by_key.get(framework.tiling_key or 0, kernel.ratio)
    return evolve(kernel, ratio=ratio, by_key={})


_PACKAGE = ("-Wno-error=narrowing",)
"""Builds of operator packages take values inside braces that are wider than what they initialise, as kernels
that are shipped for the chip show; the compiler of programs refuses them."""
_HOST_RUNTIME = re.compile(r"\b(?:aclrt[A-Z]\w*|aclError|ACL_[A-Z]\w*)\b")
"""Names of acl/acl.h, which the device compiler includes by itself for host functions beside a kernel."""


def _prologue(launch: LaunchFile, source: Path, texts: Iterable[str]) -> str:
    """What comes before the kernel's file: its tiling structures, numbers for its conditions, and the host's
    runtime where it names it."""
    whole = "\n".join(texts)
    header, numbers = launch.framework.tiling_header, number_definitions(whole)
    given = launch.framework.tiling_text
    runtime = '#include "acl/acl.h"\n' if _HOST_RUNTIME.search(whole) else ""
    if not (header or numbers or given or runtime):
        return ""
    # Headers of the host define tiling structures in a namespace that kernels do not name.
    included = f'#include "{header}"\nnamespace optiling {{}} using namespace optiling;\n' if header else ""
    return f'#include "kernel_operator.h"\n{runtime}{included}{given}{numbers}#line 1 "{source.name}"\n'


@frozen
class TensorTable:
    """The tensors of a launch in the runner's order, inputs before outputs, and the launcher's arguments.

    An input is a file, or the bytes of a list's block; an output is the part of the launch that names it.
    ``patches`` are C++ statements that write addresses into those blocks.
    """

    inputs: tuple[Mapping[str, Any] | bytes, ...]
    outputs: tuple[Mapping[str, Any], ...]
    arguments: tuple[str, ...]
    patches: tuple[str, ...] = ()


class _Table:
    """Collects the tensors of a launch; the numbers of outputs are known when all inputs are."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.inputs: list[Mapping[str, Any] | bytes] = []
        self.outputs: list[Mapping[str, Any]] = []
        self.patches: list[tuple[int, int, str]] = []

    def place(self, arg: Mapping[str, Any]) -> str:
        """How the launcher names a tensor: ``I3`` or ``O0``, ``nullptr`` for one that is absent."""
        if "null" in arg:
            return "nullptr"
        if "list" in arg:
            return self._list(arg["list"])
        if "out" in arg:
            self.outputs.append(arg)
            return f"O{len(self.outputs) - 1}"
        self.inputs.append(arg)
        return f"I{len(self.inputs) - 1}"

    def _list(self, items: Sequence[Mapping[str, Any]]) -> str:
        """A block with the shapes, then the addresses, as ListTensorDesc reads it."""
        words: list[int] = []
        for index, item in enumerate(items):
            known = "shape" in item
            sizes = item["shape"] if known else np.load(_resolve(item["in"], self.cwd), mmap_mode="r").shape
            words += [index << 32 | len(sizes), *sizes]
        first = 1 + len(words)
        block = np.array([8 * first, *words, *[0] * len(items)], np.uint64)
        self.inputs.append(block.tobytes())
        place = len(self.inputs) - 1
        self.patches += [(place, first + index, self.place(item)) for index, item in enumerate(items)]
        return f"I{place}"

    def text(self, place: str) -> str:
        if place == "nullptr":
            return place
        number = int(place[1:]) + (len(self.inputs) if place[0] == "O" else 0)
        return f"tensors[{number}]"


def tensor_table(launch: LaunchFile, declared: Sequence[Sequence[Token]], cwd: Path) -> TensorTable:
    """The tensors of a launch; arguments that are none are "" here. Raises UsageError."""
    table = _Table(cwd)
    places: list[str] = []
    for arg, types in zip(launch.args, declared, strict=True):
        if "same" in arg:
            places.append(places[arg["same"]])
        else:
            places.append(table.place(arg) if _is_tensor(arg, types) else "")
    patches = tuple(
        f"reinterpret_cast<void **>(tensors[{block}])[{word}] = {table.text(place)};"
        for block, word, place in table.patches
    )
    arguments = tuple(table.text(place) if place else "" for place in places)
    return TensorTable(tuple(table.inputs), tuple(table.outputs), arguments, patches)


def launcher_text(
    entry: str, declared: Sequence[Sequence[Token]], launch: LaunchFile, table: TensorTable, cwd: Path
) -> str:
    """C++ that launches the kernel with the arguments of a LAUNCH.json. Raises UsageError."""
    arguments, prologue = [], list(table.patches)
    for position, (arg, types) in enumerate(zip(launch.args, declared, strict=True)):
        if table.arguments[position]:
            arguments.append(table.arguments[position])
        elif "workspace" in arg:
            arguments.append("workspace")
        elif "scalar" in arg:
            arguments.append(f"static_cast<{SCALARS[arg['scalar']]}>({_literal(arg['value'])})")
        else:
            prologue.append(_by_value(position, _resolve(arg["bytes"], cwd).read_bytes(), types))
            arguments.append(f"argument{position}")
    key = launch.framework.tiling_key
    if key is not None:
        prologue.append(f"::evokernel::twin::SetTilingKey({key}ULL);")
    name = entry + launch.framework.template_text()
    call = f"{name}<<<{launch.block_dim}, nullptr, stream>>>({', '.join(arguments)});"
    parameters = "void *stream, uint8_t *const *tensors, uint8_t *workspace, const void *"
    head = f'extern "C" void EvokernelLaunch({parameters})'
    return "\n".join(["#include <cstring>", head, "{", *prologue, call, "}", ""])


def _is_tensor(arg: Mapping[str, Any], declared: Sequence[Token]) -> bool:
    """Whether an argument travels as a tensor: bytes do where the kernel takes an address."""
    if "bytes" in arg:
        return _takes_address(declared)
    return "workspace" not in arg and "scalar" not in arg


def _takes_address(declared: Sequence[Token]) -> bool:
    return any(token.text in ("GM_ADDR", "*") for token in declared)


def _by_value(position: int, data: bytes, declared: Sequence[Token]) -> str:
    """A structure passed by value, filled from bytes."""
    kind = " ".join(token.text for token in declared[:-1] if token.text not in ("const", "&"))
    literal = ", ".join(str(byte) for byte in data)
    name = f"argument{position}"
    return (
        f"const unsigned char bytes{position}[] = {{{literal}}}; {kind} {name}; "
        f'static_assert(sizeof({name}) == {len(data)}, "the bytes file has another size than the parameter");'
        f"std::memcpy(static_cast<void *>(&{name}), bytes{position}, sizeof({name}));"
    )


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}LL"
    return f"{float(value)!r}" if np.isfinite(float(value)) else _infinite(float(value))


def _infinite(value: float) -> str:
    return '__builtin_nan("")' if np.isnan(value) else f"{'-' if value < 0 else ''}__builtin_inf()"


def _resolve(name: str, cwd: Path) -> Path:
    path = cwd / name
    if not path.exists():
        raise UsageError(f"{path} of the launch file does not exist; paths are relative to --cwd.")
    return path


def run_bare(
    bare: Bare,
    cwd: Path,
    how: tuple[Mode, Chip, Path | None],
    limits: Limits | None = None,
    *,
    auto_sync: bool = True,
) -> tuple[RunResult, tuple[str, ...]]:
    """Runs the launch on its files; the result, and a sentence for each output that is not as expected.

    ``how``: mode, chip, and where the timeline goes. Outputs are written to their files. Without
    ``auto_sync`` the compiler is taken to insert no barriers (``--cce-auto-sync=off``).
    """
    mode, chip, trace = how
    with temporary.folder("bare") as name:
        folder = Path(name)
        outputs = bare.tensors.outputs
        request = RunRequest(
            mode=mode,
            chip=chip,
            inputs=tuple(_input_files(bare.tensors.inputs, cwd, folder)),
            outputs=tuple(_output_file(arg, folder / f"out{i}", cwd) for i, arg in enumerate(outputs)),
            trace=trace.resolve() if trace else None,
            auto_sync=auto_sync,
            refuse_unknown=True,
        )
        result = run_kernel(bare.built, request, limits, scratch=folder)
        if mode is Mode.TIME or result.status is not ExitStatus.OK:
            return result, ()
        for tensor, arg in zip(request.outputs, outputs, strict=True):
            assert tensor.path is not None  # set above
            _write_output(tensor.path, arg, cwd)
    return result, tuple(_mismatches(bare, cwd))


def _nbytes(arg: Mapping[str, Any]) -> int:
    return nbytes_of(arg["dtype"], math.prod(int(size) for size in arg["shape"]))


def _input_files(
    inputs: Sequence[Mapping[str, Any] | bytes], cwd: Path, folder: Path
) -> Iterator[TensorFile]:
    """The inputs as raw files, in order; a .npy file loses its header on the way. Timing mode gets their data
    too: a kernel's scalar unit may read how often it loops."""
    for index, operand in enumerate(inputs):
        target = folder / f"in{index}.bin"
        if isinstance(operand, bytes):
            target.write_bytes(operand)
            yield TensorFile(target, len(operand), is_list=True)
            continue
        path = _resolve(operand.get("in") or operand["bytes"], cwd)
        target.write_bytes(_raw(path, operand.get("dtype", "")))
        yield TensorFile(target, target.stat().st_size)


def _raw(path: Path, dtype: str) -> bytes:
    """The elements of a file as they lie in memory."""
    return to_memory(np.load(path), dtype) if path.suffix == ".npy" else path.read_bytes()


def _output_file(arg: Mapping[str, Any], place: Path, cwd: Path) -> TensorFile:
    """Where an output goes, with what it holds before where the launch says so."""
    initial = None
    if "from" in arg:
        initial = place.with_suffix(".initial")
        initial.write_bytes(_raw(_resolve(arg["from"], cwd), arg["dtype"]))
    return TensorFile(place.with_suffix(".bin"), _nbytes(arg), initial)


def _write_output(raw: Path, arg: Mapping[str, Any], cwd: Path) -> None:
    target = cwd / arg["out"]
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".npy":
        values = from_memory(raw.read_bytes(), arg["dtype"], math.prod(map(int, arg["shape"])))
        np.save(target, values.reshape(arg["shape"]))
    else:
        target.write_bytes(raw.read_bytes())


def _mismatches(bare: Bare, cwd: Path) -> Iterator[str]:
    """A sentence for each output that is not as expected."""
    launch = bare.launch
    outputs = {arg["out"]: arg for arg in outputs_of(launch.args)}
    for name in (*launch.expect, *launch.reference):
        if name not in outputs:
            raise UsageError("The launch file compares {name}, which is no output of it.", name=name)
    for name, golden in launch.expect.items():
        wanted = elements_of(_resolve(golden, cwd), outputs[name]["dtype"])
        yield from compared(outputs[name], cwd, wanted, golden, launch.tolerance)
    for name, expression in launch.reference.items():
        wanted = expression.value(operands(expression, bare.parameters, launch.args, cwd))
        yield from compared(outputs[name], cwd, wanted, expression.text, launch.tolerance)


_GLUE = """\
#include <cstdint>
extern "C" int EvokernelComputeTiling(const int64_t *, const float *, uint32_t, uint64_t, void *, uint64_t,
                                      uint32_t *blockDim, uint64_t *workspaceBytes)
{{
    *blockDim = {block_dim};
    *workspaceBytes = {workspace};
    return 1;
}}
"""
