"""The import rules of docs/architecture.md, read from the code itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "evokernel_core"
SERVER = ROOT / "server" / "evokernel_server"

LAYERS = (
    *("hardware", "capture", "compiler", "package", "targets", "twin", "vendor", "verifier"),
    *("memory", "synthesis", "report", "cli"),
)


def above(layer: str) -> tuple[str, ...]:
    return LAYERS[LAYERS.index(layer) + 1 :]


def core(*layers: str) -> list[str]:
    return [f"evokernel_core.{layer}" for layer in layers]


FORBIDDEN = {
    "evokernel_core/domain": [*core(*LAYERS, "paths"), "evokernel_server"],
    "evokernel_core/hardware": core(*above("hardware")),
    "evokernel_core/compiler": [
        *core(*above("compiler")),
        *("evokernel_core.capture", "evokernel_core.hardware.ascend"),
    ],
    "evokernel_core/package": core(
        *("capture", "targets", "twin", "verifier", "memory", "synthesis", "report", "cli")
    ),
    "evokernel_core/twin": core(
        *("capture", "compiler", "package", "targets"),
        *("vendor", "verifier", "memory", "synthesis", "report", "cli"),
    ),
    "evokernel_core/vendor": core(
        *("capture", "compiler", "package", "targets"),
        *("verifier", "memory", "synthesis", "report", "cli"),
    ),
    "evokernel_core/memory": core("verifier", "synthesis", "report", "cli"),
    "evokernel_core/targets/ascendc": core("memory", "synthesis", "report", "cli"),
    "evokernel_core/targets/triton": [
        *core("memory", "synthesis", "report", "cli"),
        *("evokernel_core.hardware.ascend", "evokernel_core.targets.ascendc"),
    ],
    "evokernel_core/targets/triton/kernels": core("capture", "verifier", "twin"),
    **{
        f"evokernel_core/targets/ascendc/{part}": core("capture", "verifier", "twin")
        for part in ("ir", "kernels", "lowering", "legalization", "rewrites", "fusion", "print")
    },
    "evokernel_core/capture": core(
        *("compiler", "package", "targets", "twin", "vendor"),
        *("verifier", "memory", "synthesis", "report", "cli"),
    ),
    "evokernel_core/verifier": core("memory", "synthesis", "report", "cli"),
    "evokernel_core/synthesis": core("report", "cli"),
    "evokernel_core/report": core("cli"),
    "evokernel_core": ["evokernel_mcp", "evokernel_server", "torch"],
    "server/evokernel_server": ["evokernel_mcp", "torch"],
    "server/evokernel_mcp": ["torch"],
}
EXEMPT = {
    # torch lives in the agent and in the Triton backends' processes, which the user's interpreter runs
    "torch": ("evokernel_core/capture/agent", "evokernel_core/targets/triton/backends/interpreted"),
    # the command line is the rim: `evokernel lsp` and `evokernel mcp` start the servers
    "evokernel_server": "evokernel_core/cli",
    "evokernel_mcp": "evokernel_core/cli",
}


@cache
def imports_of(path: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            names.add(".".join([*path.relative_to(ROOT).parts[: -node.level], node.module or ""]))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return frozenset(names)


def starts_with(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_go_one_way(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        relative = path.relative_to(ROOT).as_posix()
        for name in imports_of(path):
            for forbidden in FORBIDDEN[folder]:
                exempt = EXEMPT.get(forbidden)
                if starts_with(name, forbidden) and not (exempt and relative.startswith(exempt)):
                    pytest.fail(f"{relative} imports {name}")


NAMES_TARGETS = "evokernel_core/targets/__init__.py"
OLD_NAMES = "evokernel_core/ascendc/__init__.py"
"""Says where modules of this name went; it imports none."""


@pytest.mark.parametrize(("target", "others"), [("ascendc", {OLD_NAMES}), ("triton", set())])
def test_who_names_a_target(target: str, others: set[str]) -> None:
    folder = CORE / "targets" / target
    files = [path for place in (CORE, SERVER) for path in place.rglob("*.py") if folder not in path.parents]
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if any(starts_with(name, f"evokernel_core.targets.{target}") for name in imports_of(path))
        or f"targets.{target}" in path.read_text()
    }
    assert naming == {NAMES_TARGETS, *others}


def test_who_starts_without_the_author() -> None:
    """The editor's server, and a service's worker before its first job: a second each of importing."""
    code = """
