"""Kernel packages: everything around the files of a kernel, written to the user's tree at once."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from jinja2 import FileSystemLoader

from evokernel_core.domain.admission import read_task
from evokernel_core.domain.arguments import numbers_of, takes_lists
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import TaskRefused, UsageError
from evokernel_core.domain.graph import Graph, GraphInput, InputKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.title import title_of
from evokernel_core.foreign import read_foreign_object
from evokernel_core.import_root import import_root
from evokernel_core.package import call_site, fallbacks
from evokernel_core.package.integrity import (
    MANIFEST,
    UNREADABLE,
    check_unchanged,
    digest,
    read_source,
    record_of,
    records_of,
    sealed,
    target_of,
)
from evokernel_core.package.packaging import DeviceWords, PackagedKernel, Packaging
from evokernel_core.package.reference import python_name, statements, tensor_inputs
from evokernel_core.package.schema import schema_arguments, schema_results
from evokernel_core.package.verified import VerifiedKernel, read_verified, record
from evokernel_core.templates import text_environment

ROOT_PACKAGE = "evokernel_kernels"
FORMAT = 5
"""Version of kernel.json: 2 has the call site with its guards, 3 the digests of all files and of itself,
4 names its task by its mathematics, 5 the target and the files of its kernel."""
SEVERAL_FORMAT = 6
"""Of packages with a kernel for each of several targets: the last one that was written stands in
kernel.json's own fields, those beside it in ``also``."""
_LARGEST_TEST = 1 << 22
"""Elements; larger captured sizes are not part of a package's own test."""

_environment = text_environment(FileSystemLoader(Path(__file__).parent / "templates"))
_environment.globals["fallbacks"] = fallbacks.functions()


def kernel_name(task: KernelTask, site: CallSite) -> str:
    """The operator's name: the task's own with the head of a hash, such as ``softmax_3f9a1c2b``. Call sites
    with other guards or operands have packages of their own."""
    stem = re.sub(r"\W+", "_", task.name).strip("_").lower() or "fused"
    stem = stem if stem[0].isalpha() else f"op_{stem}"
    return f"{stem}_{digest(task.task_id + site.digest)[:8]}"


@frozen
class Placed:
    """Where a kernel is called: the file below the folder that imports start from, the function, and the
    call site."""

    file: str
    symbol: str
    site: CallSite


def placed(region: Region) -> Placed:
    """Of a region with a kernel. Raises UsageError for one without."""
    if region.site is None:
        raise UsageError(
            "No kernel can be written for {symbol}: {reason}", symbol=region.symbol, reason=region.reason
        )
    file = Path(region.file).resolve()
    return Placed(file.relative_to(import_root(file)).as_posix(), region.symbol, region.site)


def write_kernel(
    root: Path,
    task: KernelTask,
    place: Placed,
    kernel: VerifiedKernel,
    packaging: Callable[[str], Packaging],
) -> Path:
    """Write ``root/evokernel_kernels/NAME`` and return it; readers see the old package or the new. Kernels of
    other targets for the same call stay in the package. ``packaging`` gives that of a target by its name.

    Raises UsageError where the folder cannot be written.
    """
    name = kernel_name(task, place.site)
    others = _beside(root / ROOT_PACKAGE / name, task, kernel.source.target, packaging)
    return place_package(root, name, package_files(task, place, (kernel, *others), packaging))


def _beside(
    folder: Path, task: KernelTask, target: str, packaging: Callable[[str], Packaging]
) -> tuple[VerifiedKernel, ...]:
    """The kernels of other targets in a package that is there already, unchanged and for the same task."""
    try:
        known, _, manifest = read_package(folder)
        others = [fields for fields in records_of(manifest) if target_of(fields) != target]
        kernels = tuple(read_verified(folder, fields) for fields in others)
        sources = [kernel.source for kernel in kernels]
        own = all(source.files.keys() == set(packaging(source.target).names) for source in sources)
    except UNREADABLE:
        return ()
    return kernels if own and known == task else ()


def place_package(root: Path, name: str, files: Mapping[str, str]) -> Path:
    """Write these files as ``root/evokernel_kernels/name``, and what all packages share beside it. Raises
    UsageError where the folder leads elsewhere or cannot be written, as on a full disk."""
    parent = root / ROOT_PACKAGE
    if parent.is_symlink() or not (parent.is_dir() or not parent.exists()):
        raise UsageError(
            "{parent} is a link or a file: move it, and kernels are written there.", parent=parent
        )
    try:
        return _placed(parent, name, files)
    except OSError as error:
        raise UsageError(
            "The kernel could not be written below {parent} ({why}): see to that, and ask again.",
            parent=parent,
            why=error.strerror or type(error).__name__,
        ) from error


