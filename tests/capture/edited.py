"""A text with its kernels in place, as a module of this process that takes the CPU for an NPU."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from attrs import evolve

from evokernel_core.capture.edit import plan_edit, revert_edit
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.write import kernel_name, placed
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.targets.packages import write_package

_SOURCE = ascendc_source("", "", Strategy("none"))
EMULATE = "EVOKERNEL_EMULATE"
_every_guards: list[ModuleType] = []
"""An operator stays that of its first import, which counts its calls."""


def edited_text(text: str, regions: Iterable[Region]) -> str:
    """The text with the regions' kernels, which a revert takes out again."""
    edited = text
    for region in sorted(regions, key=lambda item: (item.span.line, item.span.column), reverse=True):
        name = name_of(region)
        before, edited = edited, plan_edit(edited, region, name)
        assert revert_edit(edited, region, name) == before
        assert plan_edit(edited, region, name) == edited
    return edited


def name_of(region: Region) -> str:
    assert region.task is not None and region.site is not None, region.reason
    return kernel_name(region.task, region.site)


def edited_module(text: str, *regions: Region, emulate: bool = True) -> ModuleType:
    """The edited text, imported as ``model``; its kernels compute what their references do."""
    with tempfile.TemporaryDirectory() as folder:
        return imported(write_edited(Path(folder), text, regions), emulate)


def write_edited(root: Path, text: str, regions: Iterable[Region]) -> Path:
    """The edited text as ``model.py`` of a folder, beside the packages of its kernels."""
    path = root / "model.py"
    for region in regions:
        here = evolve(region, file=str(path))
        assert here.task is not None
        verdict = Verdict(here.task.task_id, _SOURCE.source_id, "test", ())
        write_package(root, here.task, placed(here), _SOURCE, verdict)
    path.write_text(edited_text(text, regions))
    return path


def imported(path: Path, emulate: bool = True) -> ModuleType:
    """An edited file, imported as ``model``."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("evokernel_kernels", "model")]:
        del sys.modules[name]
    before = os.environ.pop(EMULATE, None)
    if emulate:
        os.environ[EMULATE] = "1"
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location("model", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["model"] = module
        spec.loader.exec_module(module)
        _every_guards.extend(filter(None, [sys.modules.get("evokernel_kernels.guards")]))
        vars(module)["__runs_before__"] = _ran()
    finally:
        sys.path.remove(str(path.parent))
        os.environ.pop(EMULATE, None)
        if before is not None:
            os.environ[EMULATE] = before
    return module


def runs(module: ModuleType) -> int:
    """How many kernels have run since an edited module was imported."""
    return _ran() - int(vars(module)["__runs_before__"])


def _ran() -> int:
    return sum(sum(guards.calls().values()) for guards in _every_guards)
