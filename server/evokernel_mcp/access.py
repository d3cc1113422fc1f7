"""Which files an agent may name, and whose code may be run for it.

A path counts after its links were followed. Nothing outside of the roots is read, nothing outside of trusted
folders is run, and nothing is written unless the person who started the server said so.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attrs import frozen
from evokernel_server.trust import Trust, real_path

from evokernel_core.domain.errors import UsageError
from evokernel_core.foreign import MOST_BYTES, read_foreign

LONGEST_PATH = 4096


@frozen
class Rules:
    """What the person allowed when the server was started. ``roots`` and ``trusted`` are real folders;
    without ``roots`` the client's count, and where it has none the trusted ones."""

    roots: tuple[Path, ...] = ()
    trusted: tuple[Path, ...] = ()
    may_write: bool = False


@frozen
class Access:
    """What one call may touch."""

    roots: tuple[Path, ...]
    trust: Trust
    may_write: bool

    @property
    def near(self) -> str:
        """Where an interpreter is looked for where no file is spoken of: the first trusted root, or empty."""
        return str(next(iter(self.trusted_roots), ""))

    @property
    def trusted_roots(self) -> tuple[Path, ...]:
        """The roots whose code may be run."""
        return tuple(root for root in self.roots if self.trust.covers(root))

    def root_of(self, path: Path) -> Path:
        """The innermost root that a real path lies in."""
        around = [root for root in self.roots if path.is_relative_to(root)]
        return max(around, key=lambda root: len(root.parts), default=path.parent)

    def file(self, given: str) -> Path:
        """A regular file inside the roots, as a real path. Raises UsageError."""
        return self._found(given, stat.S_ISREG, "regular file")

    def folder(self, given: str) -> Path:
        """A folder inside the roots, as a real path. Raises UsageError."""
        return self._found(given, stat.S_ISDIR, "folder")

    def text(self, path: Path) -> str:
        """A text of at most 4 MiB, of a path that ``file`` gave. Raises UsageError."""
        try:
            return read_foreign(path)
        except (OSError, ValueError) as error:
            raise UsageError(
                "{path} cannot be read as UTF-8 text of at most {most} bytes.", path=path, most=MOST_BYTES
            ) from error

    def trusted(self, path: Path) -> Path:
        """The path where its code may be run. Raises UsageError."""
        if not self.trust.covers(path):
            raise UsageError(
                "{folder} is not trusted, so none of its code is run: "
                "the user can start the server with --trust and that folder.",
                folder=path.parent if path.is_file() else path,
            )
        return path

    def writable(self) -> None:
        """Raises UsageError where nothing may be written."""
        if not self.may_write:
            raise UsageError("This server writes nothing: the user can start it with --allow-write.")

    def _found(self, given: str, is_kind: Callable[[int], bool], kind: str) -> Path:
        for path in self._candidates(given):
            real = real_path(path)
            if real is None or not any(real.is_relative_to(root) for root in self.roots):
                continue
            try:
                mode = real.stat().st_mode
            except OSError:
                continue
            if is_kind(mode):
                return real
            raise UsageError(f"{{path}} is no {kind}.", path=given[:LONGEST_PATH])
        raise self._why_not(given)

    def _candidates(self, given: str) -> list[Path]:
        if "\0" in given or len(given) > LONGEST_PATH:
            return []
        path = Path(given)
        return [path] if path.is_absolute() else [root / path for root in self.roots]

    def _why_not(self, given: str) -> UsageError:
        if not self.roots:
            return UsageError(
                "No folder is open to this server: let the client tell its roots, or start the server with "
                "--root and a folder."
            )
        return UsageError(
            "{path} is not found inside of the allowed folders ({folders}).",
            path=given[:200],
            folders=", ".join(map(str, self.roots[:4])),
        )


def local_folder(uri: str) -> Path | None:
    """The real folder that a root's URI names; None for what is none of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(unquote(parts.path))
    return real_path(path) if path.is_absolute() else None
