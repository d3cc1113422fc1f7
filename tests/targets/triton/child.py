"""Processes that run or compile kernels in Triton for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from attrs import frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.backends.interpreter_case import call_of
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import FILES, KERNEL, LAUNCH

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent


@frozen
class Child:
    """A process that answers each line with a line."""

    process: subprocess.Popen[str]

    def ask(self, request: Mapping[str, Any]) -> None:
        """Raises AssertionError with what the child says of a failure."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        failure = json.loads(self._line(self.process.stdout))
        assert not failure, failure

    @staticmethod
    def _line(stream: IO[str] | None) -> str:
        assert stream is not None
        line = stream.readline()
        assert line, "the child ended"
        return line


def child(script: str, **environment: str) -> Iterator[Child]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, str(HERE / script)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield Child(process)
        assert process.stdin is not None
        process.stdin.close()


def write_source(source: KernelSource, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_text(source.files[name])


def raw(values: Any, dtype: str) -> bytes:
    """The elements of an array in a dtype, bfloat16 to the nearest even."""
    if dtype != "bfloat16":
        return bytes(np.ascontiguousarray(values, dtype).tobytes())
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    nans = np.isnan(np.asarray(values, np.float32))
    return bytes(np.where(nans, np.uint16(0x7FC0), rounded).astype(np.uint16).tobytes())


def elements(data: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of raw elements, floats as float64."""
    if dtype == "bfloat16":
        values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(data, dtype)
    return (
        values.astype(np.float64) if dtype.endswith(("16", "32", "64")) and "float" in dtype else values
    ).reshape(shape)


def run_source(
    interpreter: Child,
    folder: Path,
    task: KernelTask,
    source: KernelSource,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
) -> list[Any]:
    """The outputs of a kernel, floats as float64; a rule of memory that is broken fails."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {**task.sizes, **(sizes or {})}
    record = read_launches(source.files[LAUNCH])
    tensors = [one for one in task.graph.inputs if one.kind is not InputKind.SCALAR]
    scalars = tuple(float(inputs[one.name]) for one in task.graph.inputs if one.kind is InputKind.SCALAR)
    blobs = [raw(inputs[one.name], one.spec.dtype) for one in tensors]
    specs = task.graph.output_specs()
    bound = [sizes[symbol.name] for symbol in task.symbols]
    call = call_of(
        task, record, bound, scalars, list(map(len, blobs)), [spec.nbytes(sizes) for spec in specs]
    )
    given = [str(folder / f"in{place}.bin") for place in range(len(blobs))]
    made = [str(folder / f"out{place}.bin") for place in range(len(specs))]
    for path, blob in zip(given, blobs, strict=True):
        Path(path).write_bytes(blob)
    head = call.head(record.inputs, repeat=2)
    interpreter.ask({"kernel": source.files[KERNEL], "head": head, "inputs": given, "outputs": made})
    pairs = zip(made, specs, strict=True)
    return [elements(Path(path).read_bytes(), spec.dtype, spec.sizes(sizes)) for path, spec in pairs]
