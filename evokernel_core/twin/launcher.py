"""The launcher by itself: the small C program that limits and confines processes, for who needs no twin."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from attrs import frozen

from evokernel_core.twin.build import LAUNCHER_SOURCES, link_launcher, locked, twins_folder
from evokernel_core.twin.compiler import Compiler, detect_compiler


@frozen
class BuiltLauncher:
    """Alone in its ``folder``."""

    folder: Path

    @property
    def launcher(self) -> Path:
        return self.folder / "evokernel-launcher"


def prepare_launcher() -> BuiltLauncher:
    """The built launcher; builds it (about a second) the first time. Raises BuildError."""
    compiler = detect_compiler()
    built = BuiltLauncher(twins_folder() / f"launcher-{_content_hash(compiler)}")
    if not built.launcher.exists():
        with locked(built.folder.with_suffix(".lock")):
            if not built.launcher.exists():
                built.folder.mkdir(parents=True, exist_ok=True)
                staged = built.folder / f"part-{os.getpid()}"
                link_launcher(compiler, staged)
                staged.replace(built.launcher)
    return built


def _content_hash(compiler: Compiler) -> str:
    digest = hashlib.sha256(repr(compiler).encode())
    for path in sorted(LAUNCHER_SOURCES.iterdir()):
        if path.is_file():
            digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:20]
