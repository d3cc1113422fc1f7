"""What came of an operator's folder: compiled, run, right; as data for tables and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

from evokernel_core import temporary
from evokernel_core.domain.errors import EvoKernelError, UsageError
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import Severity
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.twin.bare import find_kernel
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.operators.build import build_operator, launch_of_no_call
from evokernel_core.twin.operators.case import read_case
from evokernel_core.twin.operators.definition import CHIP, Description, Operator
from evokernel_core.twin.operators.folder import OperatorFolder, read_folder, text_of
from evokernel_core.twin.operators.host import HostProgram, build_host
from evokernel_core.twin.operators.includes import include_folders
from evokernel_core.twin.operators.kernel import kernel_of, of_folder, type_macros
from evokernel_core.twin.operators.run import build_call, run_call
from evokernel_core.twin.run import ExitStatus, Limits, Mode
from evokernel_core.twin.sources import ProgramSource, read_sources

Row = dict[str, Any]
_MISSING = re.compile(
    r"'([\w:]+)' (?:was not declared|is not a member|does not name|has not been declared)"
    r"|no arguments to '(\w+)'|has no member named '(\w+)'|(\S+\.h(?:pp)?): No such file"
    r"|no matching function for call to '([\w:]+)"
)


def missing_in(error: str) -> tuple[str, ...]:
    """Identifiers and headers that a compiler's errors say are not there."""
    return tuple(dict.fromkeys(next(filter(None, name)) for name in _MISSING.findall(error)))


def _row(**known: Any) -> Row:
    empty: Row = {
        "compiled": False, "missing": [], "ran": False, "right": False, "hazards": [], "latency_us": 0.0,
        "compared": False, "clean": False, "error": "", "stage": "",
    }  # fmt: skip
    return {**empty, **known}


def _failed(stage: str, error: EvoKernelError, **known: Any) -> Row:
    return _row(stage=stage, error=str(error), missing=list(missing_in(str(error))), **known)


def compiled_operators(root: Path, project: Path | None, chip: Chip) -> Row:
    """All operators of a folder at once; the first that fails is told of."""
    rows = list(operator_rows(root, project, chip))
    return next((row for row in rows if not row["compiled"]), rows[0])


def operator_rows(root: Path, project: Path | None, chip: Chip) -> Iterator[Row]:
    """A row for each operator of the folder that the chip has, compiled in its first combination of dtypes.

    ``stage`` says what failed: ``host`` for its definition and tiling, ``chip`` where it is for another one,
    ``kernel``, "" for nothing.
    """
    try:
        folder = read_folder(root, project)
        host = build_host(folder)
        description = host.describe(chip)
    except EvoKernelError as error:
        yield _failed("host", error, operator=root.name)
        return
    own = of_folder(folder, description.operators)
    result = [operator for operator in own if operator.is_for_chip or not operator.chips]
    if not description.operators:
        words = "\n".join(text for _, text in host.left_out) or "The host code defines no operator."
        yield _failed("host", CandidateError("compile", words), operator=root.name)
    elif not result:
        names = ", ".join(operator.type for operator in own)
        other = UsageError(
            f"{names} is for other chips than {CHIP}; name an operator that has it in AddConfig."
        )
        yield _failed("chip", other, operator=root.name)
    for operator in result:
        yield _kernel_row(folder, host, description, operator)


def _kernel_row(
    folder: OperatorFolder, host: HostProgram, description: Description, operator: Operator
) -> Row:
    try:
        kernel = kernel_of(folder, operator)
        includes = include_folders((kernel.path,), folder)
        source = ProgramSource((kernel.path,), includes, tuple(type_macros(operator, 0)))
        resolved = find_kernel(source, read_sources(source), kernel.entry)
        with temporary.folder("report") as work:
            launch = launch_of_no_call(resolved.parameters)
            build_operator(folder, description, operator, 0, launch, Path(work))
    except EvoKernelError as error:
        words = "\n".join(causes_first(str(error), host.left_out, folder.host))
        return _failed("kernel", CandidateError("compile", words), operator=operator.type)
    return _row(operator=operator.type, compiled=True, error="\n".join(text for _, text in host.left_out))


def causes_first(error: str, left_out: Sequence[tuple[str, str]], sources: Sequence[Path]) -> tuple[str, ...]:
    """A kernel's error with those of the host sources that do not compile, ``(file, error)``. Host code that
    names what the kernel misses, as its tiling structure, is the cause and comes first."""
    absent = missing_in(error)
    named = {path.name for path in sources if any(name in text_of(path) for name in absent)}
    causes = tuple(text for file, text in left_out if Path(file).name in named)
    others = tuple(text for file, text in left_out if Path(file).name not in named)
    return (*causes, error, *others)


def ran_case(
    root: Path, project: Path | None, chip: Chip, case_file: Path, how: tuple[Mode, Limits, bool]
) -> Row:
    """One call with the vendor's own tiling. ``how``: mode, limits, whether the compiler inserts barriers.

    ``right`` needs outputs that were compared: a case without expectations, or timing mode, shows nothing.
    """
    mode, limits, auto_sync = how
    case = read_case(case_file)
    known: Row = {"operator": case.operator or root.name}
    stage = "host"
    try:
        folder = read_folder(root, project)
        host = build_host(folder)
        description = host.describe(chip)
        with temporary.folder("operator") as name:
            work = Path(name)
            copytree(case_file.parent, work, dirs_exist_ok=True)
            stage = "kernel"
            call = build_call(folder, host, description, case, chip, work)
            result, mismatches = run_call(call, (mode, chip, None), limits, auto_sync=auto_sync)
    except EvoKernelError as error:
        return _failed(stage if isinstance(error, CandidateError) else "call", error, **known)
    ran = result.status is ExitStatus.OK
    compared = ran and bool(case.expect) and mode is Mode.CHECK
    clean = not any(hazard.severity is Severity.ERROR for hazard in result.hazards)
    return _row(
        **known, compiled=True, ran=ran, compared=compared, clean=clean,
        right=compared and not mismatches,
        hazards=[_hazard(to_data(hazard)) for hazard in result.hazards], latency_us=result.latency_us,
        error=" ".join([result.message, *mismatches]).strip(),
    )  # fmt: skip


def _hazard(data: Mapping[str, Any]) -> Row:
    return {key: data[key] for key in ("code", "severity", "message", "file", "line")}
