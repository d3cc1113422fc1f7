"""The files of a program: its translation units and every file of its own that they include."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.lexer import CppTokenKind, Token

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


@frozen
class ProgramSource:
    """What a program is built from: translation units, the folders of ``-I``, ``NAME=VALUE`` macros.

    The first file gives the program its name; errors name files relative to that file's folder.
    """

    files: tuple[Path, ...]
    includes: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        """The folder that names in messages are relative to."""
        return self.files[0].resolve().parent

    def shown(self, path: Path) -> str:
        """A file's name in messages: ``#line`` and the compiler's errors use it."""
        return os.path.relpath(path, self.home)


def read_sources(source: ProgramSource) -> dict[Path, str]:
    """The text of each file by absolute path, the translation units first.

    Included files count where they lie beside the file that includes them or in a folder of ``-I``.
    Raises UsageError where a translation unit cannot be read.
    """
    result: dict[Path, str] = {}
    folders = tuple(folder.resolve() for folder in source.includes)
    for file in source.files:
        _read_unit(file.resolve(), file, result)
    for path in tuple(result):
        _collect(path, folders, result)
    return result


def _read_unit(path: Path, named: Path, known: dict[Path, str]) -> None:
    try:
        known[path] = path.read_text(errors="surrogateescape")
    except OSError as error:
        raise UsageError(
            f"{named} cannot be read ({error.strerror}); name an AscendC source file."
        ) from error


def _collect(path: Path, folders: Sequence[Path], known: dict[Path, str]) -> None:
    for included in included_files(path, known[path], folders):
        if included not in known:
            known[included] = included.read_text(errors="surrogateescape")
            _collect(included, folders, known)


def included_files(path: Path, text: str, folders: Sequence[Path]) -> Iterator[Path]:
    """The files on disk that ``text`` of file ``path`` includes."""
    for quoted, angled in _INCLUDE.findall(text):
        places = (path.parent, *folders) if quoted else folders
        candidates = (Path(os.path.normpath(folder / (quoted or angled))) for folder in places)
        yield from [place for place in candidates if place.is_file()][:1]


Unit = Mapping[Path, tuple[Token, ...]]
"""A translation unit: the active tokens of its file and of each file of its own that it includes."""


def active_files(
    source: ProgramSource, texts: Mapping[Path, str], macros: Mapping[str, str]
) -> list[tuple[Token, ...]]:
    """The tokens that each file of each translation unit is left with, following its includes."""
    return [tokens for unit in active_units(source, texts, macros) for tokens in unit.values()]


def active_units(source: ProgramSource, texts: Mapping[Path, str], macros: Mapping[str, str]) -> list[Unit]:
    """The translation units as ``macros`` leave them; what a file includes comes before it."""
    units: list[Unit] = []
    folders = tuple(folder.resolve() for folder in source.includes)
    given = {name: value for name, _, value in (define.partition("=") for define in source.defines)}
    for file in source.files:
        table = {**BUILT_IN, **{name: value or "1" for name, value in given.items()}, **macros}
        unit: dict[Path, tuple[Token, ...]] = {}
        _walk(file.resolve(), (texts, folders, table), set(), unit)
        units.append(unit)
    return units


_Context = tuple[Mapping[Path, str], tuple[Path, ...], dict[str, str]]


def _walk(path: Path, context: _Context, seen: set[Path], known: dict[Path, tuple[Token, ...]]) -> None:
    texts, folders, macros = context
    if path in seen or path not in texts:
        return
    seen.add(path)
    tokens: list[Token] = []
    for token in active_tokens(texts[path], macros):
        tokens.append(token)
        if token.kind is CppTokenKind.DIRECTIVE:
            for included in included_files(path, token.text, folders):
                _walk(included, context, seen, known)
    known[path] = tuple(tokens)


def write_tree(texts: Mapping[Path, str], root: Path) -> None:
    """Writes files below ``root`` at their absolute paths, so that relative includes find each other."""
    for path, text in texts.items():
        target = mirrored(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, errors="surrogateescape")


def mirrored(path: Path, root: Path) -> Path:
    """Where ``write_tree`` puts a file or folder."""
    return root / path.resolve().relative_to(path.resolve().anchor)
