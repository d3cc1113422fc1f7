"""The import rules of docs/architecture.md, read from the code itself."""

from __future__ import annotations

import ast
import sys
from functools import cache
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
    "evokernel_core/compiler": [*core(*above("compiler")), "evokernel_core.capture"],
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
    "evokernel_core/targets/ascendc": core("capture", "verifier", "memory", "synthesis", "report", "cli"),
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
    # torch lives in the agent, which the user's interpreter runs
    "torch": "evokernel_core/capture/agent",
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


def test_the_agent_needs_only_the_standard_library_and_torch() -> None:
    allowed = sys.stdlib_module_names | {"torch", "sympy"}  # torch itself needs sympy
    for path in (CORE / "capture" / "agent").rglob("*.py"):
        for name in imports_of(path):
            own = name.startswith("evokernel_core.capture.agent")
            assert own or name.split(".")[0] in allowed, f"{path}: {name}"


FLOORS = (
    *("ir", "lowering", "legalization", "rewrites"),
    *("kernels", "bounds", "fusion", "print", "planned", "neighbours", "author"),
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
