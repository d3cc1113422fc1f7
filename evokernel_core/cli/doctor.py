"""``evokernel doctor``: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from attrs import asdict

from evokernel_core.cli.options import named_interpreter, target_option
from evokernel_core.cli.terminal import say, shown
from evokernel_core.domain.check import Check
from evokernel_core.domain.errors import EvoKernelError, InterpreterUnavailable
from evokernel_core.domain.settings import Settings
from evokernel_core.extras import ALL, REMOTE, install_command, needed
from evokernel_core.keys import with_keys
from evokernel_core.paths import data_dir, memory_path
from evokernel_core.targets import with_device

REPORT = Path("evokernel-npu-report.json")


@click.command()
@click.option("--prepare", is_flag=True, help="Build the twin now, so that the first kernel need not wait.")
@click.option(
    "--interpreter",
    default="",
    envvar="EVOKERNEL_INTERPRETER",
    callback=named_interpreter,
    help="The Python with torch to check; if absent the active one, that of PATH or EvoKernel's own.",
)
@click.option(
    "--trust",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    is_flag=False,
    flag_value=".",
    metavar="[DIR]",
    help="Look for the Python in DIR, by default this folder, and above it first, and run it.",
)
@click.option("--verifier-url", default="", envvar="EVOKERNEL_VERIFIER_URL", help="A remote verifier to ask.")
@click.option(
    "--npu", is_flag=True, help="Walk through a first run on an Ascend host, and write a report to send."
)
@target_option
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=REPORT,
    show_default=True,
    help="Where --npu writes its report; a .txt with the same goes beside it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(  # noqa: PLR0913, PLR0917
    prepare: bool,
    interpreter: str,
    trust: Path | None,
    verifier_url: str,
    npu: bool,
    target: str,
    report: Path,
    as_json: bool,
) -> None:
    """Check the compiler, interpreter, twin, memory, verifier, sandbox, Triton and GPU of this machine.

    With --npu: find CANN, the driver and torch_npu, compile two small kernels with bisheng, run them,
    compare what they computed, and read their profiles.
    """
    if npu:
        first_run(npu_python(interpreter, trust), target, report, as_json)
        return
    asked = Settings(interpreter=interpreter, target=target, chip="", verifier_url=verifier_url)
    settings = with_keys(with_device(asked))
    checks = tuple(run_checks(settings, prepare, trust))
    ok = all(check.ok for check in checks)
    if as_json:
        say(json.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}))
    else:
        _print_table(checks)
    if not ok:
        sys.exit(1)


def first_run(python: str, target: str, path: Path, as_json: bool) -> None:
    """The steps of a first run on a device of the target, as they end, and the report. Exits with 1 where one
    failed."""
    from evokernel_core.cli import first_run_report
    from evokernel_core.domain.first_run import RunStep
    from evokernel_core.targets import default_device, load_toolchain, target_for

    done: list[RunStep] = []
    for step in load_toolchain(target_for(default_device(target), target)).first_run(python):
        done.append(step)
        if not as_json:
            say(first_run_report.lines_of(step))
    data = first_run_report.report(done)
    written = first_run_report.write(data, path)
    if as_json:
        say(json.dumps(data))
    else:
        say(f"The report is in {written[0]} and {written[1]}; it holds no secrets and no home path.")
    if not data["ok"]:
        sys.exit(1)


def npu_python(interpreter: str, trust: Path | None = None) -> str:
    """The Python that is asked for torch_npu: the one that is named, that of the trusted folder, the active
    one, that of PATH or this one."""
    from evokernel_core.capture.interpreter import find_interpreter

    try:
        return str(find_interpreter(interpreter, *filter(None, [trust])).path)
    except EvoKernelError:
        return interpreter or sys.executable


def run_checks(settings: Settings, prepare: bool, trust: Path | None = None) -> Iterator[Check]:
    """Every check in order; a failure of one does not hide the next."""
    yield _attempt("compiler", check_compiler)
    yield _attempt("interpreter", lambda: check_interpreter(settings, trust))
    yield _attempt("twin", lambda: check_twin(prepare))
    yield _attempt("memory", check_memory)
    yield _attempt("verifier", lambda: check_verifier(settings))
    yield _attempt("sandbox", check_sandbox)
    yield from check_targets(settings, trust)
    yield check_extras()


def _attempt(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except EvoKernelError as error:
        parts = re.fullmatch(r"(.*)[;:] (.*)", str(error), re.DOTALL)
        return Check(name, False, *(parts.groups() if parts else (str(error), str(error))))


def check_compiler() -> Check:
    """A C++17 compiler that is new enough."""
    from evokernel_core.twin.compiler import detect_compiler

    return Check("compiler", True, detect_compiler().version)


def check_interpreter(settings: Settings, trust: Path | None = None) -> Check:
    """A Python with a torch that models can be captured with, and how it was found. One that lies in the
    present folder, which nobody said is trusted, is named and not run."""
    from evokernel_core.capture.client import AgentClient
    from evokernel_core.capture.interpreter import find_interpreter

    here = "" if settings.interpreter or trust else _not_run()
    try:
        interpreter = find_interpreter(settings.interpreter, *filter(None, [trust]))
        with AgentClient(interpreter.path) as agent:
            torch = agent.ping()["torch"]
    except InterpreterUnavailable as error:
        if not here:
            raise
        return Check("interpreter", False, f"{here}. {error}", "give --trust if the code here is your own")
    said = f"{interpreter.path} ({interpreter.how}), torch {torch}"
    return Check("interpreter", True, f"{said}; {here}" if here else said)


def _not_run() -> str:
    """What files of the present folder would be captured with, where that lies in a folder of theirs."""
    from evokernel_core.capture.environments import folder_interpreters

    known = next(folder_interpreters(Path.cwd()), None)
    if known is None or known.path == sys.executable:
        return ""
    return f"files here would run {known.path} ({known.how}), which was not run: --trust checks it"


def check_twin(prepare: bool) -> Check:
    """The twin and the audit's parser are built, or are now."""
    from evokernel_core.twin.build import is_prepared
    from evokernel_core.twin.build import prepare as build_twin

    if not prepare and not is_prepared():
        return Check("twin", True, "not built yet; the first kernel builds it (about half a minute)")
    with _building() as told:
        twin = build_twin(told)
    if prepare:
        from evokernel_core.targets import TARGETS, load_toolchain

        for target in TARGETS:
            load_toolchain(target).prepare()
    return Check("twin", True, str(twin.folder))


