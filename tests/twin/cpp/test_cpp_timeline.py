"""The Chrome trace and the page of a run."""

from __future__ import annotations

import json
import re

import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel
from evokernel_core.twin.timeline import chrome_trace, write_timeline

STAGES = """
    TPipe pipe;
    TQue<TPosition::VECIN, 2> in;
    TQue<TPosition::VECOUT, 2> out;
    pipe.InitBuffer(in, 2, 2048);
    pipe.InitBuffer(out, 2, 2048);
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0] + GetBlockIdx() * 512 * 8, 512 * 8);
    z.SetGlobalBuffer((__gm__ float *)t[1] + GetBlockIdx() * 512 * 8, 512 * 8);
    for (uint32_t i = 0; i < 8; ++i) {
        LocalTensor<float> a = in.AllocTensor<float>();
        DataCopy(a, x[i * 512], 512);
        in.EnQue(a);
        a = in.DeQue<float>();
        LocalTensor<float> c = out.AllocTensor<float>();
        Exp(c, a, 512);
        out.EnQue(c);
        in.FreeTensor(a);
        c = out.DeQue<float>();
        DataCopy(z[i * 512], c, 512);
        out.FreeTensor(c);
    }
"""
BLOCKS = 3


@pytest.fixture(scope="module")
def traced(compile_kernel, tmp_path_factory):
    """A run of 3 blocks, its Chrome trace and its page."""
    folder = tmp_path_factory.mktemp("trace")
    tensor = TensorFile(None, BLOCKS * 512 * 8 * 4)
    request = RunRequest(
        Mode.TIME, load_chip(), inputs=(tensor,), outputs=(tensor,), trace=folder / "trace.json"
    )
    result = run_kernel(compile_kernel(STAGES, blocks=BLOCKS).built, request)
    write_timeline(folder / "trace.json", result, "ascend910b1", folder / "page.html")
    return result, json.loads((folder / "trace.json").read_text()), (folder / "page.html").read_text()


def test_a_process_for_each_core_and_a_thread_for_each_pipe(traced) -> None:
    _, trace, _ = traced
    named = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    processes = [event["args"]["name"] for event in named if event["name"] == "process_name"]
    assert [name.removesuffix(" (slowest)") for name in processes] == [
        f"tested block {block} of {BLOCKS}" for block in range(BLOCKS)
    ]
    threads = {event["args"]["name"] for event in named if event["name"] == "thread_name"}
    assert threads == {"S", "V", "MTE2", "MTE3"}


def test_instructions_carry_their_place_and_bytes(traced) -> None:
    _, trace, _ = traced
    shown = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["name"] != "wait"]
    assert len(shown) == BLOCKS * 8 * 3
    assert all(re.fullmatch(r"op_kernel\.cpp:\d+", event["args"]["at"]) for event in shown)
    assert {event["args"]["bytes"] for event in shown} == {0, 2048}


def test_the_instructions_of_a_pipe_do_not_overlap(traced) -> None:
    _, trace, _ = traced
    ends: dict[tuple[int, int], float] = {}
    for event in (event for event in trace["traceEvents"] if event["ph"] == "X"):
        row = (event["pid"], event["tid"])
        assert event["ts"] >= ends.get(row, 0.0) - 1e-3
        ends[row] = event["ts"] + event["dur"]


def test_each_arrow_has_two_ends_and_points_forward(traced) -> None:
    _, trace, _ = traced
    starts = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "s"}
    ends = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "f"}
    assert starts
    assert starts.keys() == ends.keys()
    assert all(starts[arrow]["ts"] < ends[arrow]["ts"] for arrow in starts)


def test_the_page_needs_nothing_else_and_says_what_the_run_said(traced) -> None:
    result, _, page = traced
    assert not re.search(r"""(src|href)\s*=|https?://|@import|url\(""", page)
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    data = json.loads(found[1])
    assert data["launches"][0]["bottleneck"] == result.launches[0].bottleneck
    assert len(data["cores"]) == BLOCKS
    assert [pipe["name"] for pipe in data["cores"][0]["pipes"]] == ["MTE2", "V", "MTE3", "S"]
    for core in data["cores"]:
        for pipe in core["pipes"]:
            assert len(pipe["events"]) % 7 == 0
            assert pipe["busy"] + sum(pipe["waits"].values()) <= core["total"] * 1.001


def test_text_of_a_run_cannot_leave_its_script(traced, tmp_path) -> None:
    result, trace, _ = traced
    trace["traceEvents"][0]["args"]["name"] = "</script><b>"
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    write_timeline(tmp_path / "trace.json", result, "ascend910b1", tmp_path / "page.html")
    assert "</script><b>" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("wanted", "same"), [("t.json", True), ("t.html", False)])
def test_where_the_chrome_trace_goes(tmp_path, wanted, same) -> None:
    with chrome_trace(tmp_path / wanted) as path:
        assert (path == tmp_path / wanted) is same
    with chrome_trace(None) as path:
        assert path is None


def test_a_short_launch_is_not_said_to_be_bound_by_a_pipe(traced) -> None:
    sentence = traced[0].launches[0].bottleneck
    assert re.fullmatch(r"launch-bound: \d+ % of the time is the launch, MTE2 busy \d+ %\.", sentence)
