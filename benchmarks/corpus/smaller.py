"""Copies of KernelBench's problems with small tensors, which `benchmarks/meaning.py` can call often.

    python benchmarks/corpus/smaller.py PROBLEMS FOLDER [--bytes N]

The sizes that a file assigns at its top are halved, equally often and none below a least one, until inputs
and weights take less than N bytes together; the model and everything else stay as they are. A problem
that no halving makes small enough, or that its halved sizes break, is named and left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import torch

_SIZES = re.compile(r"^(\w+(?: *[,=] *\w+)* *= *)([\d(][\d\s*,()]*)(?= *(?:#.*)?$)", re.MULTILINE)
_LEAST = (32, 16, 8)
_HALVINGS = 16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("problems", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bytes", type=int, default=1 << 23)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    left_out = 0
    for file in sorted(args.problems.glob("*.py")):
        text = smaller(file.read_text(), args.bytes)
        if text is None:
            left_out += 1
            print(f"{file.name}: no smaller sizes fit", file=sys.stderr, flush=True)
        else:
            (args.folder / file.name).write_text(text)
    return int(left_out > 0)


def smaller(text: str, limit: int) -> str | None:
    """The problem's text with sizes that take less than ``limit`` bytes and run; None if there are none."""
    for least in _LEAST:
        for halvings in range(_HALVINGS):
            halved = _halved(text, halvings, least)
            try:
                if _size(halved, limit) < limit:
                    return halved
            except Exception:  # whatever a problem raises whose sizes do not fit each other
                break
    return None


def _halved(text: str, halvings: int, least: int) -> str:
    def sizes(match: re.Match[str]) -> str:
        return match[1] + re.sub(r"\d+", lambda number: str(_half(int(number[0]), halvings, least)), match[2])

    return _SIZES.sub(sizes, text)


def _half(size: int, halvings: int, least: int) -> int:
    for _ in range(halvings):
        if size < 2 * least:
            break
        size //= 2
    return size


def _size(text: str, limit: int) -> int:
    """The bytes of inputs and weights; what is within the limit is run. Raises what the problem raises."""
    problem: dict[str, Any] = {"__name__": "problem"}
    exec(text, problem)
    with torch.device("meta"):
        size = _bytes(*_built(problem))
    if size < limit:
        model, inputs = _built(problem)
        with torch.no_grad():
            model(*inputs)
    return size


def _built(problem: dict[str, Any]) -> tuple[torch.nn.Module, list[Any]]:
    return problem["Model"](*problem["get_init_inputs"]()), problem["get_inputs"]()


def _bytes(model: torch.nn.Module, inputs: list[Any]) -> int:
    tensors = [*model.parameters(), *(item for item in inputs if isinstance(item, torch.Tensor))]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


if __name__ == "__main__":
    sys.exit(main())
