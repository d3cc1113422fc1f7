"""One combination of dtypes of an operator, compiled with a launch of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.twin.bare import Bare, LaunchFile, build_bare, find_kernel
from evokernel_core.twin.framework import Framework
from evokernel_core.twin.operators.definition import Description, Operator, Template
from evokernel_core.twin.operators.folder import OperatorFolder
from evokernel_core.twin.operators.includes import include_folders
from evokernel_core.twin.operators.kernel import kernel_of, tiling_text, type_macros
from evokernel_core.twin.operators.templates import arguments, template_of
from evokernel_core.twin.sources import ProgramSource, read_sources


@frozen
class OperatorLaunch:
    """How one call starts: blocks, workspace in bytes, tiling key, and the kernel's arguments in order.

    Without a key (None) it is that of the first choice of template arguments, else 0.
    """

    block_dim: int
    workspace_bytes: int
    tiling_key: int | None
    args: tuple[Mapping[str, Any], ...]


def build_operator(
    folder: OperatorFolder,
    description: Description,
    operator: Operator,
    combination: int,
    launch: OperatorLaunch,
    work: Path,
) -> Bare:
    """Compiles the operator's kernel for one launch; ``work`` holds the launch's files.

    Raises CandidateError where it does not compile, UsageError where the folder has no such kernel.
    """
    kernel = kernel_of(folder, operator)
    includes = include_folders((kernel.path,), folder)
    program = ProgramSource((kernel.path,), includes, tuple(type_macros(operator, combination)))
    template = _template(description, operator, program, kernel.entry)
    key = launch.tiling_key
    if key is None:
        key = template.first_key if template else 0
    structure = description.tilings.get(operator.type, "")
    framework = Framework(
        tiling_key=key,
        template=arguments(template, key, operator, combination) if template else (),
        tiling_text=tiling_text(description),
        tiling_struct=description.tilings.get(f"{operator.type}_{key}", structure),
    )
    file = LaunchFile(launch.block_dim, launch.args, {}, 0.0, 0.0, launch.workspace_bytes, framework)
    return build_bare(program, kernel.entry, file, work)


def _template(
    description: Description, operator: Operator, program: ProgramSource, entry: str
) -> Template | None:
    """What is declared of the kernel's template; None for a kernel that is none."""
    result = template_of(description, operator)
    if result is None or not find_kernel(program, read_sources(program), entry).template:
        return None
    return result


def launch_of_no_call(parameters: Sequence[str]) -> OperatorLaunch:
    """What a kernel with these parameters is compiled for when no call of it is known; it is not run."""
    plain = [{"in": f"{index}.bin"} for index in range(len(parameters) - 2)]
    return OperatorLaunch(1, 0, None, (*plain, {"workspace": 0}, {"in": "tiling.bin"}))
