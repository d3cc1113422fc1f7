"""Kernels of before a source named its target and its files: two texts, always of AscendC.

Packages, memories, queues and clients of that time hold them; their ids are keys that stay what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

TARGET = "ascendc"
FIELDS = {"tiling_h": "tiling.h", "op_kernel_cpp": "op_kernel.cpp"}
"""The names of the files by the fields of that form, in the order of its ids."""
NAMES = tuple(FIELDS.values())


def named(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a source with its target and files; as it is where nothing of it is of the earlier form.
    Raises KeyError where one of the two texts is missing."""
    if FIELDS.keys().isdisjoint(data) or "target" in data or "files" in data:
        return data
    rest = {key: value for key, value in data.items() if key not in FIELDS}
    return {**rest, "target": TARGET, "files": {name: data[field] for field, name in FIELDS.items()}}


def flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The earlier form of a source's data, for a service that knows no other; as it is where it has none."""
    files = data["files"]
    if not is_earlier(data["target"], files):
        return data
    rest = {key: value for key, value in data.items() if key not in ("target", "files")}
    return {**rest, **{field: files[name] for field, name in FIELDS.items()}}


def is_earlier(target: str, files: Mapping[str, str]) -> bool:
    """Whether a kernel could have been written in the earlier form."""
    return target == TARGET and files.keys() == set(NAMES)


def earlier_id(files: Mapping[str, str]) -> str:
    """sha256 (hex) of the two texts, the id that the form had. Raises UnicodeEncodeError."""
    first, second = (files[name] for name in NAMES)
    return hashlib.sha256(f"{len(first)}\n{first}{second}".encode()).hexdigest()
