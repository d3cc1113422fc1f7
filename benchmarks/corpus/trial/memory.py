"""The most bytes that one call of a program takes, as JSON: ``python memory.py DRIVER [NAME] --file FILE``.

DRIVER, NAME and FILE are those of side.py. Without gradients, which keep what they need in any case.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import side  # noqa: E402 - a file beside this one, which leaves this folder out of the path again

Peak = side.load("evokernel_peak", HERE / "peak.py").Peak


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("driver", nargs="+")
    parser.add_argument("--file", required=True)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out, sys.stdout = sys.stdout, sys.stderr  # what models print
    run = side.Run(side.driver_of(*args.driver), args.file, "infer")
    torch.manual_seed(0)
    with ExitStack() as scope:
        run.scope = scope
        run.build()
        run.supply()
        with torch.no_grad(), Peak() as peak:
            run()
    print(json.dumps({"bytes": peak.bytes}), file=out)


if __name__ == "__main__":
    main()