def _placed(parent: Path, name: str, files: Mapping[str, str]) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    _update(parent / "__init__.py", render("kernels.py"))
    for shared in ("guards.py", "report.py"):
        _update(parent / shared, render(shared))
    staging = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        for file, text in files.items():
            (staging / file).write_text(text)
        staging.chmod(0o755)
        return _swap_in(staging, parent / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _update(path: Path, text: str) -> None:
    if path.is_symlink() or not path.exists() or path.read_text() != text:
        handle, staged = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(staged).chmod(0o644)
        Path(staged).replace(path)


def _swap_in(staging: Path, target: Path) -> Path:
    """Rename the staged folder into place, moving an older package aside first."""
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
        try:
            target.rename(old / target.name)
            try:
                staging.rename(target)
            except OSError:
                (old / target.name).rename(target)
                raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
        return target
    staging.rename(target)
    return target


def package_files(
    task: KernelTask, place: Placed, kernels: Sequence[VerifiedKernel], packaging: Callable[[str], Packaging]
) -> dict[str, str]:
    """Every file of a package by name; of several kernels, one for each target, the first is its own."""
    name = kernel_name(task, place.site)
    parts = parts_of(name, task, kernels, packaging)
    schema = {
        "name": name,
        "lists": takes_lists(task.graph),
        "schema_arguments": schema_arguments(task),
        "schema_results": schema_results(task),
    }
    arguments = ", ".join(python_name(operand.name) for operand in task.graph.inputs)
    files = {
        **{file: text for kernel in kernels for file, text in kernel.source.files.items()},
        **{file: text for part in parts for file, text in part.packaged.files.items()},
        "reference.py": render("reference.py", name=name, arguments=arguments, body=statements(task)),
        "test_op.py": render("test_op.py", **schema, **trial_context(task), **trial_device(name, parts)),
        "__init__.py": render("init.py", **schema, reference=_reference(task.graph), **registration(parts)),
        "call.py": render(
            "call.py",
            name=name,
            file=place.file,
            symbol=place.symbol,
            **call_site.context(task, place.site, conditions(parts), asks_device=asks_device(parts)),
        ),
    }
    return {**files, MANIFEST: sealed(_manifest(name, task, place, kernels), files)}


def _reference(graph: Graph) -> str:
    """The reference as the operator is called: tensors in a list are put around the numbers again."""
    if not takes_lists(graph):
        return "reference"
    given, start, end = [], 0, 0
    for operand in graph.inputs:
        if operand.kind is InputKind.SCALAR:
            given += [f"*tensors[{start}:{end}]", python_name(operand.name)]
            start = end
        else:
            end += 1
    names = ["tensors", *(python_name(graph_input.name) for graph_input in numbers_of(graph))]
    return f"lambda {', '.join(names)}: reference({', '.join([*given, f'*tensors[{start}:]'])})"


def render(template: str, **context: Any) -> str:
    """The text of a template of this folder."""
    return _environment.get_template(f"{template}.jinja").render(**context)


def _manifest(
    name: str, task: KernelTask, place: Placed, kernels: Sequence[VerifiedKernel]
) -> dict[str, Any]:
    own, *others = map(record, kernels)
    return {
        "format": SEVERAL_FORMAT if others else FORMAT,
        "name": name,
        "title": title_of(task, place.symbol),
        "task_id": task.task_id,
        **{key: own.pop(key) for key in ("source_id", "target", "sources", "chip")},
        "call": {**to_data(place), "guards": [guard.condition for guard in place.site.guards]},
        "task": to_data(task),
        **own,
        **({"also": others} if others else {}),
    }


def read_package(
    folder: Path, *, changed: bool = False, target: str = ""
) -> tuple[KernelTask, KernelSource, dict[str, Any]]:
    """The task, a kernel's files as they are now, and kernel.json; the kernel is that of a target, or the one
    that was written last. Raises UsageError for a bad folder and for one without that kernel, TaskRefused for
    a task that is none, and PackageChanged unless ``changed`` says that the files may be others than those
    that were verified."""
    try:
        manifest = read_foreign_object(folder / MANIFEST)
        source = read_source(folder, record_of(manifest, target))
        task = read_task(manifest["task"])
    except UsageError:
        raise
    except RecursionError as error:
        raise TaskRefused(
            "{folder}/{manifest} nests deeper than any that is written.", folder=folder, manifest=MANIFEST
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ExceptionGroup) as error:
        raise UsageError(
            "{folder} is not a kernel package of EvoKernel; name one that is.", folder=folder
        ) from error
    if not changed:
        check_unchanged(folder, manifest, task, source)
    return task, source, manifest


def trial_context(task: KernelTask) -> dict[str, Any]:
    """The variables of test_op.py.jinja but for the operator's schema."""
    full = task.sizes
    candidates = [full]
    if full:
        candidates += [{s.name: max(min(size, s.size), s.minimum) for s in task.symbols} for size in (3, 17)]
    specs = [operand.spec for operand in tensor_inputs(task)]
    small = [sizes for sizes in candidates if max(spec.nbytes(sizes) for spec in specs) <= 4 * _LARGEST_TEST]
    return {
        "test_sizes": [repr(sizes) for sizes in small or [full]],
        "test_arguments": [_test_argument(operand) for operand in task.graph.inputs],
        "rtol": task.tolerance.rtol,
        "atol": task.tolerance.atol,
    }


def _test_argument(graph_input: GraphInput) -> str:
    if graph_input.kind is InputKind.SCALAR:
        return "1.5"
    return f"tensor({_test_shape(graph_input)}, torch.{graph_input.spec.dtype})"


def _test_shape(graph_input: GraphInput) -> str:
    dims = [re.sub(r"[A-Za-z_]\w*", r'sizes["\g<0>"]', str(dim)) for dim in graph_input.spec.shape]
    return f"({', '.join(dims)},)" if dims else "()"


_WIDTH = 110


@frozen
class KernelPart:
    """A kernel as its target packages it."""

    words: DeviceWords
    packaged: PackagedKernel


def parts_of(
    name: str, task: KernelTask, kernels: Sequence[VerifiedKernel], packaging: Callable[[str], Packaging]
) -> tuple[KernelPart, ...]:
    """Those of kernels, in their order. Raises UsageError for a source that is none of its target's."""
    sources = [kernel.source for kernel in kernels]
    targets = [packaging(source.target) for source in sources]
    alone = [target.packaged(name, task, source, ()) for target, source in zip(targets, sources, strict=True)]
    own = [{*source.files, *part.files} for source, part in zip(sources, alone, strict=True)]
    every = frozenset().union(*own)
    return tuple(
        KernelPart(target.words, target.packaged(name, task, source, every - names))
        for target, source, names in zip(targets, sources, own, strict=True)
    )


def asks_device(parts: Sequence[KernelPart]) -> bool:
    """Whether a call asks which device its kernel is for. In packages of a library alone, which once were the
    only ones, it is an NPU."""
    return any(part.packaged.host for part in parts)


def conditions(parts: Sequence[KernelPart]) -> list[str]:
    """What kernels ask of a call, as ``call.py`` says it: of several kernels each where its device is."""
    several = len(parts) > 1
    return [
        f'(DEVICE != "{part.words.type}" or {guard.text})' if several else guard.text
        for part in parts
        for guard in part.packaged.guards
    ]


def registration(parts: Sequence[KernelPart]) -> Mapping[str, Any]:
    """The variables of init.py.jinja that are of the kernels."""
    absent = (
        parts[0].words.absent if len(parts) == 1 else "neither device is present with what its kernel needs"
    )
    text = (
        "``holds`` says whether the kernel may stand for the original code in a call, and ``run`` calls it. "
        f"Where {absent} ``holds`` is False, and the original code runs."
    )
    return {
        "kernel": " and ".join(part.words.kernel for part in parts),
        "paragraph": textwrap.fill(text, _WIDTH),
        "host": any(part.packaged.host for part in parts),
    }


def trial_device(name: str, parts: Sequence[KernelPart]) -> Mapping[str, str]:
    """The variables of test_op.py.jinja that are of the device."""
    if len(parts) == 1:
        words = parts[0].words
        return {"is_there": words.is_there, "only": words.only, "device": f'"{words.type}"'}
    return {
        "is_there": f"({' or '.join(part.words.is_there for part in parts)})",
        "only": " or ".join(part.words.only for part in parts),
        "device": f'guards.device("{name}")',
    }
