"""A kernel package from a stranger wants what it should not get: read, shown, verified or replaced."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from evokernel_server.documents.line_index import Text
from evokernel_server.documents.packages import heal, read_installed, read_kernel
from evokernel_server.documents.workspace import Document
from evokernel_server.features.inlay_hint import hints
from evokernel_server.features.links import kernels_below
from lsprotocol import types

from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import PackageChanged, UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import to_data
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.package import integrity
from evokernel_core.package.integrity import digest, sealed
from evokernel_core.package.write import place_package, read_package, render
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.verifier.local import LocalVerifier
from tests.attacks import Attack, each
from tests.verifier.service.conftest import make_kernel

__all__ = ["make_kernel"]

NAME = "softmax_1"
SECRET = "PRIVATE KEY of the reader"
LATENCY: dict[str, Any] = {
    "us": 2.0, "source": "modelled", "chip": "ascend910b1", "block_dim": 8, "pipes": [], "bottleneck": "mte2",
    "roofline_us": 1.0, "baseline_us": 9.0,
}  # fmt: skip


def manifest(**latency: Any) -> dict[str, Any]:
    verdict = {
        "task_id": "t",
        "source_id": "s",
        "gates": [],
        "latency": {**LATENCY, **latency},
        "verifier": "twin",
    }
    return {"format": 3, "name": NAME, "verdict": verdict, "task": {}, "strategy": {}}


def as_sealed(data: dict[str, Any]) -> str:
    """With its digests right, as a stranger can make them; JSON's own words for figures that are none."""
    data = {**data, "files": {}}
    return json.dumps({**data, "digest": digest(json.dumps(data, sort_keys=True, separators=(",", ":")))})


def package(root: Path, text: str | bytes | None = None) -> Path:
    folder = root / "evokernel_kernels" / NAME
    folder.mkdir(parents=True)
    for name in ("op_kernel.cpp", "tiling.h"):
        (folder / name).write_text("// nothing\n")
    said = sealed(manifest(), {}) if text is None else text
    (folder / "kernel.json").write_bytes(said if isinstance(said, bytes) else said.encode())
    return folder


def look(root: Path) -> Any:
    """What the editor does with a package that a text calls: it must end soon and not fail."""
    began = time.monotonic()
    text = Text(f"import torch\nfrom evokernel_kernels import {NAME}\ny = {NAME}.run(x)\n")
    document = Document("file:///w/model.py", root / "model.py", 1, text)
    document.installed = {NAME: read_installed(root / "model.py", NAME)}
    shown = hints(document, types.Range(types.Position(0, 0), types.Position(9, 0)))
    assert time.monotonic() - began < 10.0
    return shown


def test_an_honest_manifest_is_shown(tmp_path: Path) -> None:
    """No attack: the figures of a sound package do appear, so that the others mean something."""
    package(tmp_path)
    (hint,) = look(tmp_path)
    assert hint.label.endswith("  2.0 µs est.")


MISSING = "the package counts as damaged"
MANIFESTS = {
    "deep": b"[" * 200_000 + b"]" * 200_000,
    "deep-object": b'{"verdict":' * 100_000 + b"1" + b"}" * 100_000,
    "giant": b" " * (17 * 1024**2) + b"{}",
    "no-text": b"\xff\xfe\x00\x01" * 100,
    "list": b"[]",
    "number": b"7",
    "empty": b"",
    "digits": b'{"verdict": ' + b"9" * 100_000 + b"}",
    "keys-twice": b'{"verdict": {}, "verdict": 7}',
}


@each([Attack(name, "the reader to fail or hang", MISSING, text) for name, text in MANIFESTS.items()])
def test_a_manifest_that_is_none(attack: Attack, tmp_path: Path) -> None:
    folder = package(tmp_path, attack.given)
    (hint,) = look(tmp_path)
    assert hint.label == "⚡ kernel package missing"
    with pytest.raises(UsageError, match="not a kernel package"):
        read_package(folder)


FIGURES: dict[str, dict[str, Any]] = {
    "zero": {"us": 0.0, "baseline_us": 0.0},
    "negative": {"us": -5.0},
    "infinite": {"baseline_us": 1e400},
    "not-a-number": {"us": float("nan")},
    "words": {"us": "fast"},
    "list": {"us": [1]},
    "chip-elsewhere": {"chip": "../../../../tmp/evil"},
    "chip-absolute": {"chip": "/etc/passwd"},
}


