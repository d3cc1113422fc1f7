"""Only what lies in the roots is read, only what is trusted is run, and nothing is written unless allowed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from evokernel_mcp.access import LONGEST_PATH, Access, local_folder
from evokernel_server.trust import Trust

from evokernel_core.domain.errors import UsageError
from tests.mcp.conftest import MODEL, agent_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("warm_torch")]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """``inside`` with all that a hostile project could hold, beside ``outside``."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside, tmp_path / "inside-too"):
        folder.mkdir()
        (folder / "model.py").write_text(MODEL)
    (inside / "link.py").symlink_to(outside / "model.py")
    (inside / "far").symlink_to(outside)
    (inside / "near.py").symlink_to(inside / "model.py")
    os.mkfifo(inside / "pipe.py")
    (inside / "big.py").write_bytes(b"#" * (4 * 1024**2 + 1))
    (inside / "latin.py").write_bytes("# \xe9".encode("latin-1"))
    return tmp_path.resolve()


def access(folders: Path) -> Access:
    return Access((folders / "inside",), Trust(), may_write=False)


@pytest.mark.parametrize("given", ["model.py", "./model.py", "../inside/model.py", "near.py"])
def test_files_of_the_roots(folders: Path, given: str) -> None:
    assert access(folders).file(given) == folders / "inside" / "model.py"
    assert access(folders).file(str(folders / "inside" / given)) == folders / "inside" / "model.py"


OUTSIDE: dict[str, Callable[[Path], str]] = {
    "a path up": lambda _: "../outside/model.py",
    "an absolute path": lambda folders: str(folders / "outside" / "model.py"),
    "a folder that is called alike": lambda folders: str(folders / "inside-too" / "model.py"),
    "a link to a file": lambda _: "link.py",
    "a link to a folder": lambda _: "far/model.py",
    "a path up from a link": lambda _: "far/../model.py",
    "a device": lambda _: "/dev/zero",
    "a process's file": lambda _: "/proc/self/environ",
    "a pipe": lambda _: "pipe.py",
    "a folder": lambda folders: str(folders / "inside"),
    "nothing": lambda _: "",
    "a byte that no path has": lambda _: "model.py\0",
    "a long path": lambda _: "a/" * LONGEST_PATH,
    "what is not there": lambda _: "absent.py",
    "a home": lambda _: "~/model.py",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_no_file_of_the_roots(folders: Path, name: str) -> None:
    with pytest.raises(UsageError):
        access(folders).file(OUTSIDE[name](folders))


@pytest.mark.parametrize("name", ["big.py", "latin.py"])
def test_texts_that_are_not_read(folders: Path, name: str) -> None:
    found = access(folders)
    with pytest.raises(UsageError, match="cannot be read"):
        found.text(found.file(name))


def test_nothing_is_open_without_roots() -> None:
    with pytest.raises(UsageError, match="--root"):
        Access((), Trust(), may_write=False).file("/etc/hostname")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///tmp", "/tmp"),
        ("file://localhost/tmp", "/tmp"),
        ("file:///t%6Dp/../tmp", "/tmp"),
        ("file://elsewhere/tmp", None),
        ("https://host/tmp", None),
        ("file:tmp", None),
        ("", None),
        ("file:///%00", None),
    ],
)
def test_roots_are_folders_of_this_machine(uri: str, path: str | None) -> None:
    assert local_folder(uri) == (Path(path) if path else None)


TRAP = f"import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n{MODEL}"


async def test_without_trust_a_file_is_parsed_and_nothing_is_run(project: Path) -> None:
    (project / "model.py").write_text(TRAP)
    async with agent_of(roots=(project,)) as agent:
        plan = await agent.call("plan", path="model.py")
        assert not plan["trusted"] and "regions" not in plan and "--trust" in plan["note"]
        assert [item["symbol"] for item in plan["definitions"]] == ["blend"]
        for tool, arguments in {
            "generate": {"path": "model.py", "region": "00"},
            "brief": {"path": "model.py", "region": "00"},
            "kernels": {"path": "model.py", "region": "00"},
            "run": {"path": "scale.cpp", "entry": "scale", "launch": {"args": []}},
            "run_op": {"path": "."},
        }.items():
            assert "not trusted" in await agent.refusal(tool, **arguments)
        typed = await agent.refusal("run", text="int x;", entry="scale", launch={"args": []})
        assert "--trust" in typed
    assert not (project / "ran").exists()


async def test_trust_is_of_real_folders(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.py").write_text(TRAP)
    (project / "linked").symlink_to(other)
    async with agent_of("--root", str(tmp_path), "--trust", str(project)) as agent:
        plan = await agent.call("plan", path=str(project / "linked" / "model.py"))
        assert not plan["trusted"]
    assert not (other / "ran").exists()


async def test_roots_of_the_command_line_come_before_the_clients(project: Path, tmp_path: Path) -> None:
    async with agent_of("--root", str(project), roots=(tmp_path.resolve(),)) as agent:
        (tmp_path / "model.py").write_text(MODEL)
        assert "allowed folders" in await agent.refusal("plan", path=str(tmp_path / "model.py"))
        assert (await agent.call("plan", path="model.py"))["total"] == 1


async def test_trusted_folders_are_roots_where_nobody_names_any(project: Path) -> None:
    async with agent_of("--trust", str(project)) as agent:
        assert (await agent.call("plan", path="model.py"))["trusted"]


async def test_what_writes_is_not_there_unless_allowed(project: Path) -> None:
    async with agent_of("--root", str(project), "--trust", str(project)) as agent:
        assert not {"apply", "run_program"} & set(agent.schemas)
        assert "Unknown tool" in await agent.refusal("apply", path="model.py", region="0", source_id="0" * 12)


OUT = {"out": "z.npy", "shape": [1], "dtype": "float32"}
LAUNCHES: list[dict[str, object]] = [
    {"args": [{"in": "../secret.npy"}]},
    {"args": [{"in": "/etc/hostname"}]},
    {"args": [{"bytes": "link.bin"}]},
    {"args": [{"list": [{"in": "../secret.npy"}]}]},
    {"args": [{**OUT, "from": "../secret.npy"}]},
    {"args": [{**OUT, "out": "../z.npy"}]},
    {"args": [{**OUT, "out": "/tmp/z.npy"}]},
    {"args": [OUT], "expect": {"z.npy": "../secret.npy"}},
    {"args": [{"in": {"fill": "zeros", "shape": [2**40], "dtype": "float32"}}]},
]


async def test_a_launch_reads_and_writes_nothing_outside(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.npy").write_bytes(b"secret")
    (project / "link.bin").symlink_to(tmp_path / "secret.npy")
    async with agent_of("--root", str(project), "--trust", str(project)) as agent:
        for launch in LAUNCHES:
            said = await agent.refusal("run", path="scale.cpp", entry="scale", launch=launch)
            assert "secret" not in said.replace("secret.npy", ""), launch
    assert not (tmp_path / "z.npy").exists()


async def test_a_source_includes_nothing_outside(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("#error the secret\n")
    (project / "with.cpp").write_text(f'#include "../secret.h"\n{(project / "scale.cpp").read_text()}')
    async with agent_of("--root", str(project), "--trust", str(project)) as agent:
        said = await agent.refusal("run", path="with.cpp", entry="scale", launch={"args": []})
        assert "outside of the allowed folders" in said and "the secret" not in said
        assert "allowed folders" in await agent.refusal(
            "run", path="scale.cpp", entry="scale", launch={"args": []}, includes=[str(tmp_path)]
        )
