"""Kernels of a few lines, compiled against the twin and run on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from attrs import frozen

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import BuiltKernel, build_files, prepare
from evokernel_core.twin.run import Mode, RunRequest, RunResult, TensorFile, run_kernel
from tests.chinese import left_in_english
from tests.homes import own_home
from tests.twin.both import run_both

Array = npt.NDArray[np.generic]

TILING = """#pragma once
#include <cstdint>
struct OpTiling {{ uint32_t blockDim; uint64_t workspaceBytes; int64_t size[24]; float scalar[4]; }};
inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t, uint64_t, OpTiling &tiling)
{{
    tiling.blockDim = {blocks};
    tiling.workspaceBytes = {workspace};
    for (int i = 0; i < {sizes}; ++i) {{ tiling.size[i] = sizes[i]; }}
    for (int i = 0; i < {scalars}; ++i) {{ tiling.scalar[i] = scalars[i]; }}
    return true;
}}
"""

KERNEL = """#include "kernel_operator.h"
#include "tiling.h"
using namespace AscendC;
{prelude}
extern "C" __global__ __vector__ void tested(GM_ADDR *t, GM_ADDR workspace, OpTiling tiling)
{{
{body}
}}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{{
    {launch};
}}
"""
CALL = "tested<<<tiling.blockDim, nullptr, stream>>>(const_cast<GM_ADDR *>(tensors), workspace, tiling)"
KIND_CALL = (
    'evokernel::twin::Launch("tested", evokernel::twin::LaunchKind{{{cube}, {vector}, {mixed}}}, '
    "tiling.blockDim, nullptr, stream, "
    "[=]() {{ tested(const_cast<GM_ADDR *>(tensors), workspace, tiling); }})"
)
"""A launch with that many cube and vector cores a block, of a mix kernel type or not."""


@frozen
class Ran:
    """What came of one run."""

    result: RunResult
    outputs: tuple[Array, ...]

    def codes(self, severity: str = "error") -> set[str]:
        """The hazard codes of that severity."""
        return {hazard.code for hazard in self.result.hazards if hazard.severity == severity}


@frozen
class CompiledBody:
    """A compiled kernel whose body sees tensors ``t[i]`` (inputs, then outputs) and ``tiling``."""

    built: BuiltKernel
    folder: Path

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[tuple[int, npt.DTypeLike]],
        sizes: Sequence[int] = (),
        scalars: Sequence[float] = (),
        mode: Mode = Mode.CHECK,
        auto_sync: bool = True,
        one_process: bool = False,
    ) -> Ran:
        """Runs on the arrays; ``outputs``: (elements, dtype) of each. ``one_process``: the body reads device
        memory through pointers of C++, or names functions that only the twin itself uses."""
        files = [self._file(f"in{i}.bin", array) for i, array in enumerate(inputs)]
        wanted = [
            TensorFile(self.folder / f"out{i}.bin", count * np.dtype(dtype).itemsize)
            for i, (count, dtype) in enumerate(outputs)
        ]
        request = RunRequest(
            mode=mode,
            chip=load_chip(),
            sizes=tuple(sizes),
            scalars=tuple(scalars),
            inputs=tuple(files),
            outputs=tuple(wanted),
            auto_sync=auto_sync,
        )
        result = (run_kernel if one_process else run_both)(self.built, request)
        arrays = (
            ()
            if mode is Mode.TIME
            else tuple(self._read(w, o[1]) for w, o in zip(wanted, outputs, strict=True))
        )
        said = [hazard.message for hazard in result.hazards if hazard.code != "assert"]
        assert not any(map(left_in_english, said)), said
        return Ran(result, arrays)

    def run_files(
        self,
        inputs: Sequence[TensorFile],
        outputs: Sequence[TensorFile],
        sizes: Sequence[int] = (),
        mode: Mode = Mode.TIME,
    ) -> Ran:
        """Runs on tensors of given bytes, whose data does not matter."""
        request = RunRequest(
            mode=mode, chip=load_chip(), sizes=tuple(sizes), inputs=tuple(inputs), outputs=tuple(outputs)
        )
        return Ran(run_both(self.built, request), ())

    def _file(self, name: str, array: Array) -> TensorFile:
        path = self.folder / name
        np.ascontiguousarray(array).tofile(path)
        return TensorFile(path, array.nbytes)

    def _read(self, file: TensorFile, dtype: npt.DTypeLike) -> Array:
        assert file.path is not None
        return np.fromfile(file.path, dtype)


Compile = Callable[..., CompiledBody]


@pytest.fixture(scope="session")
def compile_kernel(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a kernel body (see ``CompiledBody``); the same text is compiled once."""

    def build(
        body: str,
        *,
        sizes: int = 0,
        scalars: int = 0,
        blocks: int | str = 1,
        workspace: int = 0,
        prelude: str = "",
        kind: tuple[int | str, int | str, str] | None = None,
    ) -> CompiledBody:
        tiling = TILING.format(blocks=blocks, workspace=workspace, sizes=sizes, scalars=scalars)
        launch = CALL if kind is None else KIND_CALL.format(cube=kind[0], vector=kind[1], mixed=kind[2])
        text = KERNEL.format(prelude=prelude, body=body, launch=launch)
        # Past the check of device calls, so that helpers here need no marks.
        built = build_files(prepare(), {"op_kernel.cpp": text, "tiling.h": tiling})
        return CompiledBody(built, tmp_path_factory.mktemp("kernel"))

    return build


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


@pytest.fixture(scope="session")
def zeros_of() -> Callable[[int], TensorFile]:
    """A tensor of so many bytes for timing mode, where no data moves."""
    return lambda nbytes: TensorFile(None, nbytes)
