"""Which files a compiler read, as the make rules that it writes (``-MD``) tell."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from evokernel_core.twin.compiler import Compiler
from evokernel_core.twin.toolchain import compiler_folders

_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
"""Words of the environment that make folders of a person's own look like those of the compiler."""


def depfile_flags(output: Path) -> tuple[str, ...]:
    """Makes the compilation of an object write its rule beside it."""
    return ("-MD", "-MF", f"{output}.d")


def read_known_files(
    outputs: Iterable[Path], compiler: Compiler, known: Iterable[Path], folders: Iterable[Path]
) -> bool:
    """Whether the objects come from ``known`` files alone, from others in ``folders`` and the compiler's own;
    False as well where an object has no rule."""
    if any(os.environ.get(word) for word in _SEARCHED):
        return False
    files = {path.resolve() for path in known}
    allowed = (*map(Path, compiler_folders(compiler)), *folders)
    places = tuple(f"{place.resolve()}{os.sep}" for place in allowed)
    read = (path for output in outputs for path in _prerequisites(output))
    return all(path is not None and (path in files or str(path).startswith(places)) for path in read)


def _prerequisites(output: Path) -> Iterator[Path | None]:
    """The files of an object's rule, relative ones in the object's folder; None where there is no rule."""
    try:
        rule = Path(f"{output}.d").read_text("utf-8", "surrogateescape").replace("\\\n", " ")
    except FileNotFoundError:
        yield None
        return
    for word in re.findall(r"(?:\\.|[^\s\\])+", rule.partition(": ")[2]):
        yield (output.parent / re.sub(r"\\(.)", r"\1", word).replace("$$", "$")).resolve()
