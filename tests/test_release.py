"""What is published is checked: each rule finds what is planted, and pages hold what an index can show."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release.__main__ import packages
from release.contents import (
    BUNDLED,
    EXTENSION,
    faults,
    read_archive,
    relative_links,
    vsix_faults,
    wheel_faults,
)
from release.patient import Patience, run
from release.smoke import framed

ROOT = Path(__file__).parents[1]
GOOD = {"evokernel_core/a.py": b"x = 1\n", "LICENSE": b"Apache License, Version 2.0"}
NOTICES = "".join(f"\n{name} 1.0\nMIT\n" for name in BUNDLED).encode()
VSIX = {f"extension/{name}": b"text" for name in EXTENSION} | {"extension/out/NOTICES.txt": NOTICES}


def test_what_is_good_has_no_faults() -> None:
    sources = {"evokernel_core/a.py": b"x = 1\n"}
    assert not list(faults(GOOD))
    assert not list(wheel_faults(sources | {"evokernel_lsp-1.dist-info/METADATA": b""}, sources))
    assert not list(vsix_faults(VSIX))
    assert not list(faults({"LICENSE": b"Apache License", "evokernel_core/twin/src/a.cpp": b""}))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("tests/test_a.py", b"", "not for those who use it"),
        ("evokernel_core/test_a.py", b"", "not for those who use it"),
        ("evokernel_core/__pycache__/a.pyc", b"", "not for those who use it"),
        ("extension/src/client.ts", b"", "not for those who use it"),
        ("extension/out/extension.js.map", b"", "not for those who use it"),
        ("evokernel_core/.env", b"", "not for those who use it"),
        ("a.py", b"-----BEGIN " + b"PRIVATE KEY-----\nMIIEvQIBADANBgkq", "holds a private key"),
        ("a.py", b"KEY = 'sk-" + b"a1B2" * 8 + b"'", "holds an API key"),
        ("a.py", b"PATH = '/home/" + b"alice/evokernel'", "holds a person's home folder"),
        ("report/vendor/d4.min.js", b"", "has no licence beside it"),
    ],
)
def test_what_is_planted_is_found(name: str, data: bytes, words: str) -> None:
    assert any(words in fault for fault in faults(GOOD | {name: data}))


def test_a_missing_licence_is_found() -> None:
    assert list(faults({"a.py": b""})) == ["the licence is missing"]


@pytest.mark.parametrize(
    ("wheel", "fault"),
    [
        ({}, "a.py is missing"),
        ({"a.py": b"1", "stale.py": b""}, "stale.py is not tracked"),
        ({"a.py": b"2"}, "a.py differs from the source"),
    ],
)
def test_a_wheel_is_its_sources(wheel: dict[str, bytes], fault: str) -> None:
    assert list(wheel_faults(wheel, {"a.py": b"1"})) == [fault]


@pytest.mark.parametrize("name", VSIX)
def test_what_an_extension_lacks_is_found(name: str) -> None:
    assert list(vsix_faults({key: data for key, data in VSIX.items() if key != name}))


def test_an_extension_that_grew_is_found() -> None:
    grown = VSIX | {"extension/out/extension.js": b" " * 1_000_001}
    assert any("more than 1,000,000" in fault for fault in vsix_faults(grown))


def test_a_link_into_the_repository_is_found_on_a_page_of_a_marketplace() -> None:
    linked = VSIX | {
        "extension/readme.md": b"![a picture](media/hints.png) [a page](https://arxiv.org/abs/1)"
    }
    assert list(vsix_faults(linked)) == ["readme.md links to media/hints.png, which no marketplace has"]


def test_archives_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a.py", "1")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a-1.0/a.py")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"1"))
    assert read_archive(tmp_path / "a.whl") == read_archive(tmp_path / "a.tar.gz") == {"a.py": b"1"}


def test_the_packages_of_a_wheel_are_those_that_are_built() -> None:
    where = {Path(): ["evokernel_core"], Path("server"): ["evokernel_mcp", "evokernel_server"]}
    assert packages(ROOT) == {
        (top / name).as_posix(): ROOT / top for top, names in where.items() for name in names
    }


def test_a_message_is_framed_as_the_protocol_says() -> None:
    assert framed({"id": 1}) == b'Content-Length: 27\r\n\r\n{"jsonrpc": "2.0", "id": 1}'


@pytest.mark.parametrize(
    "page", ["docs/package.md", "vscode-extension/README.md", "vscode-extension/CHANGELOG.md"]
)
def test_pages_of_an_index_stand_alone(page: str) -> None:
    assert not relative_links((ROOT / page).read_text("utf-8"))


def test_a_program_that_works_is_told_of_and_not_ended(tmp_path: Path) -> None:
    """It sleeps for less than its idleness may last, again and again, for longer than that in all."""
    told: list[str] = []
    script = "import time\nfor _ in range(5):\n    time.sleep(0.8)\n    sum(range(2_000_000))\nprint('done')"
    command = (sys.executable, "-c", script)
    patience = Patience(tell_s=0.3, idle_s=3)
    assert run("work", command, cwd=tmp_path, patience=patience, tell=told.append) == b"done\n"
    assert told and all("work: " in line for line in told)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "import time; print('before', flush=True); time.sleep(600)",
            "used no processor for 2 s.*\n.*before",
        ),
        ("import sys; sys.exit('out of luck')", "failed with exit status 1:\nout of luck"),
    ],
)
def test_a_program_that_hangs_or_fails_is_told_with_what_it_said(
    script: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=words):
        run("work", (sys.executable, "-c", script), cwd=tmp_path, patience=Patience(idle_s=2))


def test_a_program_reads_what_it_is_given(tmp_path: Path) -> None:
    assert run("cat", ("cat",), cwd=tmp_path, stdin=b"text") == b"text"
