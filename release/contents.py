"""What may and must be in what is published: pure checks of an archive's files."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

Files = Mapping[str, bytes]
"""Name in the archive to contents."""

FOREIGN_FOLDERS = {
    *("tests", "test", "benchmarks", "node_modules", "src", "__pycache__", "build", "dist"),
    *(".git", ".venv", ".cache", ".e2e", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
}
FOREIGN_NAMES = re.compile(
    r"\.(pyc|pyo|db|sqlite3?|log|pem|key|p12|map|orig|rej|swp|tsbuildinfo)$|^\.env|^id_[a-z]+$"
    r"|^test_.*\.py$|^conftest\.py$"
)
OWN_SOURCES = ("evokernel_core/twin/src/",)
"""Folders with names of FOREIGN_FOLDERS that are ours."""
SECRETS = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{16}"),
    "an API key": re.compile(
        rb"\b(sk-[A-Za-z0-9_-]{24,}|gh[pousr]_[A-Za-z0-9]{36}|AKIA[A-Z0-9]{16}|hf_[A-Za-z]{34})\b"
    ),
    "a person's home folder": re.compile(
        rb"(?<![\w.])/(home|Users)/(?!me/|you/|user/|name/)[a-z][\w.-]+/|(?<![\w.])/root/\w"
    ),
}
EXTENSION = ("package.json", "readme.md", "changelog.md", "LICENSE.txt", "media/icon.png", "out/extension.js")
LARGEST_EXTENSION = 1_000_000
"""Bytes of its files, unpacked: what is read and parsed at its start is most of them."""
BUNDLED = ("vscode-languageclient", "vscode-jsonrpc", "vscode-languageserver-protocol", "semver")
"""Packages that are in the extension's one file, among others."""
LEGAL = re.compile(r"(?i)(licen[sc]e|notice|copying)[^/]*$")


def read_archive(path: Path) -> dict[str, bytes]:
    """The files of a wheel, a vsix or an sdist; of an sdist without its folder."""
    if path.suffix in {".whl", ".vsix"}:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            data = archive.extractfile(member)
            if data is not None:
                found[member.name.partition("/")[2]] = data.read()
    return found


def faults(files: Files) -> Iterator[str]:
    """What no archive may hold: tests, rubbish, secrets, and others' code without its licence."""
    for name, data in files.items():
        path = PurePosixPath(name)
        foreign = FOREIGN_FOLDERS.intersection(path.parts[:-1]) and not name.startswith(OWN_SOURCES)
        if foreign or FOREIGN_NAMES.search(path.name):
            yield f"{name} is not for those who use it"
        yield from (f"{name} holds {what}" for what, pattern in SECRETS.items() if pattern.search(data))
    yield from _unlicensed(files)


def _unlicensed(files: Files) -> Iterator[str]:
    if not any(LEGAL.search(name) and b"Apache License" in data for name, data in files.items()):
        yield "the licence is missing"
    for folder in {PurePosixPath(name).parent for name in files if name.endswith(".min.js")}:
        beside = [name for name in files if PurePosixPath(name).parent == folder and LEGAL.search(name)]
        known = b"".join(files[name] for name in beside)
        for name in files:
            path = PurePosixPath(name)
            if path.parent == folder and name.endswith(".min.js") and path.name.encode() not in known:
                yield f"{name} has no licence beside it"


def wheel_faults(files: Files, sources: Mapping[str, bytes]) -> Iterator[str]:
    """What a wheel lacks of the packages' ``sources`` (name below the import path), or has beyond them."""
    ours = {name: data for name, data in files.items() if ".dist-info/" not in name}
    yield from (f"{name} is missing" for name in sources.keys() - ours.keys())
    yield from (f"{name} is not tracked" for name in ours.keys() - sources.keys())
    yield from (
        f"{name} differs from the source" for name, data in ours.items() if sources.get(name, data) != data
    )


def vsix_faults(files: Files) -> Iterator[str]:
    """What a marketplace or a person misses in the extension, or has too much of."""
    size = sum(map(len, files.values()))
    if size > LARGEST_EXTENSION:
        yield f"it takes {size:,} bytes, more than {LARGEST_EXTENSION:,}"
    yield from (f"{name} is missing" for name in EXTENSION if f"extension/{name}" not in files)
    notices = files.get("extension/out/NOTICES.txt", b"")
    yield from (
        f"the licence of {name} is missing" for name in BUNDLED if f"\n{name} ".encode() not in notices
    )
    for name in ("readme.md", "changelog.md"):
        text = files.get(f"extension/{name}", b"").decode("utf-8", "replace")
        yield from (f"{name} links to {target}, which no marketplace has" for target in relative_links(text))


def relative_links(text: str) -> list[str]:
    """Targets of Markdown links and pictures that mean nothing outside the repository."""
    return [
        target
        for target in re.findall(r"\]\(([^)\s]+)", text)
        if not re.match(r"https?://|#|mailto:", target)
    ]
