"""``evokernel verify``: verifies a kernel package again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import click
from attrs import evolve

from evokernel_core.cli.options import chip_option, named_interpreter
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateStatus, Verdict
from evokernel_core.keys import with_keys
from evokernel_core.targets import target_for, with_device
from evokernel_core.verifier.again import verify_again
from evokernel_core.verifier.factory import target_judged_by


@click.command()
@click.argument("kernel_dir", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--backend",
    default="",
    show_default="the first of the kernel's target",
    help="twin or cann; of kernels in Triton interpreter, compile or cuda; or the URL of a verifier.",
)
@chip_option
@click.option(
    "--interpreter",
    default="",
    callback=named_interpreter,
    help="The Python with torch; found by itself if absent, in the package's folder with --trust alone.",
)
@click.option("--changed", is_flag=True, help="Verify the files although they were changed.")
@click.option("--trust", is_flag=True, help="The package is your own: its reference needs no sandbox.")
@click.option("--replay", default="", metavar="DRAW", help="Repeat the cases of an earlier verdict's draw.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object.")
def command(kernel_dir: Path, backend: str, chip: str, interpreter: str, **options: Any) -> None:
    """Verify the kernel package in KERNEL_DIR again. Exit status 0: all gates passed, or with the backend
    compile those of the text and the compiler."""
    is_service = urlparse(backend).scheme in ("http", "https")
    wanted = _wanted_target("" if is_service else backend, chip)
    task, source = _package(kernel_dir, wanted, changed=options["changed"])
    settings = with_device(Settings(interpreter=interpreter, target=source.target, chip=chip))
    if is_service:
        settings = with_keys(evolve(settings, verifier_url=backend))
    given = {name: options[name] for name in ("trust", "replay")}
    verdict = verify_again(task, source, settings, kernel_dir, backend=backend, **given)
    say(json.dumps(to_data(verdict)) if options["as_json"] else as_text(verdict))
    if not (verdict.feasible or is_compiled_only(verdict)):
        sys.exit(1)


def _wanted_target(backend: str, chip: str) -> str:
    """The target whose kernel is to be judged, where a package has several; empty for the last one. Raises
    UsageError for an unknown chip or backend."""
    if chip:
        return target_for(chip)
    return target_judged_by(backend) if backend else ""


def _package(kernel_dir: Path, wanted: str, *, changed: bool) -> tuple[KernelTask, KernelSource]:
    from evokernel_core.package.integrity import foreign_words, records_of, target_of
    from evokernel_core.package.write import read_package

    if not (kernel_dir / "kernel.json").is_file():
        raise UsageError(f"{kernel_dir} has no kernel.json; name a folder in evokernel_kernels/.")
    task, source, manifest = read_package(kernel_dir, changed=changed)
    if wanted in map(target_of, records_of(manifest)[1:]):
        task, source, _ = read_package(kernel_dir, changed=changed, target=wanted)
    if said := foreign_words(kernel_dir.resolve(), manifest):
        say(f"evokernel: {said}", err=True)
    return task, source


def is_compiled_only(verdict: Verdict) -> bool:
    """Whether the backend runs nothing, and compiled the kernel."""
    last = verdict.gates[-1]
    return (last.gate, last.status) == (GateName.COMPILE, GateStatus.PASSED)


def as_text(verdict: Verdict) -> str:
    """The verdict gate by gate, and the latency with its source."""
    lines = []
    for gate in verdict.gates:
        code = f" ({gate.code})" if gate.status is GateStatus.FAILED else ""
        told = f": {gate.words()}" if gate.words() else ""
        lines.append(f"{gate.gate}: {gate.status} in {gate.seconds:.2f} s{code}{told}")
    if verdict.latency is not None:
        latency = verdict.latency
        lines.append(
            f"{latency.us:.2f} us {latency.source.word} on {latency.chip} with {latency.block_dim} blocks "
            f"(estimated: eager {latency.baseline_us:.2f}, roofline limit {latency.roofline_us:.2f}). "
            f"{latency.bottleneck}"
        )
    if is_compiled_only(verdict):
        return "\n".join([*lines, f"Compiled by {verdict.verifier}; nothing was run."])
    how = "repeated from" if verdict.replayed else "drawn as"
    confined = f"; confined: {verdict.confinement}" if verdict.confinement else ""
    cases = f"cases {how} {verdict.draw or 'fixed'}"
    if verdict.full_size:
        lines.append(f"Compared at full size: {verdict.full_size}.")
    if verdict.feasible and verdict.eager is None:
        lines.append("The file's own code was not run: a package has its graph alone.")
    return "\n".join([*lines, f"Verified by {verdict.verifier}; {cases}{confined}."])
