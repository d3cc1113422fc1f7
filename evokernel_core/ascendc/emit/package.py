"""Kernel packages: everything around the two math files, written to the user's tree at once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from evokernel_core.ascendc.emit import binding, updates
from evokernel_core.ascendc.emit.reference import python_name, statements, tensor_inputs
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import GraphInput, InputKind, Update
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict

ROOT_PACKAGE = "evokernel_kernels"
FORMAT = 1
"""Version of kernel.json."""
_ROOT_INIT = '"""Ascend NPU kernels that EvoKernel wrote and verified; one package each."""\n'
_LARGEST_TEST = 1 << 22
"""Elements; larger captured sizes are not part of a package's own test."""

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # the output is code, not HTML
)


def kernel_name(task: KernelTask) -> str:
    """The operator's name: the task's own with the head of its hash, such as ``softmax_3f9a1c2b``."""
    stem = re.sub(r"\W+", "_", task.name).strip("_").lower() or "fused"
    stem = stem if stem[0].isalpha() else f"op_{stem}"
    return f"{stem}_{task.task_id[:8]}"


def import_root(file: Path) -> Path:
    """The folder from which Python imports the file: its first ancestor that is not a package."""
    folder = file.resolve().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def write_package(root: Path, name: str, task: KernelTask, source: KernelSource, verdict: Verdict) -> Path:
    """Write ``root/evokernel_kernels/name`` and return it; readers see the old package or the new.

    Raises OSError where the folder cannot be written.
    """
    parent = root / ROOT_PACKAGE
    parent.mkdir(parents=True, exist_ok=True)
    _write_once(parent / "__init__.py", _ROOT_INIT)
    staging = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        for file, text in package_files(name, task, source, verdict).items():
            (staging / file).write_text(text)
        staging.chmod(0o755)
        return _swap_in(staging, parent / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        temporary = path.with_name(f".{path.name}-{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(path)


def _swap_in(staging: Path, target: Path) -> Path:
    """Rename the staged folder into place, moving an older package aside first."""
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
        try:
            target.rename(old / target.name)
            staging.rename(target)
        finally:
            shutil.rmtree(old, ignore_errors=True)
        return target
    staging.rename(target)
    return target


def package_files(name: str, task: KernelTask, source: KernelSource, verdict: Verdict) -> dict[str, str]:
    """Every file of a package by name."""
    schema = {
        "name": name,
        "computes": updates.functional_name(name, task),
        "schema_arguments": binding.schema_arguments(task),
        "schema_results": binding.schema_results(task),
    }
    arguments = ", ".join(python_name(item.name) for item in task.graph.inputs)
    return {
        "op_kernel.cpp": source.op_kernel_cpp,
        "tiling.h": source.tiling_h,
        "op_torch.cpp": _render("op_torch.cpp", **schema, **binding.context(task)),
        "CMakeLists.txt": _render("CMakeLists.txt", name=name),
        "reference.py": _render("reference.py", name=name, arguments=arguments, body=statements(task)),
        "test_op.py": _render("test_op.py", **schema, **_test_context(task), **updates.context(task)),
        "kernel.json": _manifest(name, task, source, verdict),
        "__init__.py": _render("init.py", **schema, **updates.context(task)),
    }


def _render(template: str, **context: Any) -> str:
    return _environment.get_template(f"{template}.jinja").render(**context)


def _manifest(name: str, task: KernelTask, source: KernelSource, verdict: Verdict) -> str:
    data = {
        "format": FORMAT,
        "name": name,
        "task_id": task.task_id,
        "source_id": source.source_id,
        "chip": verdict.latency.chip if verdict.latency else "",
        "files": {"op_kernel.cpp": _sha256(source.op_kernel_cpp), "tiling.h": _sha256(source.tiling_h)},
        "task": to_data(task),
        "strategy": to_data(source.strategy),
        "verdict": to_data(verdict),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_package(folder: Path) -> tuple[KernelTask, KernelSource, dict[str, Any]]:
    """The task, the two files as they are now, and kernel.json. Raises UsageError for a bad folder."""
    try:
        manifest: dict[str, Any] = json.loads((folder / "kernel.json").read_text())
        source = KernelSource(
            tiling_h=(folder / "tiling.h").read_text(),
            op_kernel_cpp=(folder / "op_kernel.cpp").read_text(),
            strategy=from_data(manifest["strategy"], Strategy),
        )
        return from_data(manifest["task"], KernelTask), source, manifest
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{folder} is not a kernel package of EvoKernel; name one that is.") from error


def _test_context(task: KernelTask) -> dict[str, Any]:
    full = task.sizes
    candidates = [full]
    if full:
        candidates += [{s.name: max(min(size, s.size), s.minimum) for s in task.symbols} for size in (3, 17)]
    specs = [item.spec for item in tensor_inputs(task)]
    small = [sizes for sizes in candidates if max(spec.nbytes(sizes) for spec in specs) <= 4 * _LARGEST_TEST]
    return {
        "test_sizes": [repr(sizes) for sizes in small or [full]],
        "test_arguments": [_test_argument(item) for item in task.graph.inputs],
        "test_buffers": [
            f"torch.zeros({_test_shape(item)}, dtype=torch.{item.spec.dtype}, device=device)"
            for item in task.graph.counters
        ],
        "rtol": task.tolerance.rtol,
        "atol": task.tolerance.atol,
    }


def _test_argument(item: GraphInput) -> str:
    if item.kind is InputKind.SCALAR:
        return "1.5"
    return f"tensor({_test_shape(item)}, torch.{item.spec.dtype})"


def _test_shape(item: GraphInput | Update) -> str:
    dims = [re.sub(r"[A-Za-z_]\w*", r'sizes["\g<0>"]', str(dim)) for dim in item.spec.shape]
    return f"({', '.join(dims)},)" if dims else "()"
