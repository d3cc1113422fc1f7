"""A coding agent's day: plan a file, generate, read, verify, find a race, have it explained, install."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.mcp.conftest import KERNEL, agent_of, servers

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("warm_torch")]

RACE = KERNEL.replace("    out.EnQue(b);\n", "").replace("    b = out.DeQue<float>();\n", "")
"""The store no longer waits for the vector unit."""
RACE_LINE = next(number for number, line in enumerate(RACE.splitlines(), 1) if "DataCopy(zGm" in line)


def launch(**changes: Any) -> dict[str, Any]:
    args = [
        {"in": {"fill": "random", "shape": [8, 256], "dtype": "float32"}},
        {"out": "z.npy", "shape": [8, 256], "dtype": "float32"},
        {"scalar": "uint32", "value": 2048},
        {"scalar": "float32", "value": 3},
        {"bytes": "tiling.bin"},
        {"workspace": 0},
    ]
    return {"block_dim": 8, "args": args, **changes}


async def test_a_kernel_is_planned_generated_read_verified_and_installed(project: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    options = ("--trust", str(project), "--allow-write")
    async with agent_of(*options, roots=(project,)) as agent:
        assert agent.client.instructions and "plan" in agent.client.instructions
        plan = await agent.call("plan", path="model.py")
        assert plan["trusted"] and plan["interpreter"]
        (region,) = plan["regions"]
        assert region["lines"] == "6" and "status" not in region and "measured" not in region
        assert region["now_us"] > region["kernel_us"] > region["bound_us"] > 0
        where = {"path": str(project / "model.py"), "region": region["id"]}

        brief = await agent.call("brief", **where)
        assert brief["steps"] and brief["tensors"] == ["x0", "x1", "out0"]
        guide = await agent.client.read_resource(brief["guide"])
        text = guide.contents[0].text  # type: ignore[union-attr]
        assert len(text) == brief["guide_characters"]
        assert "ComputeTiling" in text and brief["steps"][0] in text

        answer = await agent.client.call_tool("generate", {**where, "budget": 2}, progress_callback=hear)
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "verified", answer.structured_content
        kernel = answer.structured_content["kernel"]
        assert kernel["latency"]["us"] > 0 and kernel["latency"]["source"] == "modelled"
        assert [gate["status"] for gate in kernel["gates"]] == ["passed"] * 4
        progress = [item[0] for item in heard]
        assert progress == sorted(set(progress))
        assert any(message and "Attempt 1 of 2" in message for _, _, message in heard)

        files = [await agent.client.read_resource(uri) for uri in kernel["sources"]]
        cpp, tiling = (item.contents[0].text for item in files)  # type: ignore[union-attr]
        assert "LaunchOp" in cpp and "ComputeTiling" in tiling
        part = await agent.call("read", uri=kernel["sources"][0], limit=100, offset=100)
        assert part["text"] == cpp[100:200] and part.get("next_offset") == 200

        await _verify_own(agent, project, where, cpp, tiling)
        await _see_where_time_goes(agent, where, kernel)

        applied = await agent.call("apply", **where, source_id=kernel["source_id"][:12])
        edited = (project / "model.py").read_text()
        assert f"{applied['name']}.run(" in edited and ast.parse(edited)
        again = await agent.call("verify_package", path=applied["package"])
        assert again["verified"] and again["source_id"] == kernel["source_id"]
        assert await agent.refusal("apply", **where, source_id=kernel["source_id"][:12])
        _has_no_torch()


async def _verify_own(agent: Any, project: Path, where: dict[str, str], cpp: str, tiling: str) -> None:
    """What the agent wrote itself: broken, then right, from a folder."""
    files = {"op_kernel.cpp": cpp + "\nint x = Nothing();\n", "tiling.h": tiling}
    wrong = await agent.call("verify_kernel", **where, files=files)
    assert not wrong["verified"] and wrong["gates"][-1]["status"] == "failed"
    assert wrong["gates"][-1]["feedback"]
    own = project / "own"
    own.mkdir()
    (own / "op_kernel.cpp").write_text(cpp.replace("#include", "// written again\n#include", 1))
    (own / "tiling.h").write_text(tiling)
    right = await agent.call("verify_kernel", **where, folder="own")
    assert right["verified"], right["gates"]
    known = await agent.call("kernels", **where, limit=1)
    assert known["total"] >= 3 and known.get("next_offset") == 1 and known["kernels"][0]["verified"]
    verdict = await agent.call("verdict", source_id=right["source_id"][:10])
    assert verdict["source_id"] == right["source_id"] and verdict["notes"] == ['"written by a coding agent"']


async def _see_where_time_goes(agent: Any, where: dict[str, str], kernel: dict[str, Any]) -> None:
    """The timeline in few numbers, which agree with the verdict, and as a page."""
    seen = await agent.call("timeline", **where, source_id=kernel["source_id"][:12])
    assert seen["source_id"] == kernel["source_id"] and seen["source"] == "modelled"
    assert seen["us"] == pytest.approx(kernel["latency"]["us"], abs=0.01)
    assert sum(seen["launches"].values()) == pytest.approx(seen["us"], abs=0.01)
    shares = [item["share"] for item in seen["pipes"]]
    assert shares == sorted(shares, reverse=True) and 0 < shares[0] <= 1
    assert {item["pipe"] for item in seen["pipes"]} >= {"MTE2", "V", "MTE3"}
    assert seen["bottleneck"] == kernel["latency"]["bottleneck"]
    gaps = [item["us"] for item in seen["gaps"]]
    assert gaps and gaps == sorted(gaps, reverse=True)
    assert all("op_kernel.cpp" in item["at"] for item in seen["gaps"] if item["before"] != "wait")
    assert Path(seen["page"]).read_text("utf-8").lstrip().startswith("<!")
    assert await agent.refusal("timeline", **where, source_id="0123456789")


def _has_no_torch() -> None:
    (server,) = servers()
    loaded = [item.path for item in psutil.Process(server.pid).memory_maps()]
    assert loaded and not [path for path in loaded if "torch" in path]


@pytest.fixture
def tiled(project: Path) -> Path:
    import struct

    (project / "tiling.bin").write_bytes(struct.pack("If", 2048, 2.0))
    (project / "race.cpp").write_text(RACE)
    return project


async def test_a_plan_has_programs_and_says_nothing_empty(project: Path) -> None:
    """What it offers can be asked for by its id, also where no single kernel of the same code can be had."""
    model = Path(__file__).parents[1] / "data" / "offers" / "product_alone.py"
    (project / "gate.py").write_text(model.read_text())
    async with agent_of("--trust", str(project), roots=(project,)) as agent:
        plan = await agent.call("plan", path="gate.py", symbol="Gate")
        product, mask, gated = plan["regions"]
        assert product["category"] == "matmul" and "status" not in product
        assert mask["reason"] and "id" not in mask
        assert "reason" not in product and "vendor" not in gated
        told = [item for part in (plan, *plan["regions"]) for item in part.values()]
        assert all(item or item is False for item in told)
        assert plan["interpreter"].startswith('"/') and "{" not in plan["interpreter"]

        single = await agent.call("plan", path="gate.py", programs=False)
        (reason,) = (row["reason"] for row in single["regions"] if row["lines"] == product["lines"])
        assert reason.endswith("is not supported as a single fused kernel.")
        brief = await agent.call("brief", path="gate.py", region=product["id"])
        assert brief["inputs"][0] == "tensor x0: float32 [n0, n1]"
        assert "'" not in "".join([*brief["inputs"], *brief["outputs"]])


async def test_a_race_is_found_with_its_line_and_explained(tiled: Path) -> None:
    before = sorted(tiled.iterdir())
    async with agent_of("--root", str(tiled), "--trust", str(tiled)) as agent:
        good = await agent.call("run", path="scale.cpp", entry="scale", launch=launch())
        assert good["ok"] and "hazards" not in good
        (output,) = good["outputs"]
        assert (output["name"], output["elements"], output["not_finite"]) == ("z.npy", 2048, 0)

        compared = launch(reference={"z.npy": "x * factor * 2 + 1"})
        other = await agent.call("run", path="scale.cpp", entry="scale", launch=compared)
        assert not other["ok"] and "x * factor * 2 + 1 in 2048 of 2048" in other["error"]

        bad = await agent.call("run", path="race.cpp", entry="scale", launch=launch())
        assert not bad["ok"]
        races = [item for item in bad["hazards"] if item["code"] == "missing-sync"]
        assert {(item["file"], item["line"]) for item in races} == {("race.cpp", RACE_LINE)}
        meant = await agent.call("explain", code="missing-sync")
        assert meant["severity"].startswith("error") and "EnQue" in meant["help"]

        timed = await agent.call("run", path="scale.cpp", entry="scale", launch=launch(), mode="time")
        assert timed["latency_us"] > 0 and timed["launches"][0]["pipes"] and "outputs" not in timed
        typed = await agent.call("run", text=RACE.replace("Muls(", "Mulls("), entry="scale", launch=launch())
        assert not typed["ok"] and "Mulls" in typed["error"]
    assert sorted(tiled.iterdir()) == before, "a run writes nothing"


async def test_an_operator_of_a_project(project: Path) -> None:
    operators = Path(__file__).parents[1] / "twin" / "data" / "operators"
    name = sorted(path.name for path in operators.iterdir() if (path / "op_kernel").is_dir())[0]
    async with agent_of("--root", str(operators), "--trust", str(operators)) as agent:
        found = await agent.call("run_op", path=name)
        assert found["compiled"], found


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_each_version_of_the_protocol_tells_its_roots(project: Path, mode: str) -> None:
    async with agent_of(roots=(project,), mode=mode) as agent:
        plan = await agent.call("plan", path="model.py")
        assert plan["path"] == str(project / "model.py")
        assert (await agent.call("explain", code="deadlock"))["help"]


async def test_what_is_known_is_looked_up_in_parts(project: Path) -> None:
    async with agent_of("--root", str(project)) as agent:
        first = await agent.call("search_memory", query="DataCopyPad", limit=2)
        assert "DataCopyPad" in first["items"][0]["title"] + first["items"][0]["body"]
        assert first.get("next_offset") == 2
        second = await agent.call("search_memory", query="DataCopyPad", limit=2, offset=2)
        assert not {item["id"] for item in first["items"]} & {item["id"] for item in second["items"]}
        only = await agent.call("search_memory", query="vector unit", kinds=["practice"], limit=3)
        assert {item["kind"] for item in only["items"]} == {"practice"}
        listed = {str(item.uri) for item in (await agent.client.list_resources()).resources}
        assert listed == {"evokernel://docs/hazards", "evokernel://docs/kernel-abi"}
        for uri, words in (
            ("hazards", "missing-sync"),
            ("kernel-abi", "ComputeTiling"),
            ("kernel-abi/cube", "L0C"),
        ):
            page = await agent.client.read_resource(f"evokernel://docs/{uri}")
            assert words in page.contents[0].text  # type: ignore[union-attr]
        prompt = await agent.client.get_prompt("write_kernel", {"path": "model.py"})
        assert "verify_kernel" in prompt.messages[0].content.text  # type: ignore[union-attr]
