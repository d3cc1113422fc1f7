"""What ``evokernel observe`` saw, by file: kept in the person's own folder, never beside their files."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import cattrs
from attrs import evolve, field, frozen

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.paths import cache_path
from evokernel_core.private import private_folder

_VERSION = 1


@frozen
class Observation:
    """One distinct call of a class or function. ``built`` is what the class was built with, None for a
    function; both it and ``call`` are as the agent's encoder gave them. ``dtype`` is that of all parameters,
    ``modules`` how many modules the called one is made of, ``count`` how often it was called so;
    ``default_dtype`` is what ``torch.set_default_dtype`` had set then, and ``paths`` are the workspace's
    folders that modules were imported from."""

    qualname: str
    built: Mapping[str, Any] | None
    call: Mapping[str, Any] = field(converter=dict)
    training: bool = True
    dtype: str | None = None
    modules: int = 0
    count: int = 1
    default_dtype: str = "float32"
    paths: tuple[str, ...] = ()


@frozen
class Observed:
    """Everything known of one file; ``command`` is what was run last."""

    file: str
    command: str
    observations: tuple[Observation, ...]

    def joined(self, newer: Observed) -> Observed:
        """With a newer run's in place of those of the same definitions."""
        again = {observation.qualname for observation in newer.observations}
        kept = [observation for observation in self.observations if observation.qualname not in again]
        return evolve(newer, observations=(*newer.observations, *kept))


class ObservationStore:
    """One JSON file for each observed file, readable by its owner alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_path() / "observations"

    def path_of(self, file: Path) -> Path:
        """Where the observations of a file are kept."""
        name = hashlib.sha256(os.path.realpath(file).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self.folder / f"{name}.json"

    def of(self, file: Path) -> Observed | None:
        """What is known of a file, None where nothing is; a damaged entry is nothing."""
        return _read(self.path_of(file))

    def all(self, below: Path | None = None) -> Iterator[Observed]:
        """Every file's, or that of a file or of the files below a folder, in the order of paths."""
        result = [
            observation for observation in map(_read, self.folder.glob("*.json")) if observation is not None
        ]
        top = Path(os.path.realpath(below)) if below else None
        for element in sorted(result, key=lambda element: element.file):
            if top is None or Path(element.file).is_relative_to(top):
                yield element

    def add(self, new: Iterable[Observed]) -> None:
        """Takes in a run. Raises StoreError where it cannot be written."""
        try:
            private_folder(self.folder)
            for observation in new:
                path = self.path_of(Path(observation.file))
                before = _read(path)
                _write(path, before.joined(observation) if before else observation)
        except OSError as error:
            raise StoreError(
                "{folder} cannot be written ({why}): free it.", folder=self.folder, why=error.strerror
            ) from error

    def move(self, old: Path, new: Path) -> None:
        """A file has another name now. Raises StoreError as ``add``."""
        known = self.of(old)
        if known is not None:
            self.add([evolve(known, file=os.path.realpath(new))])
            self.path_of(old).unlink(missing_ok=True)

    def forget(self, below: Path | None = None) -> int:
        """Deletes what is known of a file, of the files below a folder, or of all. The number of files."""
        known = list(self.all(below))
        for entry in known:
            self.path_of(Path(entry.file)).unlink(missing_ok=True)
        return len(known)


def observations_of(file: Path) -> list[Any]:
    """What is known of a file, as the agent takes it."""
    result = ObservationStore().of(file)
    data: list[Any] = to_data(result.observations) if result else []
    return data


def observed_paths(file: Path) -> tuple[str, ...]:
    """The folders that the program which used a file last imported from."""
    result = ObservationStore().of(file)
    newest = result.observations[:1] if result else ()  # those of the last run come first
    return tuple(path for observation in newest for path in observation.paths)


def _read(path: Path) -> Observed | None:
    try:
        data = json.loads(path.read_text("utf-8"))
        return from_data(data["observed"], Observed) if data["version"] == _VERSION else None
    except (OSError, ValueError, KeyError, TypeError, cattrs.BaseValidationError):
        return None


def _write(path: Path, observed: Observed) -> None:
    text = json.dumps({"version": _VERSION, "observed": to_data(observed)})
    handle, staged = tempfile.mkstemp(dir=path.parent)  # mkstemp's files are the owner's alone
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    Path(staged).replace(path)


@frozen
class Run:
    """What the processes of one command wrote. ``pythons`` are the interpreters that were observed,
    ``with_torch`` those that imported torch, ``failures`` why some could not be observed."""

    observed: tuple[Observed, ...]
    pythons: frozenset[str]
    with_torch: frozenset[str]
    failures: tuple[str, ...]


def read_run(folder: Path, command: str) -> Run:
    """Merges the journals of a run; a line that a process could not finish is left out."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in _lines(path)]
    failures = tuple(dict.fromkeys(line["failed"] for _, line in lines if "failed" in line))
    pythons = frozenset(line["started"] for _, line in lines if "started" in line)
    with_torch = frozenset(line["python"] for _, line in lines if "torch" in line)
    return Run(tuple(_by_file(_counted(lines), command)), pythons, with_torch, failures)


_Line = tuple[str, dict[str, Any]]


def _lines(path: Path) -> Iterator[_Line]:
    for text in path.read_text("utf-8", "replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield path.name, line


def _counted(lines: Iterable[_Line]) -> list[dict[str, Any]]:
    """The records with how often each was seen, the same ones of several processes once."""
    records: dict[tuple[str, str, int], dict[str, Any]] = {}
    counts: dict[tuple[str, str, int], int] = {}
    for process, line in lines:
        if "seen" not in line:
            continue
        key = (process, line["seen"], line["number"])
        if "record" in line:
            records[key] = line["record"]
        counts[key] = line.get("count", 1)
    merged: dict[str, dict[str, Any]] = {}
    for key, record in records.items():
        identity = json.dumps(record, sort_keys=True)
        known = merged.setdefault(identity, {**record, "count": 0})
        known["count"] += counts[key]
    return list(merged.values())


MOST_CALLS = 8
"""Distinct calls of one definition that are kept."""


def _by_file(records: Iterable[dict[str, Any]], command: str) -> Iterator[Observed]:
    files: dict[str, list[Observation]] = {}
    for record in sorted(records, key=lambda record: -record["count"]):
        known = files.setdefault(record.pop("file"), [])
        if sum(entry.qualname == record["qualname"] for entry in known) < MOST_CALLS:
            known.append(from_data(record, Observation))
    for file, value in files.items():
        yield Observed(file, command, tuple(value))
