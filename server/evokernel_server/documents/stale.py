"""Whether a generated call still fits its package: the folder, its files, its chip, and the code beside it.

The guard and the code that runs where it fails are compared as syntax, so that a formatter changes nothing.
Of a text that does not parse, and of code that cannot be read by itself, nothing is said.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evokernel_core.domain.errors import PackageChanged
from evokernel_core.foreign import read_foreign_object
from evokernel_core.package.integrity import check_files
from evokernel_core.targets import files_of_device
from evokernel_server.documents.packages import FOLDER, MANIFEST, package_folder, read_installed
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, told

_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def stale_calls(file: Path, text: str, names: Iterable[str], chip: str) -> dict[str, str]:
    """Why calls of these kernels in a file do not fit any more, one sentence each. Reads files."""
    tree = _parsed(text)
    result = ((name, _why(file, tree, name, chip)) for name in names)
    return {name: why for name, why in result if why}


def is_other_device(device: str, chip: str) -> bool:
    """Whether a kernel was made for another device than the one of its target that is configured; kernels of
    another target are for other machines."""
    return device != chip and files_of_device(device) in (None, files_of_device(chip))


def _why(file: Path, tree: ast.Module | None, name: str, chip: str) -> str:
    folder = package_folder(file, name)
    if not folder.is_dir():
        return _(
            "The folder {folder} is missing: restore the package, or revert the call.",
            folder=f"{FOLDER}/{plain(name)}",
        )
    try:
        manifest = read_foreign_object(folder / MANIFEST)
        check_files(folder, manifest)
    except PackageChanged as error:
        return told(error)
    except (OSError, ValueError):
        manifest = {}
    installed = read_installed(file, name)
    if installed is None:
        return _(
            "The package {folder} cannot be read: restore it, or revert the call.",
            folder=f"{FOLDER}/{plain(name)}",
        )
    if is_other_device(installed.latency.chip, chip):
        made_for = plain(installed.latency.chip)
        return _(
            "{name} was made for {made_for}, and the chip is {chip}: refine it.",
            name=plain(name),
            made_for=made_for,
            chip=plain(chip),
        )
    if tree is not None and not fits(tree, name, _original(manifest)):
        return _(
            "The code beside the call of {name} is not what the kernel was made from any more: "
            "revert the kernel, then generate it again.",
            name=plain(name),
        )
    return ""


def _original(manifest: Mapping[str, Any]) -> str:
    call = manifest.get("call")
    site = call.get("site") if isinstance(call, Mapping) else None
    original = site.get("original") if isinstance(site, Mapping) else None
    return original if isinstance(original, str) else ""


def fits(tree: ast.Module, name: str, original: str) -> bool:
    """Whether what runs where a kernel's guard fails is ``original`` wherever it is asked. True where that
    cannot be told."""
    wanted = _statements(original)
    places = [_plain_dumps(place) for place in _fallbacks(tree, name)]
    if wanted is None or not places:
        return True
    dumps = _plain_dumps(wanted)
    return all(place[: len(dumps)] == dumps for place in places)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except _UNPARSABLE:
        return None


def _statements(code: str) -> list[ast.stmt] | None:
    """Code that was cut out of a file, whose first line lost its indentation, as statements."""
    if not code.strip():
        return None
    first, *rest = code.splitlines()
    body = textwrap.dedent("\n".join(rest))
    for candidate in (f"(\n{code}\n)", f"{first}\n{body}", f"{first}\n{textwrap.indent(body, '    ')}"):
        tree = _parsed(candidate)
        if tree is not None:
            return tree.body
    return None


def _fallbacks(tree: ast.Module, name: str) -> Iterator[list[ast.stmt]]:
    """The code at each guard of a kernel that runs where it fails."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _asks(node.test, name):
            yield [ast.Expr(node.orelse)]
        for block in _blocks(node):
            for at, statement in enumerate(block):
                if isinstance(statement, ast.If) and _asks(statement.test, name):
                    yield statement.orelse or block[at + 1 :]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block


def _asks(test: ast.AST, name: str = "") -> bool:
    """Whether a test is the guard of a kernel, or of the one named."""
    if isinstance(test, ast.IfExp):  # False if torch.jit.is_scripting() else ...
        test = test.orelse
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Attribute):
        return False
    owner = test.func.value
    return test.func.attr == "holds" and isinstance(owner, ast.Name) and name in ("", owner.id)


class _Plain(ast.NodeTransformer):
    """Takes out guards of other kernels: a kernel inside the code of another changes nothing of it."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.orelse if _asks(node.test) else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _asks(node.test) else node


def _plain_dumps(statements: list[ast.stmt]) -> list[str]:
    """The syntax of each statement, without positions."""
    block = _Plain().visit(ast.Module(copy.deepcopy(statements), []))
    return [ast.dump(statement) for statement in block.body]
