"""From a clone to the first accepted kernel, by the commands of the README and nothing else.

    python benchmarks/newcomer.py [--source REPOSITORY] [--json OUT] [--md docs/first_kernel.md]

Clones this checkout, or another repository, into a new folder; runs what "Your first kernel" of its README
says on a U-Net of one's own, which this script writes, in an environment that has torch and nothing of ours,
with a home and an empty memory of its own. Prints each step's seconds and processor seconds, and exits with 1
unless a kernel stands in the file at the end. Torch is that of the interpreter that runs this script.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from attrs import asdict, frozen

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Your first kernel"
FIRST_ROW = re.compile(r"^\[1 of \d+\]")
BEGIN, END = "<!-- benchmarks/newcomer.py -->\n", "<!-- end -->\n"
U_NET = """\
import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm2d(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, padding=1)
        self.second = nn.Conv2d(outer, outer, 3, padding=1)
        self.norm = RMSNorm2d(outer)
        self.skip = nn.Conv2d(inner, outer, 1)

    def forward(self, x):
        y = F.silu(self.norm(self.first(x)))
        return F.silu(self.second(y) + self.skip(x)) * 0.7071


class UNet(nn.Module):
    def __init__(self, channels=3, width=32, classes=4):
        super().__init__()
        self.down = nn.ModuleList([Block(channels, width), Block(width, 2 * width)])
        self.middle = Block(2 * width, 2 * width)
        self.up = nn.ModuleList([Block(4 * width, width), Block(2 * width, width)])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat((x, kept.pop()), dim=1))
        return torch.sigmoid(self.head(x))


def dice_loss(prediction, target):
    overlap = (prediction * target).sum((2, 3))
    total = prediction.sum((2, 3)) + target.sum((2, 3))
    return 1 - ((2 * overlap + 1) / (total + 1)).mean()


if __name__ == "__main__":
    image, target = torch.randn(2, 3, 128, 128), torch.rand(2, 4, 128, 128)
    print(dice_loss(UNet()(image), target))
"""


@frozen
class Step:
    """``first_row_s``: when the first region's result was printed, None for commands that print none."""

    command: str
    seconds: float
    processor_seconds: float
    first_row_s: float | None = None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", default=str(ROOT), help="what is cloned")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--md", type=Path, metavar="PAGE", help="write the table into this page")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        folder = Path(name)
        environment = _environment(folder)
        steps = []
        for step in _walked(folder, args.source, environment):
            steps.append(step)
            print(
                f"{step.seconds:7.1f} s, {step.processor_seconds:7.1f} s of processors: {step.command}",
                flush=True,
            )
        is_accepted = ".holds(" in (folder / "net.py").read_text()
    figures = summary(steps, is_accepted)
    print(json.dumps(figures))
    if args.json:
        result = {"steps": list(map(asdict, steps)), "summary": figures}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    if args.md:
        page = args.md.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        lines = (*table(steps), "", sentence(figures))
        args.md.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after)
    return 0 if is_accepted else 1


def summary(steps: Sequence[Step], is_accepted: bool) -> dict[str, float | int | bool | None]:
    """``first_row_s`` is of the command that printed it, the others are of the whole walk."""
    return {
        "accepted": is_accepted,
        "seconds": round(sum(step.seconds for step in steps), 1),
        "processor_seconds": round(sum(step.processor_seconds for step in steps), 1),
        "first_row_s": next((step.first_row_s for step in steps if step.first_row_s is not None), None),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def table(steps: Sequence[Step]) -> Iterator[str]:
    yield "| step | seconds | of processors | together |"
    yield "|---|---|---|---|"
    together = 0.0
    for step in steps:
        together += step.seconds
        yield f"| `{step.command}` | {step.seconds:.1f} | {step.processor_seconds:.1f} | {together:.0f} |"


def sentence(figures: Mapping[str, float | int | bool | None]) -> str:
    """The summary for people."""
    first = figures["first_row_s"]
    row = "" if first is None else f" `synth` printed its first kernel after {first} s."
    return (
        f"{figures['cores']} cores, load average {figures['load']}: {figures['seconds']:.0f} s, "
        f"{figures['processor_seconds']:.0f} s of processors.{row}"
    )


def commands(readme: str) -> list[str]:
    """Those of the first block below the heading, without their comments."""
    block = readme.partition(HEADING)[2].split("```")[1]
    return [line.partition("#")[0].strip() for line in block.strip().splitlines()]


def _walked(folder: Path, source: str, environment: Mapping[str, str]) -> Iterator[Step]:
    yield _step(f"git clone --quiet {source} evokernel", folder, environment, shown="git clone")
    (folder / "net.py").write_text(U_NET)
    for command in commands((folder / "evokernel" / "README.md").read_text()):
        yield _step(command, folder, environment)


def _step(command: str, folder: Path, environment: Mapping[str, str], shown: str = "") -> Step:
    """Raises CalledProcessError where the command fails."""
    began, before, first = time.monotonic(), _processor_seconds(), None
    with subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        said = []
        for line in process.stdout or ():
            said.append(line)
            if first is None and FIRST_ROW.match(line):
                first = round(time.monotonic() - began, 1)
    if process.returncode:
        sys.stderr.write("".join(said))
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.monotonic() - began
    return Step(shown or command, round(seconds, 1), round(_processor_seconds() - before, 1), first)


def _processor_seconds() -> float:
    """Of commands that have ended, with their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment(folder: Path) -> dict[str, str]:
    """The variables of a shell in which a new environment is active that has torch and its requirements."""
    home = folder / "environment"
    venv.create(home, with_pip=True)
    site = next(home.glob("lib/python*/site-packages"))
    for package in _with_requirements("torch"):
        for name in {Path(str(file)).parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            here = Path(str(package.locate_file(name)))
            if here.exists() and not (site / name).exists():
                (site / name).symlink_to(here)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("EVOKERNEL", "PYTHON"))}
    paths = f"{home / 'bin'}{os.pathsep}{kept['PATH']}"
    return {**kept, "VIRTUAL_ENV": str(home), "PATH": paths, "EVOKERNEL_HOME": str(folder / "home")}


def _with_requirements(name: str) -> Iterator[Distribution]:
    """A package that is installed here, and those that it needs."""
    waiting, known = [name], set()
    while waiting:
        wanted = waiting.pop()
        if wanted in known:
            continue
        known.add(wanted)
        try:
            package = distribution(wanted)
        except PackageNotFoundError:  # of another platform
            continue
        yield package
        needed = (line for line in package.requires or () if "extra ==" not in line)
        waiting += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed]


if __name__ == "__main__":
    sys.exit(main())
