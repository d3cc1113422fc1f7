"""``evokernel twin run`` on bare kernels and on whole programs."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.dtypes import from_memory, nbytes_of, to_memory

pytestmark = pytest.mark.usefixtures("kernel_home")

ARGS: list[dict[str, Any]] = [
    {"in": "x.npy"},
    {"out": "z.npy", "shape": [8, 256], "dtype": "float32"},
    {"scalar": "uint32", "value": 2048},
    {"scalar": "float32", "value": 3},
    {"bytes": "tiling.bin"},
    {"workspace": 0},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).standard_normal((8, 256)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "golden.npy", x * 6)
    (tmp_path / "tiling.bin").write_bytes(struct.pack("If", 2048, 2.0))
    return tmp_path


def launch(folder: Path, source: Path, *options: str, **changes: Any) -> Result:
    content = {"block_dim": 8, "args": ARGS, "expect": {"z.npy": "golden.npy"}, **changes}
    (folder / "launch.json").write_text(json.dumps(content))
    words = ["twin", "run", str(source), "--entry", "scale", "--launch", str(folder / "launch.json")]
    return CliRunner().invoke(cli, [*words, *options])


def test_a_bare_kernel_on_npy_files(folder: Path, data: Path) -> None:
    done = launch(folder, data / "scale.cpp", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.output)
    assert result["ok"] is True
    assert result["hazards"] == []
    assert [item["kernel"] for item in result["launches"]] == ["scale"]
    assert result["launches"][0]["block_dim"] == 8
    assert result["latency_us"] == pytest.approx(sum(item["latency_us"] for item in result["launches"]))
    assert {"exit_code", "compile_s", "run_s"} <= set(result)
    np.testing.assert_allclose(np.load(folder / "z.npy"), np.load(folder / "golden.npy"), rtol=1e-6)


def test_the_time_mode_and_a_timeline(folder: Path, data: Path) -> None:
    trace = folder / "trace.json"
    done = launch(folder, data / "scale.cpp", "--json", "--mode", "time", "--trace", str(trace))
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["latency_us"] > 0
    assert json.loads(trace.read_text())["traceEvents"]
    assert not (folder / "z.npy").exists()


def test_a_result_that_is_not_as_expected(folder: Path, data: Path) -> None:
    np.save(folder / "golden.npy", np.load(folder / "golden.npy") + 1)
    done = launch(folder, data / "scale.cpp")
    assert done.exit_code == 1
    assert "z.npy differs from golden.npy in 2048 of 2048 elements" in done.output
    assert "estimated" in done.output


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("x * 6", ""),
        ("x * factor * 2", ""),
        ("where(x < 0, -abs(x), x) * total / 2048 * 6", ""),
        ("x * 6 + 0.5", "z.npy differs from x * 6 + 0.5 in 2048 of 2048 elements, first at 0"),
        ("sum(x, 1)", "z.npy has 2048 elements, sum(x, 1) has 8."),
    ],
)
def test_a_reference_is_computed_of_the_kernels_parameters(
    folder: Path, data: Path, reference: str, words: str
) -> None:
    done = launch(folder, data / "scale.cpp", expect={}, reference={"z.npy": reference})
    assert (done.exit_code, words in done.output) == (1 if words else 0, True), done.output


def test_a_loose_tolerance(folder: Path, data: Path) -> None:
    np.save(folder / "golden.npy", np.load(folder / "golden.npy") + 1)
    assert launch(folder, data / "scale.cpp", atol=1.5).exit_code == 0


def test_a_hazard_fails(folder: Path, data: Path, tmp_path: Path) -> None:
    source = tmp_path / "short.cpp"
    source.write_text(
        (data / "scale.cpp").read_text().replace("DataCopy(zGm, b, share);", "DataCopy(zGm, b, 8);")
    )
    done = launch(folder, source, "--json")
    assert done.exit_code == 1
    result = json.loads(done.output)
    assert "output-not-written" in {hazard["code"] for hazard in result["hazards"]}


def test_a_compiler_that_inserts_no_barriers(folder: Path, data: Path, tmp_path: Path) -> None:
    source = tmp_path / "twice.cpp"
    twice = "Adds(b, b, 0.0f, share);\n    out.EnQue(b);"
    source.write_text((data / "scale.cpp").read_text().replace("out.EnQue(b);", twice))
    assert launch(folder, source).exit_code == 0
    done = launch(folder, source, "--json", "--no-auto-sync")
    assert done.exit_code == 1
    (hazard,) = json.loads(done.output)["hazards"]
    assert hazard["code"] == "missing-sync"
    assert "PipeBarrier<PIPE_V>" in hazard["message"]


def test_a_compile_error_names_the_file_and_line(folder: Path, data: Path, tmp_path: Path) -> None:
    source = tmp_path / "broken.cpp"
    source.write_text((data / "scale.cpp").read_text().replace("Muls(b, a,", "Mulls(b, a,"))
    done = launch(folder, source)
    line = next(i for i, text in enumerate(source.read_text().splitlines(), 1) if "Mulls" in text)
    assert done.exit_code == 1
    assert f"broken.cpp:{line}: 'Mulls' was not declared" in done.output


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"args": ARGS[:3]}, "6 parameters"),
        (
            {"reference": {"z.npy": "x * z"}},
            "names z, and the kernel's inputs and scalars are x, total, factor",
        ),
        ({"reference": {"z.npy": "x + (1, 2)"}}, "is not allowed in a reference"),
        ({"reference": {"y.npy": "x"}}, "no output"),
        ({"args": [{"in": "nothing.npy"}, *ARGS[1:]]}, "does not exist"),
        ({"args": [{"input": "x.npy"}]}, "exactly one of"),
        ({"args": [{"out": "z.npy", "shape": [1], "dtype": "complex"}]}, "dtype"),
        ({"args": [{"scalar": "complex", "value": 1}]}, "type"),
        ({"args": "x.npy"}, "no list"),
        ({"expect": {"y.npy": "golden.npy"}}, "no output"),
    ],
)
def test_a_wrong_launch_file_is_explained(
    changes: dict[str, Any], words: str, folder: Path, data: Path
) -> None:
    done = launch(folder, data / "scale.cpp", **changes)
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_status == 2
    assert words in str(done.exception)


def test_an_unknown_entry(folder: Path, data: Path) -> None:
    launch(folder, data / "scale.cpp")
    words = ["twin", "run", str(data / "scale.cpp"), "--entry", "no", "--launch", str(folder / "launch.json")]
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, UsageError)


def test_entry_needs_launch(data: Path) -> None:
    done = CliRunner().invoke(cli, ["twin", "run", str(data / "scale.cpp"), "--entry", "scale"])
    assert isinstance(done.exception, UsageError)
    assert "go together" in str(done.exception)


# --- whole programs ---


def program(data: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["twin", "run", str(data / "program.cpp"), *words])


def test_a_program_with_its_own_main(data: Path) -> None:
    done = program(data, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.output)
    assert (result["ok"], result["exit_code"]) == (True, 0)
    assert result["launches"][0]["kernel"] == "add_one"
    assert result["latency_us"] > 0


def test_its_output_and_a_macro(data: Path) -> None:
    done = program(data, "-D", "COUNT=512")
    assert done.exit_code == 0, done.output
    assert "512 values of 3" in done.output


def test_a_program_without_the_compilers_barriers(data: Path, tmp_path: Path) -> None:
    adds = "AscendC::Adds(local, local, 1.0f, count);"
    for name in ("program.cpp", "add_one.h"):
        text = (data / name).read_text().replace(adds, adds + "AscendC::Muls(local, local, 1.0f, count);")
        (tmp_path / name).write_text(text)
    words = ["twin", "run", str(tmp_path / "program.cpp"), "--json"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    done = CliRunner().invoke(cli, [*words, "--no-auto-sync"])
    assert done.exit_code == 1
    assert {hazard["code"] for hazard in json.loads(done.output)["hazards"]} == {"missing-sync"}


def test_its_arguments_and_exit_status(data: Path) -> None:
    done = program(data, "--json", "--", "fail")
    assert done.exit_code == 1
    assert json.loads(done.output)["exit_code"] == 7


def test_a_program_that_launches_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.cpp").write_text("int main() { return 0; }\n")
    done = CliRunner().invoke(cli, ["twin", "run", str(tmp_path / "empty.cpp")])
    assert done.exit_code == 1


def test_a_missing_source_and_a_bad_macro(tmp_path: Path, data: Path) -> None:
    missing = CliRunner().invoke(cli, ["twin", "run", str(tmp_path / "no.cpp")])
    assert isinstance(missing.exception, UsageError)
    assert isinstance(program(data, "-D", "1=2").exception, UsageError)


def test_wrong_usage_is_status_2(data: Path) -> None:
    assert program(data, "--mode", "fast").exit_code == 2


HALVES_OF_BYTES = """\
#include "kernel_operator.h"
using namespace AscendC;

