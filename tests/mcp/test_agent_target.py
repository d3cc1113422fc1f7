"""A coding agent on a server whose kernels are in Triton: what it is told, and what is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp.conftest import agent_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("warm_torch")]

RECORD = '{"inputs": ["x", "y"], "outputs": ["output"], "symbols": ["n0", "n1"], "launches": []}'


@pytest.mark.parametrize("options", [("--target", "triton"), ("--chip", "nvidia_a100")])
async def test_an_agent_is_told_of_triton(options: tuple[str, str], project: Path) -> None:
    chip = options[1] if options[0] == "--chip" else "nvidia_h200"
    async with agent_of("--trust", str(project), *options, roots=(project,)) as agent:
        assert f"kernels in Triton for PyTorch code on this machine, for {chip}" in (
            agent.client.instructions or ""
        )
        plan = await agent.call("plan", path="model.py", programs=False)
        (region,) = plan["regions"]
        assert plan["chip"] == chip and region["id"]
        page = await agent.client.read_resource("evokernel://docs/kernel-abi")
        assert "import triton.language as tl" in page.contents[0].text  # type: ignore[union-attr]
        prompt = await agent.client.get_prompt("write_kernel", {"path": "model.py"})
        assert "kernel.py and launch.json" in prompt.messages[0].content.text  # type: ignore[union-attr]
        if options[0] == "--chip":
            return
        place = {"path": "model.py", "region": region["id"]}
        brief = await agent.call("brief", **place)
        guide = await agent.client.read_resource(brief["guide"])
        text = guide.contents[0].text  # type: ignore[union-attr]
        assert "launch.json" in text and "AscendC" not in text
        texts = {"kernel.py": "import os\n", "launch.json": RECORD}
        verdict = await agent.call("verify_kernel", files=texts, **place)
        assert [(gate["gate"], gate["status"]) for gate in verdict["gates"]] == [("audit", "failed")]
        refused = await agent.refusal("verify_kernel", files={"op_kernel.cpp": "x", "tiling.h": "y"}, **place)
        assert "kernel.py and launch.json" in refused
        other = await agent.refusal(
            "verify_kernel", files={"op_kernel.cpp": "x", "tiling.h": "y"}, target="ascendc", **place
        )
        assert "are verified here" in other and "--target ascendc" in other