import sys
import evokernel_server.app, evokernel_core.verifier.factory, evokernel_core.verifier.service_worker
heavy = ("evokernel_core.compiler", "evokernel_core.targets.")
print([name for name in sys.modules if name.startswith(heavy)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = {"sources", *(f"{target}{part}" for target in ("ascendc", "triton") for part in ("", ".source"))}
    assert set(ast.literal_eval(done.stdout)) <= {f"evokernel_core.targets.{name}" for name in light}


def test_the_agent_needs_only_the_standard_library_and_torch() -> None:
    allowed = sys.stdlib_module_names | {"torch", "sympy"}  # torch itself needs sympy
    for path in (CORE / "capture" / "agent").rglob("*.py"):
        for name in imports_of(path):
            own = name.startswith("evokernel_core.capture.agent")
            assert own or name.split(".")[0] in allowed, f"{path}: {name}"


FLOORS = (
    *("language", "source", "ir", "lowering", "legalization", "rewrites"),
    *("kernels", "fusion", "print", "programs", "neighbours"),
    *("audit", "backends", "target", "author", "knowledge", "first_run", "toolchain"),
)
"""The parts of evokernel_core/targets/ascendc, each of which imports from itself and from those before it."""


def test_the_floors_of_the_author_import_downwards() -> None:
    author = CORE / "targets" / "ascendc"
    package = "evokernel_core.targets.ascendc."
    upwards = set()
    for path in author.rglob("*.py"):
        floor = path.relative_to(author).with_suffix("").parts[0]
        for name in imports_of(path):
            below = name.removeprefix(package).split(".")[0]
            if floor in FLOORS and name.startswith(package) and FLOORS.index(below) > FLOORS.index(floor):
                upwards.add((floor, below))
    assert not upwards


MODULES = {
    path.relative_to(base).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
    for base, package in (
        (ROOT, "evokernel_core"), (ROOT / "server", "evokernel_server"), (ROOT / "server", "evokernel_mcp"),
    )
    for path in (base / package).rglob("*.py")
}  # fmt: skip


def modules_of(path: Path) -> frozenset[str]:
    """The modules of ours that a module imports, at its top, within functions and for its types."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            package = ".".join([*above, *([node.module] if node.module else [])])
            members = {f"{package}.{alias.name}" for alias in node.names}
            names |= members & MODULES.keys() or {package}
    return frozenset(names & MODULES.keys())


def circle_of(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The modules of one import circle in order, none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    imports = {name: [other for other in modules_of(path) if other != name] for name, path in MODULES.items()}
    assert sum(map(len, imports.values())) > 1000
    assert circle_of(imports) == []


def test_records_of_problems_stand_apart_from_schedules() -> None:
    """What a task asks for is in ``compiler.problems``; how a kernel computes it is its target's."""
    assert not list((CORE / "targets").rglob("*_problem.py"))
    for path in (CORE / "compiler" / "problems").glob("*.py"):
        assert "evokernel_core.compiler.schedule" not in imports_of(path)


def test_a_circle_is_seen() -> None:
    assert circle_of({"a": ["b"], "b": ["c"], "c": ["b"]}) in (["b", "c", "b"], ["c", "b", "c"])


HISTORY = "evokernel_core.memory.migrations"


@pytest.mark.parametrize(
    "path", sorted((CORE / "memory" / "migrations").glob("*.py")), ids=lambda path: path.stem
)
def test_a_step_of_the_schema_stands_for_itself(path: Path) -> None:
    """What a step did to memories of its time must not change when the code of today does."""
    ours = {name for name in imports_of(path) if name.startswith("evokernel")}
    assert {name for name in ours if not starts_with(name, HISTORY)} == set()


def test_no_two_modules_of_the_server_differ_by_an_ending() -> None:
    stems = {name.rsplit(".", 1)[-1] for name in MODULES if name.startswith("evokernel_server.")}
    endings = ("s", "es", "ed", "er", "ers", "ing", "_words", "_page")
    assert sorted((stem, stem + end) for stem in stems for end in endings if stem + end in stems) == []


def test_a_class_name_stands_in_two_modules_at_most() -> None:
    where: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, set()).add(name)
    assert {name: modules for name, modules in where.items() if len(modules) > 2} == {}


ASKS_ASCEND = ("targets/ascendc/", "hardware/ascend/", "twin/")
"""Below these, modules are about Ascend's hardware."""
ASKS_ASCEND_TOO = {
    "hardware/devices.py": "gives devices by their names",
    "hardware/gpu/gpu_files.py": "lists chips among the devices of Triton",
    "hardware/gpu/npu.py": "what Triton's kernels see of a chip",
    "cli/twin.py": "the command that runs the twin",
    "vendor/rival.py": "the vendor's operators are those of torch_npu",
}


def test_who_asks_the_hardware_of_one_maker() -> None:
    """All other code asks a ``hardware.device.Device`` or its target."""
    asking = {
        path.relative_to(CORE if CORE in path.parents else ROOT).as_posix()
        for root in (CORE, ROOT / "server")
        for path in root.rglob("*.py")
        if any(starts_with(name, "evokernel_core.hardware.ascend") for name in imports_of(path))
    }
    assert {name for name in asking if not name.startswith(ASKS_ASCEND)} == set(ASKS_ASCEND_TOO)


SAYS_FILES_OF_ASCENDC = re.compile(r"""\b(tiling_h|op_kernel_cpp)\b|["'](op_kernel\.cpp|tiling\.h)["']""")
MAY_SAY_THEM = (
    *("hardware/ascend/abi.py", "domain/earlier_sources.py", "memory/migrations/", "memory/packed.py"),
    *("targets/", "twin/", "vendor/"),
)
"""One declares them, one reads what was written before kernels named their files, and memories are old."""


def test_neutral_code_knows_no_file_of_a_kernel_by_name() -> None:
    for root in (CORE, ROOT / "server"):
        for path in root.rglob("*.py"):
            if root == CORE and path.relative_to(CORE).as_posix().startswith(MAY_SAY_THEM):
                continue
            match = SAYS_FILES_OF_ASCENDC.search(path.read_text())
            assert match is None, f"{path.relative_to(ROOT)} says {match and match[0]}"
