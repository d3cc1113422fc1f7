"""Whether a generated call still fits its package: the folder, its files, its chip, and the code beside it.

Of a text that does not parse nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evokernel_core.domain.errors import PackageChanged
from evokernel_core.foreign import read_foreign_object
from evokernel_core.package.fallbacks import stands
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
    if tree is not None and not stands(tree, name, _original(manifest)):
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


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except _UNPARSABLE:
        return None
