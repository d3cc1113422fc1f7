"""A package that is not the one that was verified: what was changed is named before anything of it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.documents.packages import read_installed

from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import PackageChanged, TaskRefused, UsageError
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.integrity import MANIFEST, digest, sealed
from evokernel_core.package.write import Placed, read_package
from evokernel_core.targets.packages import write_package
from tests import warm
from tests.verifier.conftest import make_task, read_source


@pytest.fixture
def package(tmp_path: Path) -> Path:
    task, source = make_task("relu"), read_source("relu")
    verdict = Verdict(task.task_id, source.source_id, "twin", ())
    place = Placed("m.py", "f", CallSite("", "torch.relu(x)", parameters=("x",)))
    return write_package(tmp_path, task, place, source, verdict)


def manifest_of(package: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((package / MANIFEST).read_text())
    return data


FILES = ["op_kernel.cpp", "tiling.h", "op_torch.cpp", "CMakeLists.txt", "reference.py", "test_op.py",
         "__init__.py", "call.py"]  # fmt: skip


def test_an_honest_package_is_read(package: Path) -> None:
    task, source, _ = read_package(package)
    assert (task, source.source_id) == (make_task("relu"), read_source("relu").source_id)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_changed_file_is_named(package: Path, name: str, how: str) -> None:
    """Wants another kernel, guard or build under a verdict that was given for the old one."""
    file = package / name
    if how == "changed":
        file.write_text(file.read_text() + "\n")
    else:
        file.unlink()
    missing = how == "removed" and name in ("op_kernel.cpp", "tiling.h")
    words = "is not a kernel package" if missing else f"{name} was changed after it was verified"
    with pytest.raises(UsageError if missing else PackageChanged, match=words):
        read_package(package)


@pytest.mark.parametrize(("path", "value"), [
    (("verdict", "verifier"), "cann@somewhere"),
    (("verdict", "task_id"), "0" * 64),
    (("task_id",), "0" * 64),
    (("source_id",), "0" * 64),
    (("chip",), "ascend910b9"),
    (("task", "tolerance", "rtol"), 1e9),
    (("task", "graph", "nodes", 0, "op"), "aten.abs.default"),
    (("strategy", "family"), "hand2"),
    (("files", "op_kernel.cpp"), "0" * 64),
    (("files",), {}),
    (("digest",), "0" * 64),
    (("call", "file"), "other.py"),
])  # fmt: skip
def test_a_changed_manifest_is_named(package: Path, path: tuple[Any, ...], value: Any) -> None:
    """Wants another task, tolerance or verdict with the same files."""
    data = manifest_of(package)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    (package / MANIFEST).write_text(json.dumps(data))
    with pytest.raises(PackageChanged, match="was changed after it was verified"):
        read_package(package)


def test_digests_that_were_made_anew_do_not_admit_a_program(package: Path) -> None:
    """Wants a hostile graph under a seal of its own; the allow-list must not ask who sealed it."""
    data = manifest_of(package)
    data["task"]["graph"]["nodes"][0]["op"] = "higher_order.__dict__.__getitem__"
    del data["digest"]
    files = {name: (package / name).read_text() for name in data.pop("files")}
    (package / MANIFEST).write_text(sealed(data, files))
    with pytest.raises(TaskRefused, match="which no kernel computes"):
        read_package(package)
    with pytest.raises(TaskRefused):
        read_package(package, changed=True)


@pytest.mark.parametrize("name", ["../../secret", "/etc/hostname", "..", "sub/file"])
def test_digests_of_files_elsewhere(package: Path, name: str) -> None:
    """Wants to learn whether a file outside has some content; must be told nothing but of a change."""
    data = manifest_of(package)
    data["files"] = {**data["files"], name: digest("")}
    del data["digest"]
    (package / MANIFEST).write_text(json.dumps(data))
    with pytest.raises(PackageChanged):
        read_package(package)


def test_the_language_server_shows_no_figures_of_a_changed_package(package: Path) -> None:
    """Wants its latency beside the code; must be as a package that is not there."""
    file = package.parents[1] / "m.py"
    (package / "op_kernel.cpp").write_text("// something else")
    assert read_installed(file, package.name) is None


RUN = """
import sys, warnings
sys.path.insert(0, {root!r})
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import evokernel_kernels.{name} as kernel
print(any("was changed after it was verified" in str(item.message) for item in seen), kernel.holds(1))
"""


@pytest.mark.parametrize("name", ["reference.py", "call.py", "op_kernel.cpp", MANIFEST])
def test_nothing_else_of_a_changed_package_runs(package: Path, name: str, tmp_path: Path) -> None:
    """Wants its code to run in the person's program; the original code must run, with a warning."""
    mark = tmp_path / "mark"
    text = "{}" if name == MANIFEST else f"open({str(mark)!r}, 'w')\n" + (package / name).read_text()
    (package / name).write_text(text)
    code = RUN.format(root=str(package.parents[1]), name=package.name)
    done = warm.run(code, tmp_path, os.environ)
    assert done.stdout.split() == ["True", "False"], done.stderr
    assert not mark.exists()
