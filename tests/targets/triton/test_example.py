"""The package in examples/ is the one that the author writes today."""

from __future__ import annotations

from pathlib import Path

from evokernel_core.cli.verify import _package
from evokernel_core.targets import author_for

FOLDER = Path(__file__).parents[3] / "examples" / "triton" / "evokernel_kernels"


def test_the_kernel_is_what_the_author_writes() -> None:
    (folder,) = (path.parent for path in FOLDER.glob("*/kernel.json"))
    task, source = _package(folder, "triton", changed=False)
    assert author_for("nvidia_h200").write(task, source.strategy).files == source.files
