"""Other people of the machine on which ``verifier serve --ray local`` runs: whoever reads the token, or
writes where Ray's sockets and logs are, runs programs as the service."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from evokernel_core.verifier.serving.fleet.own import close_folder, close_token, private_folder_of_ray
from tests.verifier.service.test_fleet import family, seats, until


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def token(home: Path) -> Path:
    path = home / ".ray" / "auth_token"
    path.parent.mkdir(parents=True)
    path.write_text("secret")
    return path


def test_read_a_token_that_was_there_before(tmp_path: Path) -> None:
    path = token(tmp_path)
    assert mode(path) == 0o644
    close_token(tmp_path)
    assert (mode(path), path.read_text()) == (0o600, "secret")


def test_have_another_file_closed_by_a_link(tmp_path: Path) -> None:
    """Wants a file of the owner's to change its mode."""
    other = tmp_path / "other"
    other.write_text("")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").symlink_to(other)
    close_token(tmp_path)
    assert mode(other) == 0o644


@pytest.mark.parametrize("place", ["", "a-temporary-folder-with-a-name-that-is-long"])
def test_write_into_the_folder(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants a way in while Ray runs. It opens its folders to everybody, the one that it is given as well."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if place:
        (tmp_path / place).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / place))
    with private_folder_of_ray() as folder:
        assert len(str(folder)) + 65 < 107, "a socket has its place in it"
        session = folder / "session"
        session.mkdir()
        (session / "file").write_text("")
        for opened in (folder, session):
            opened.chmod(0o777)
        assert mode(folder.parent) == 0o700
        (session / "link").symlink_to(tmp_path)
        tmp_path.chmod(0o755)
        close_folder(folder)
        assert {mode(item) for item in (folder, session)} == {0o700}
        assert mode(session / "file") == 0o600
        assert mode(tmp_path) == 0o755
    assert not folder.exists()


@pytest.mark.thorough
def test_reach_a_ray_that_runs(make_server: Callable[..., Any], tmp_path: Path) -> None:
    server = make_server(options={"ray": "local"}, environment={"HOME": str(tmp_path)})
    until(lambda: seats(server) == 1, 180.0)
    words = " ".join(word for process in family(server.process.pid) for word in words_of(process))
    folders = {Path(found) for found in re.findall(r"(/[^\s=,:]*?)/session_\d", words)}
    assert folders
    for folder in folders:
        assert mode(folder) == mode(folder.parent) == 0o700
        assert folder.lstat().st_uid == os.getuid()
    path = tmp_path / ".ray" / "auth_token"
    assert mode(path) == 0o600
    assert path.read_text()


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