@contextmanager
def _building() -> Iterator[Callable[[int, int], None]]:
    """How far the twin is, on a terminal: half a minute, and many times that on a busy machine."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda done, of: status.update(f"Building the twin, once: {done} of {of} files")


def check_memory() -> Check:
    """The memory database can be written."""
    path = memory_path()
    try:
        with sqlite3.connect(path, timeout=5) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
    except sqlite3.Error as error:
        advice = f"make {data_dir()} writable or set EVOKERNEL_HOME to a folder that is"
        return Check("memory", False, f"{path} cannot be written ({error})", advice)
    finally:
        if path.exists() and path.stat().st_size == 0:
            path.unlink()
    return Check("memory", True, str(path))


def check_verifier(settings: Settings) -> Check:
    """Who judges kernels, and whether it answers."""
    if not settings.verifier_url:
        from evokernel_core import __version__
        from evokernel_core.verifier.factory import default_backend

        backend = default_backend(settings)
        return Check("verifier", True, f"in process, {backend} {__version__} (latencies are estimated)")
    with needed(REMOTE):
        from evokernel_core.verifier.client import RemoteVerifier

    remote = RemoteVerifier(settings.verifier_url, settings.verifier_token)
    status = remote.status()
    return Check("verifier", True, f"{status.name} at {settings.verifier_url}, {status.queued} jobs waiting")


def check_sandbox() -> Check:
    """How far candidates are confined here; every level is allowed, none is hidden."""
    from evokernel_core.twin.build import is_prepared, prepare
    from evokernel_core.verifier.sandbox import Level, probe

    if not is_prepared():
        return Check("sandbox", True, "unknown until the twin is built; run `evokernel doctor --prepare`")
    level = probe(prepare().launcher).level
    note = "" if level is Level.FULL else "; a newer Linux kernel confines more, see docs/security.md"
    return Check("sandbox", True, f"{level}{note}")


def check_targets(settings: Settings, trust: Path | None = None) -> Iterator[Check]:
    """What each target needs beside the twin; of one that nobody asked for nothing is a failure."""
    from evokernel_core.capture.interpreter import find_interpreter
    from evokernel_core.targets import TARGETS, load_toolchain

    try:
        python = str(find_interpreter(settings.interpreter, *filter(None, [trust])).path)
    except InterpreterUnavailable:
        python = ""
    for target in TARGETS:
        yield from load_toolchain(target).checks(python, asked=settings.target == target)


def check_extras() -> Check:
    """What the light install leaves out is no failure, but a person may look for it."""
    missing = [extra.name for extra in ALL if not extra.is_installed]
    if not missing:
        return Check("extras", True, "all installed")
    return Check(
        "extras", True, f"not installed: {', '.join(missing)} ({install_command(','.join(missing))})"
    )


def _print_table(checks: tuple[Check, ...]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for check in checks:
        mark = "[green]ok[/green]" if check.ok else "[red]failed[/red]"
        found = check.found if check.ok else f"{check.found}\n→ {check.advice}"
        table.add_row(mark, check.name, escape(shown(found)))
    Console(soft_wrap=True).print(table)