// y = x as half; z = x + 1 in four bits again.
extern "C" __global__ __aicore__ void widen(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t count)
{
    TPipe pipe;
    GlobalTensor<int4b_t> from, back;
    GlobalTensor<half> to;
    from.SetGlobalBuffer(reinterpret_cast<__gm__ int4b_t *>(x), count);
    back.SetGlobalBuffer(reinterpret_cast<__gm__ int4b_t *>(z), count);
    to.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y), count);
    TQue<TPosition::VECIN, 1> taken;
    TQue<TPosition::VECOUT, 1> wide, narrow;
    pipe.InitBuffer(taken, 1, count / 2);
    pipe.InitBuffer(wide, 1, count * sizeof(half));
    pipe.InitBuffer(narrow, 1, count / 2);
    LocalTensor<int4b_t> in = taken.AllocTensor<int4b_t>();
    DataCopy(in, from, count);
    taken.EnQue(in);
    in = taken.DeQue<int4b_t>();
    LocalTensor<half> values = wide.AllocTensor<half>();
    LocalTensor<int4b_t> made = narrow.AllocTensor<int4b_t>();
    Cast(values, in, RoundMode::CAST_NONE, count);
    wide.EnQue(values);
    values = wide.DeQue<half>();
    DataCopy(to, values, count);
    PipeBarrier<PIPE_ALL>();
    Adds(values, values, static_cast<half>(1), count);
    PipeBarrier<PIPE_V>();
    Cast(made, values, RoundMode::CAST_RINT, count);
    narrow.EnQue(made);
    made = narrow.DeQue<int4b_t>();
    DataCopy(back, made, count);
    taken.FreeTensor(in);
    wide.FreeTensor(values);
    narrow.FreeTensor(made);
}
"""


def test_two_elements_of_four_bits_share_a_byte(tmp_path: Path) -> None:
    """Files have a byte for each; memory has the first of two in the lower half of one."""
    x = np.random.default_rng(1).integers(-8, 7, 512).astype(np.int8)
    for name, array in (("x", x), ("y_golden", x.astype(np.float16)), ("z_golden", x + 1)):
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "widen.cpp").write_text(HALVES_OF_BYTES)
    args = [
        {"in": "x.npy", "shape": [512], "dtype": "int4"},
        {"out": "y.npy", "shape": [512], "dtype": "float16"},
        {"out": "z.npy", "shape": [512], "dtype": "int4"},
        {"scalar": "uint32", "value": 512},
    ]
    content = {"block_dim": 1, "args": args, "expect": {"y.npy": "y_golden.npy", "z.npy": "z_golden.npy"}}
    (tmp_path / "launch.json").write_text(json.dumps(content))
    words = [str(tmp_path / "widen.cpp"), "--entry", "widen", "--launch", str(tmp_path / "launch.json")]
    done = CliRunner().invoke(cli, ["twin", "run", *words])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("count", [0, 1, 2, 7, 16])
def test_what_memory_holds_of_four_bits_comes_back(count: int) -> None:
    values = np.arange(count) % 16 - 8
    data = to_memory(values, "int4")
    assert len(data) == nbytes_of("int4", count)
    assert from_memory(data, "int4", count).tolist() == values.tolist()
