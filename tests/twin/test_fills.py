"""A LAUNCH.json takes on the command line what coding agents may say in a launch: inputs to make, too."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from evokernel_mcp.inputs import Argument, BareLaunch, Filled

from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.apart import run_source
from evokernel_core.twin.bare import filled, read_launch
from evokernel_core.twin.fills import Fills

SCALE = Path(__file__).parent / "data" / "scale.cpp"
RANDOM = {"fill": "random", "shape": [4, 8], "dtype": "float32", "seed": 3}
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"in": "x.npy"},
    {"in": RANDOM},
    {"in": {"fill": "arange", "shape": [3], "dtype": "bfloat16"}},
    {"out": "z.npy", "shape": [4], "dtype": "int32", "from": "z0.npy"},
    {"scalar": "uint32", "value": 4},
    {"bytes": "tiling.bin"},
    {"workspace": 64},
    {"null": True},
    {"same": 0},
    {"list": [{"in": {"fill": "ones", "shape": [2, 2], "dtype": "bfloat16"}}, {"in": "x.npy"}]},
)


def launch_file(folder: Path, *args: Any, **more: Any) -> Path:
    path = folder / "launch.json"
    path.write_text(json.dumps({"block_dim": 1, "args": args, **more}))
    return path


def test_every_kind_of_argument_of_agents_is_one_here() -> None:
    told = BareLaunch(args=[Argument.model_validate(item) for item in ARGUMENTS]).as_file()
    named = {name for item in told["args"] for name in item}
    fields = {item.alias or name for name, item in Argument.model_fields.items()}
    assert named == fields, "each is in an example"
    assert set(RANDOM) == set(Filled.model_fields)


def test_a_launch_of_an_agent_is_read_and_filled(tmp_path: Path) -> None:
    told = BareLaunch(args=[Argument.model_validate(item) for item in ARGUMENTS]).as_file()
    found = filled(read_launch(launch_file(tmp_path, *told["args"])), tmp_path).args
    assert all(isinstance(item.get("in", ""), str) for item in found)
    values = np.load(found[1]["in"])
    assert (values.shape, values.dtype) == ((4, 8), np.float32)
    assert (found[1]["shape"], found[1]["dtype"]) == ([4, 8], "float32")
    assert np.fromfile(found[2]["in"], np.uint16).tolist() == [0, 0x3F80, 0x4000]
    first, second = found[9]["list"]
    assert (first["shape"], Path(first["in"]).stat().st_size, second["in"]) == ([2, 2], 8, "x.npy")


def test_a_seed_is_the_same_input_and_another_is_another(tmp_path: Path) -> None:
    def made(seed: int) -> Any:
        return np.load(Fills(tmp_path).filled({"in": {**RANDOM, "seed": seed}})["in"])

    assert np.array_equal(made(1), made(1))
    assert not np.array_equal(made(1), made(2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({**RANDOM, "fill": "ten"}, "random, zeros, ones, arange"),
        ({**RANDOM, "dtype": "float8"}, "float16"),
        ({"fill": "ones", "dtype": "float16"}, '"shape"'),
        ({**RANDOM, "shape": [-1]}, '"shape"'),
        ({**RANDOM, "shape": 4}, '"shape"'),
        ({**RANDOM, "seed": -1}, '"seed"'),
        (7, "a file, or how to fill it"),
        ({**RANDOM, "shape": [2**40]}, "more than a GiB"),
    ],
)
@pytest.mark.parametrize("in_list", [False, True])
def test_a_fill_that_is_none_is_refused(tmp_path: Path, given: Any, words: str, in_list: bool) -> None:
    arg: dict[str, Any] = {"in": given}
    path = launch_file(tmp_path, {"list": [arg]} if in_list else arg)
    with pytest.raises(UsageError, match=words):
        filled(read_launch(path), tmp_path)


def test_the_command_line_runs_what_an_agent_runs(tmp_path: Path) -> None:
    """The same launch by both: the same output, of an input that was made with a seed."""
    count = 256
    (tmp_path / "tiling.bin").write_bytes(struct.pack("<If", count, 2.0))
    args = [
        {"in": {**RANDOM, "shape": [count]}},
        {"out": "z.npy", "shape": [count], "dtype": "float32"},
        {"scalar": "uint32", "value": count},
        {"scalar": "float32", "value": 1.5},
        {"bytes": "tiling.bin"},
        {"workspace": 0},
    ]
    path = launch_file(tmp_path, *args)
    done = CliRunner().invoke(
        cli, ["twin", "run", str(SCALE), "--entry", "scale", "--launch", str(path), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = run_source(
        {
            **{"source": str(SCALE), "folder": str(tmp_path), "roots": [str(tmp_path), str(SCALE.parent)]},
            **{"mode": "check", "includes": [], "defines": [], "limit_s": 60, "auto_sync": True},
            **{"entry": "scale", "launch": json.loads(path.read_text())},
        },
        "ascend910b1",
    )
    assert told["ok"], told["error"]
    ours = np.load(tmp_path / "z.npy")
    expected = 3.0 * np.random.default_rng([3, 1]).standard_normal(count).astype(np.float32)
    assert np.allclose(ours, expected)
    assert told["outputs"][0]["first"] == [float(value) for value in ours[:8]]
    assert json.loads(done.output)["latency_us"] == told["latency_us"]
    assert not list(tmp_path.glob("made*")), "nothing is left beside the launch"
