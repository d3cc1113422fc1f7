"""One combination of dtypes of an operator, compiled with a launch of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.twin.bare import Bare, LaunchFile, build_bare
from evokernel_core.twin.framework import Framework
from evokernel_core.twin.operators.definition import Description, Operator
from evokernel_core.twin.operators.folder import OperatorFolder
from evokernel_core.twin.operators.includes import include_folders
from evokernel_core.twin.operators.kernel import kernel_of, tiling_text, type_macros
from evokernel_core.twin.sources import ProgramSource


@frozen
class Launch:
    """How one call starts: blocks, workspace in bytes, tiling key, and the kernel's arguments in order."""

    block_dim: int
    workspace_bytes: int
    tiling_key: int
    args: tuple[Mapping[str, Any], ...]


def build_operator(
    folder: OperatorFolder,
    description: Description,
    operator: Operator,
    combination: int,
    launch: Launch,
    work: Path,
) -> Bare:
    """Compiles the operator's kernel for one launch; ``work`` holds the launch's files.

    Raises CandidateError where it does not compile, UsageError where the folder has no such kernel.
    """
    kernel = kernel_of(folder, operator)
    structure = description.tilings.get(operator.type, "")
    framework = Framework(
        tiling_key=launch.tiling_key,
        tiling_text=tiling_text(description),
        tiling_struct=description.tilings.get(f"{operator.type}_{launch.tiling_key}", structure),
    )
    includes = include_folders((kernel.path,), folder)
    program = ProgramSource((kernel.path,), includes, tuple(type_macros(operator, combination)))
    file = LaunchFile(launch.block_dim, launch.args, {}, 0.0, 0.0, launch.workspace_bytes, framework)
    return build_bare(program, kernel.entry, file, work)


def launch_of_no_call(parameters: Sequence[str]) -> Launch:
    """What a kernel with these parameters is compiled for when no call of it is known; it is not run."""
    plain = [{"in": f"{index}.bin"} for index in range(len(parameters) - 2)]
    return Launch(1, 0, 0, (*plain, {"workspace": 0}, {"in": "tiling.bin"}))