@each(
    [
        Attack(name, "a gain that is none", "no figure is shown that is no figure", f)
        for name, f in FIGURES.items()
    ]
)
def test_figures_that_are_none(attack: Attack, tmp_path: Path) -> None:
    package(tmp_path, as_sealed(manifest(**attack.given)))
    (hint,) = look(tmp_path)
    if "chip" not in attack.given:
        assert hint.label == "⚡ kernel package missing"


@pytest.mark.parametrize(
    "name", ["../../../../tmp/evil", "/etc/passwd", "..", ".", "", "a/b", "ascend910b1.toml"]
)
def test_a_chip_is_one_of_ours(name: str) -> None:
    """Wants a table of constants of its own, with which everything is fast."""
    with pytest.raises(UsageError, match="There is no chip"):
        load_chip(name)


@pytest.mark.parametrize("name", ["../evil", "/etc", "..", "", "a/../../b", "a\0b", "a b", "a\nb"])
def test_a_package_has_a_plain_name(name: str, tmp_path: Path) -> None:
    """Wants the manifest of another folder to be read."""
    package(tmp_path)
    assert read_installed(tmp_path / "model.py", name) is None


def as_link(folder: Path, name: str) -> None:
    secret = folder.parent.parent / "id_rsa"
    secret.write_text(SECRET)
    (folder / name).unlink()
    (folder / name).symlink_to(secret)


