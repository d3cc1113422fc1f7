"""``evokernel status``: which accepted kernels of a file can run on this machine, and why others cannot."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import asdict, frozen
from rich.table import Table

from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.cli.options import named_interpreter
from evokernel_core.cli.tables import add_row, column, figure, print_table
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.foreign import read_foreign, read_foreign_object
from evokernel_core.import_root import import_root
from evokernel_core.package.write import ROOT_PACKAGE

_SECONDS = 300.0
_ASKS = """
import importlib, importlib.util, json, sys
root, *names = sys.argv[1:]
sys.path.insert(0, root)
if importlib.util.find_spec("torch_npu"):
    import torch_npu
from evokernel_kernels import report
for name in names:
    importlib.import_module("evokernel_kernels." + name)
    call = sys.modules.get("evokernel_kernels." + name + ".call")
    if call is not None:
        report.ready(call.__file__, call.NAME, call.FILE, call.SYMBOL, call.ORIGINAL, call.CODE)
print(json.dumps(report.absent()))
"""
"""What a program that imports the kernels finds. It does not import the file, so it asks of its code here."""
_MISSING = "package missing"


@frozen
class Row:
    """A call of an accepted kernel, for ``--json``. ``absent``: why the kernel cannot run here, empty
    where it runs if its guards hold."""

    line: int
    kernel: str
    absent: str
    latency_us: float | None = None
    latency_source: str | None = None
    chip: str | None = None


@click.command("status", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--interpreter",
    envvar="EVOKERNEL_INTERPRETER",
    default="",
    metavar="PATH",
    callback=named_interpreter,
    help="Python that runs the file; found from the file's folder upwards if not given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(file: Path, interpreter: str, as_json: bool) -> None:
    """Say which accepted kernels of FILE can run on this machine, and why others cannot.

    It imports their packages in the Python of FILE. What a program's own calls were refused for, the program
    says at its end with EVOKERNEL_REPORT=1.
    """
    file = file.absolute()
    rows = [*_rows(file, interpreter)]
    if as_json:
        say(json.dumps({"file": str(file), "kernels": [asdict(row) for row in rows]}))
    elif rows:
        _print(file, rows)
    else:
        say(f"No accepted kernel is called in {file.name}.")


def _rows(file: Path, interpreter: str) -> Iterator[Row]:
    calls = kernel_calls(_text(file))
    folder = import_root(file) / ROOT_PACKAGE
    names = [name for name in dict.fromkeys(calls.values()) if (folder / name).is_dir()]
    absent = _asked(file, interpreter, folder.parent, names) if names else {}
    for line, name in calls.items():
        why = absent[name] if name in names else _MISSING
        yield Row(line, name, why, **_latency(folder / name))


def _text(file: Path) -> str:
    try:
        return read_foreign(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read ({error}): name a Python file.") from error


def kernel_calls(text: str) -> dict[int, str]:
    """The kernels that a file calls, by line. Raises UsageError for a text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"The file is no Python ({error}): name one that Python can read.") from error
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == ROOT_PACKAGE
        for name in node.names
    }
    calls = {
        node.lineno: node.func.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in imported
    }
    return dict(sorted(calls.items()))


def _asked(file: Path, interpreter: str, root: Path, names: Sequence[str]) -> Mapping[str, str]:
    """What the file's interpreter finds of its kernels. Raises UsageError where it cannot say."""
    if not (root / ROOT_PACKAGE / "report.py").is_file():
        raise UsageError(
            f"{root / ROOT_PACKAGE} was written by an earlier version: accept a kernel of it again, then ask."
        )
    python = str(find_interpreter(interpreter, file.parent).path)
    environment = {**os.environ, "EVOKERNEL_REPORT": "1"}
    try:
        done = subprocess.run(
            [python, "-c", _ASKS, str(root), *names],
            cwd=root, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        said = str(error)
    raise UsageError(
        f"{python} cannot import the kernels of {file.name} ({said}): see to that, and ask again."
    )


def _latency(folder: Path) -> dict[str, Any]:
    """The latency of a package's kernel with its source, as its manifest has them; of the vendor's operator
    there is none."""
    try:
        latency = read_foreign_object(folder / "kernel.json")["verdict"]["latency"]
        us, source, chip = float(latency["us"]), LatencySource(latency["source"]), str(latency["chip"])
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return {"latency_us": us, "latency_source": source.value, "chip": chip}


def _print(file: Path, rows: Sequence[Row]) -> None:
    say(f"{file.name}: {summary(row.absent for row in rows)}")
    table = Table(*map(column, ("line", "kernel", "latency us", "runs here")))
    for row in rows:
        word = LatencySource(row.latency_source).word if row.latency_source else ""
        latency = f"{figure(row.latency_us)} {word} on {row.chip}" if row.latency_us else ""
        add_row(table, str(row.line), row.kernel, latency, row.absent or "yes")
    print_table(table)
    say("Started with EVOKERNEL_REPORT=1, a program says at its end which of them ran.")


def summary(absent: Iterable[str]) -> str:
    """``1 of 3 kernels can run here; 2 not: no NPU (2)``."""
    given = [*absent]
    left = Counter(filter(None, given))
    words = f"{len(given) - left.total()} of {len(given)} kernels can run here"
    reasons = ", ".join(f"{why} ({count})" for why, count in left.most_common())
    return f"{words}; {left.total()} not: {reasons}" if left else f"{words}, if their guards hold"
