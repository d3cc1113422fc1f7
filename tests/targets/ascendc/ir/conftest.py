"""Kernels built in the IR, run on the twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.print import files
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, TensorFile, run_kernel


@pytest.fixture
def on_kernel(builder: Any, chip: Any, tmp_path_factory: Any) -> Callable[..., Any]:
    """A function of a kernel and its input x [n, ...], float32: the output of the same shape on the twin in
    checked mode; any hazard fails the test. ``auto_sync``: whether the compiler inserts barriers."""

    def run(kernel: Kernel, x: Any, *, auto_sync: bool = True) -> Any:
        graph = builder()
        node = graph.call("relu.default", graph.input("x", ("n",)), shape=("n",))
        text = files.single(stage_text(kernel, graph.task(node, symbols={"n": 4}), "built"), 2)
        folder = tmp_path_factory.mktemp("kernel")
        (folder / "x.bin").write_bytes(x.astype(np.float32).tobytes())
        request = RunRequest(
            Mode.CHECK,
            chip,
            sizes=(len(x),),
            inputs=(TensorFile(folder / "x.bin", x.nbytes),),
            outputs=(TensorFile(folder / "y.bin", x.nbytes),),
            repeat=2,
            auto_sync=auto_sync,
        )
        result = run_kernel(build_kernel(ascendc_source(*text, Strategy("built"))), request)
        assert result.status is ExitStatus.OK, result.message
        assert not result.hazards
        return np.fromfile(folder / "y.bin", np.float32).reshape(x.shape)

    return run