def as_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def as_device(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")


def as_folder(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()


REFUSED = "it is refused, in a sentence without its text"
KINDS: dict[str, Callable[[Path, str], None]] = {
    "link": as_link, "pipe": as_pipe, "device": as_device, "folder": as_folder,
}  # fmt: skip


@pytest.mark.parametrize("name", ["op_kernel.cpp", "tiling.h", "kernel.json"])
@each([Attack(kind, "a file of the reader's, or its time", REFUSED, plant) for kind, plant in KINDS.items()])
def test_a_file_that_is_no_file(attack: Attack, name: str, tmp_path: Path) -> None:
    folder = package(tmp_path)
    attack.given(folder, name)
    with pytest.raises(UsageError) as refused:
        read_package(folder)
    assert SECRET not in str(refused.value)
    look(tmp_path)


@pytest.mark.parametrize("place", ["inside", "beside", "around"])
def test_a_python_in_the_package_does_not_verify_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants ``evokernel verify FOLDER`` to run the Python that came with the folder."""
    folder = package(tmp_path)
    where = {"inside": folder, "beside": folder.parent, "around": tmp_path}[place]
    python = where / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch '{tmp_path}/stolen'\nexit 86\n")
    python.chmod(0o755)
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["verify", str(folder)])
    assert done.exit_code != 0
    assert not (tmp_path / "stolen").exists()


@each([Attack(kind, "the reader to wait", REFUSED, plant) for kind, plant in KINDS.items()])
def test_a_file_to_be_digested_that_is_no_file(attack: Attack, tmp_path: Path) -> None:
    """The manifest names more files than a package has; their digests are looked at when it is opened."""
    data = {**manifest(), "files": {"op_kernel.cpp": digest("// nothing\n"), "..": "x", "../id_rsa": "x"}}
    folder = package(tmp_path, json.dumps({**data, "digest": "x"}))
    attack.given(folder, "op_kernel.cpp")
    (hint,) = look(tmp_path)
    assert hint.label == "⚡ kernel package missing"


def test_files_without_end(tmp_path: Path) -> None:
    """Wants gigabytes to be digested when a file is opened: 200 files of nothing, of 15 MB each and named. A
    package has few files, and each is small."""
    empty = hashlib.sha256(bytes(15 * 2**20)).hexdigest()
    names = [f"s{number}" for number in range(200)]
    data: dict[str, Any] = {**manifest(), "files": dict.fromkeys(names, empty)}
    data["digest"] = digest(json.dumps(data, sort_keys=True, separators=(",", ":")))
    folder = package(tmp_path, json.dumps(data))
    for name in names:
        (folder / name).touch()
        os.truncate(folder / name, 15 * 2**20)
    (hint,) = look(tmp_path)
    assert hint.label == "⚡ kernel package missing"


def test_a_task_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants the editor to look for a vendor's operator that computes 20,000 nodes; there is none so large."""
    asked: list[Any] = []
    monkeypatch.setattr("evokernel_server.documents.packages.rival_of", lambda task, chip: asked.append(task))
    node = {
        "name": "n",
        "op": "aten.neg.default",
        "args": [{"ref": "x", "index": 0}],
        "kwargs": [],
        "outputs": [],
    }
    task = {"graph": {"nodes": [{**node, "name": f"n{number}"} for number in range(20_000)]}}
    package(tmp_path, as_sealed({**manifest(), "task": task}))
    (hint,) = look(tmp_path)
    assert hint.label.endswith("  2.0 µs est.") and not asked


@pytest.mark.parametrize("name", ["op_kernel.cpp", "tiling.h"])
def test_a_file_that_changes_between_reading_and_checking(
    name: str, tmp_path: Path, make_kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants another kernel to be read than the one whose digest is right: the honest file is put back.
    What was read is what is checked."""
    task, source = make_kernel()
    texts = {"op_kernel.cpp": source.files[KERNEL], "tiling.h": source.files[TILING]}
    ids = {"task_id": task.task_id, "source_id": source.source_id}
    data = {**manifest(), **ids, "task": to_data(task), "strategy": to_data(source.strategy)}
    folder = package(tmp_path, sealed(data, texts))
    for file, text in texts.items():
        (folder / file).write_text(text)
    assert read_package(folder)[1] == source

    def read_and_restore(path: Path) -> str:
        return "another text" if path.name == name else path.read_text()

    monkeypatch.setattr(integrity, "read_foreign", read_and_restore)
    with pytest.raises(PackageChanged):
        read_package(folder)


def test_a_hard_link_to_a_file_of_the_readers(tmp_path: Path) -> None:
    """Wants a key to be read as the kernel's text, which a remote verifier is sent. Its digest is unknown to
    whoever made the package, so it is refused, in a sentence without its text."""
    secret = tmp_path / "id_rsa"
    secret.write_text(SECRET)
    folder = package(tmp_path, as_sealed(manifest()))
    (folder / "op_kernel.cpp").unlink()
    os.link(secret, folder / "op_kernel.cpp")
    with pytest.raises(UsageError) as refused:
        read_package(folder)
    assert SECRET not in str(refused.value)


def test_a_staging_folder_that_is_a_link(tmp_path: Path) -> None:
    """Wants what it points at to be moved into the workspace, and the rest of it removed."""
    victim = tmp_path / "victim"
    (victim / NAME).mkdir(parents=True)
    (victim / NAME / "kernel.json").write_text("{}")
    (victim / "precious").write_text("x")
    kernels = tmp_path / "w" / "evokernel_kernels"
    kernels.mkdir(parents=True)
    (kernels / f".{NAME}-old-x").symlink_to(victim)
    assert heal(tmp_path / "w" / "model.py", time.time() + 3600) == ()
    assert (victim / "precious").exists() and (victim / NAME / "kernel.json").exists()


def test_a_kept_package_that_is_a_link(tmp_path: Path) -> None:
    """Wants a link to take a package's place."""
    old = tmp_path / "evokernel_kernels" / f".{NAME}-old-x"
    old.mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "kernel.json").write_text("{}")
    (old / NAME).symlink_to(tmp_path / "victim")
    assert heal(tmp_path / "model.py", time.time() + 3600) == ()
    assert (tmp_path / "victim" / "kernel.json").exists()


def test_kernels_are_not_written_through_a_link(tmp_path: Path) -> None:
    """Wants kernels to be written over another folder's modules."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "__init__.py").write_text("mine = 1\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "evokernel_kernels").symlink_to(victim)
    with pytest.raises(UsageError, match="is a link"):
        place_package(tmp_path / "w", NAME, {"kernel.json": "{}"})
    assert (victim / "__init__.py").read_text() == "mine = 1\n"


@pytest.mark.parametrize("name", ["__init__.py", "guards.py", NAME])
def test_links_in_the_place_of_ours_are_replaced(name: str, tmp_path: Path) -> None:
    """Wants a file or a folder elsewhere to be overwritten."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kernel.json").write_text("mine")
    (victim / "file").write_text("mine")
    kernels = tmp_path / "w" / "evokernel_kernels"
    kernels.mkdir(parents=True)
    (kernels / name).symlink_to(victim if name == NAME else victim / "file")
    place_package(tmp_path / "w", NAME, {"kernel.json": "{}"})
    assert (victim / "file").read_text() == (victim / "kernel.json").read_text() == "mine"
    assert not (kernels / name).is_symlink()


HOSTILE = [
    Attack(
        "quote",
        "code in the package by a file's name",
        "the name is a string",
        '";import os;os.system("id")#.py',
    ),
    Attack("newline", "a line of code by a file's name", "the name is a string", "a\nimport os\n.py"),
    Attack("backslash", "to end the string by an escape", "the name is a string", 'a\\";import os#.py'),
    Attack("triple", "to end the docstring", "the name is a string", '"""\nimport os\n"""'),
    Attack("template", "to be run by the template engine", "the name is a string", "{{ 7 * 7 }}{% raw %}.py"),
]


@each(HOSTILE)
def test_a_files_name_in_generated_code(attack: Attack) -> None:
    import ast

    words = dict.fromkeys(
        ("parameters", "asked", "given", "call", "dense", "strided", "symbols", "numbers", "captured"), "x"
    )
    lists = dict.fromkeys(
        (
            "computed",
            "before",
            "late_lines",
            "kinds",
            "sizes",
            "shapes",
            "update_lines",
            "warned",
        ),
        (),
    )
    rest = {
        "code": {},
        "original": "x",
        "expressions": "(x,)",
        "operands": ["x"],
        "asks_device": True,
        "assigned": "",
        "default": "",
        "asks_globals": False,
    }
    given = {"file": attack.given, "symbol": "Model.forward", "name": NAME, "results": ""}
    text = render("call.py", **words, **lists, **rest, **given)
    values = {
        node.targets[0].id: node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    assert values["FILE"] == attack.given
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    assert [alias.name for node in imported for alias in node.names] == ["torch"]


def a_package(root: Path, make_kernel: Any, **changes: Any) -> tuple[Path, Any]:
    """An honest package as this version seals it; ``changes`` None are left out."""
    task, source = make_kernel()
    ids = {"task_id": task.task_id, "source_id": source.source_id}
    named = {"target": source.target, "sources": list(source.files), "task": to_data(task)}
    data = {**manifest(), **ids, **named, "strategy": to_data(source.strategy), **changes}
    folder = package(
        root, sealed({key: value for key, value in data.items() if value is not None}, source.files)
    )
    for file, text in source.files.items():
        (folder / file).write_text(text)
    return folder, source


EARLIER = {"target": None, "sources": None, "format": 4}


@pytest.mark.parametrize("changes", [{}, EARLIER], ids=["today", "earlier"])
def test_packages_of_before_they_named_a_target_are_read(
    changes: dict[str, Any], tmp_path: Path, make_kernel: Any
) -> None:
    folder, source = a_package(tmp_path, make_kernel, **changes)
    assert read_package(folder)[1] == source
    installed = read_installed(tmp_path / "model.py", NAME)
    assert installed is not None and installed.sources == (KERNEL, TILING)
    kernel = read_kernel(installed)
    assert kernel is not None and kernel[0] == source
    (place,) = kernels_below((tmp_path,))
    assert place.file == folder / KERNEL


@pytest.mark.parametrize(
    "sources",
    [["../../id_rsa"], ["/etc/passwd"], [], ["a"] * 99, [1], "x" * 99, 3, {"a": 1}, [["a"]], ["nothing.h"]],
    ids=str,
)
def test_files_that_are_none_of_the_package(sources: Any, tmp_path: Path, make_kernel: Any) -> None:
    """Wants another file of the reader's to be read as a kernel. Only names within the folder are."""
    (tmp_path / "id_rsa").write_text(SECRET)
    folder, _ = a_package(tmp_path, make_kernel, sources=sources)
    with pytest.raises(UsageError, match="is not a kernel package") as raised:
        read_package(folder)
    assert SECRET not in str(raised.value)
    installed = read_installed(tmp_path / "model.py", NAME)
    assert installed is None or read_kernel(installed) is None
    assert all(place.file.parent == folder for place in kernels_below((tmp_path,)))


def test_a_package_for_a_target_of_a_later_version(tmp_path: Path, make_kernel: Any) -> None:
    """Is shown, and refused in a sentence where it would be judged."""
    task, source = make_kernel()
    python = KernelSource("tilelang", {"kernel.py": "x"}, source.strategy)
    ids = {"source_id": python.source_id, "target": "tilelang", "sources": ["kernel.py"]}
    folder, _ = a_package(tmp_path, make_kernel, **ids)
    (folder / "kernel.py").write_text("x")
    data = json.loads((folder / "kernel.json").read_text())
    (folder / "kernel.json").write_text(sealed({**data, "digest": None}, {"kernel.py": "x"}))
    installed = read_installed(tmp_path / "model.py", NAME)
    assert installed is not None and installed.sources == ("kernel.py",)
    with pytest.raises(UsageError, match="The target 'tilelang' is not known here; update EvoKernel"):
        LocalVerifier(None, None).verify(task, python)  # type: ignore[arg-type]
