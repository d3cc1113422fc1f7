"""What the guard of an applied kernel costs in a call, in eager Python on a CPU.

    python benchmarks/guards.py [--json OUT]

Puts the single kernels and the program of ``examples/transformer_block.py`` in place in a scratch folder,
then times ``holds`` of each call site, and what ``run`` asks where operands are computed, under
EVOKERNEL_EMULATE=1, where every guard is asked and holds, and without, where the first one says that there is
no NPU. Minimum of several repetitions, in us of processor time a call.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "transformer_block.py"
EDIT = Path(__file__).parent / "corpus" / "edit_captured.py"
TIMING = """
import json, sys, time, timeit, torch, types
import transformer_block as file
found = {}
def of_file(function):  # a guard asks which module calls it
    return types.FunctionType(function.__code__, vars(file), "call", None, function.__closure__)
def us(asked, given):
    number, repeat = 2000, 9
    timer = timeit.Timer(of_file(lambda: asked(*given)), timer=time.process_time)
    return min(timer.repeat(repeat, number)) / number * 1e6
kernels = {name: value for name, value in vars(file).items() if hasattr(value, "holds")}
def watch(name, kernel):
    asked = kernel.holds
    def holds(*given):
        result = of_file(lambda: asked(*given))()
        found[name] = {"holds": result, "us": round(us(asked, given), 2)}
        return result
    kernel.holds = holds
    call = sys.modules[f"{kernel.__name__}.call"]
    if hasattr(call, "_takes"):  # operands that are computed are looked at when they are there
        ran = kernel.run
        names = [code.co_varnames[:code.co_argcount] for code in (ran.__code__, call._takes.__code__)]
        def run(*given):
            values = dict(zip(names[0], given))
            more = us(call._takes, [values[item] for item in names[1]])
            found[name]["us"] = round(found[name]["us"] + more, 2)
            return ran(*given)
        kernel.run = run
for name, kernel in kernels.items():
    watch(name, kernel)
with torch.no_grad():
    file.TransformerBlock(*file.get_init_inputs()).eval()(*file.get_inputs())
print(json.dumps(found))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [{"edit": edit, **row} for edit in ("single", "programs") for row in measured(edit)]
    for row in rows:
        print(
            "{edit:9} {kernel:40} {emulated:>7} us where it holds {plain:>6} us without an NPU".format(**row)
        )
    summary = {"most_us_single": max(row["emulated"] for row in rows if row["edit"] == "single")}
    print(json.dumps(summary))
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1) + "\n")
    return 0


def measured(edit: str) -> list[dict[str, object]]:
    """The call sites of one kind of edit, with their times."""
    with tempfile.TemporaryDirectory(prefix="evokernel-guards-") as scratch:
        file = Path(shutil.copy(EXAMPLE, scratch))
        command = [sys.executable, EDIT, file, "--interpreter", sys.executable]
        command += ["--single"] * (edit == "single")
        subprocess.run(command, check=True, capture_output=True)
        emulated, plain = timed(file.parent, emulate=True), timed(file.parent, emulate=False)
    return [
        {"kernel": name, "emulated": row["us"], "plain": plain[name]["us"]}
        for name, row in emulated.items()
        if row["holds"]
    ]


def timed(folder: Path, *, emulate: bool) -> dict[str, dict[str, object]]:
    environment = {**os.environ, "EVOKERNEL_EMULATE": str(int(emulate))}
    done = subprocess.run(
        [sys.executable, "-c", TIMING], env=environment, cwd=folder, check=True, capture_output=True
    )
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
