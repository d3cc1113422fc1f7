"""``evokernel observe``: run a program once and note what its models are built and called with."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click
from attrs import asdict
from rich.table import Table

from evokernel_core.capture.observations import ObservationStore, Observed, Run
from evokernel_core.capture.observe import Finished, observe, workspace_of
from evokernel_core.capture.observed_text import call_words
from evokernel_core.cli.tables import add_row, column, print_table
from evokernel_core.cli.terminal import say, shown
from evokernel_core.domain.errors import UsageError

_OF_SIGNALS = 128
"""What a shell adds to the number of the signal that ended a command."""


@click.command(
    "observe",
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": False},
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--workspace", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder of the files to note; by default the current folder's project.")  # fmt: skip
@click.option("--include", metavar="DIR", multiple=True,
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Another such folder, as one of an installed package; may be repeated.")  # fmt: skip
@click.option("--list", "list_", is_flag=True, help="List what is known, of all files or below PATH.")
@click.option("--show", is_flag=True, help="Show every call that is known, of all files or below PATH.")
@click.option("--forget", is_flag=True, help="Forget what is known, of all files or below PATH.")
@click.option("--json", "as_json", is_flag=True, help="Print --list and --show as JSON.")
def command(
    command: tuple[str, ...],
    workspace: Path | None,
    include: tuple[Path, ...],
    list_: bool,
    show: bool,
    forget: bool,
    as_json: bool,
) -> None:
    """Run COMMAND once, unchanged, and note how it builds and calls the models of the workspace.

    COMMAND is any program that runs Python: a script, python -m pytest, torchrun, a notebook runner. What is
    noted (arguments, shapes, dtypes) is kept in your own cache folder, and gives captures their inputs.
    """
    store = ObservationStore()
    if sum((list_, show, forget)) > 1:
        raise UsageError("--list, --show and --forget exclude each other: choose one.")
    if list_ or show or forget:
        _look(store, _path(command), forget, show, as_json)
        return
    if not command:
        raise UsageError("There is no command to observe: write it behind '--', as in -- python train.py.")
    roots = [(workspace or workspace_of(Path.cwd())).absolute(), *(folder.absolute() for folder in include)]
    finished = observe(command, roots, store)
    _report(finished, shlex.join(command), roots)
    sys.exit(finished.status)


def _path(words: Sequence[str]) -> Path | None:
    if len(words) > 1:
        raise UsageError("One path at a time: name a file or folder, or none for all.")
    return Path(words[0]).absolute() if words else None


def _look(store: ObservationStore, path: Path | None, forget: bool, show: bool, as_json: bool) -> None:
    where = f" below {path}" if path else ""
    if forget:
        say(f"Forgot what was known of {store.forget(path)} files{where}.")
        return
    result = list(store.all(path))
    if as_json:
        say(json.dumps([asdict(element) for element in result]))
    elif not result:
        say(f"Nothing is known{where}: run evokernel observe -- COMMAND.")
    for element in () if as_json else result:
        _print(element, every=show)


def _print(observed: Observed, *, every: bool) -> None:
    """One row for each definition, or for every distinct call of it."""
    table = Table("definition", "built with", "called with", column("calls"), title=shown(observed.file))
    seen: set[str] = set()
    for observation in observed.observations:
        if every or observation.qualname not in seen:
            built = call_words(observation.built) if observation.built is not None else ""
            add_row(table, observation.qualname, built, call_words(observation.call), str(observation.count))
        seen.add(observation.qualname)
    print_table(table)


def _report(finished: Finished, command: str, roots: Iterable[Path]) -> None:
    """The table of a run, or why there is none, on stderr: standard output is the command's."""
    run = finished.run
    for failure in run.failures:
        say(f"evokernel: a process could not be observed ({failure}); it ran unobserved.", err=True)
    failed = f"{command} {_ended(finished.status)}" if finished.status else ""
    if failed and not run.observed:
        words = f"{failed} before it called a class or function with tensors {_below(roots)}"
        say(f"evokernel: {words}: get it to run without observe, then observe it.", err=True)
        return
    if failed:
        say(f"evokernel: {failed}; what it called until then is kept.", err=True)
    if reason := _why_nothing(run, roots):
        say(f"evokernel: {reason}", err=True)
        return
    for observation in run.observed:
        names = list(dict.fromkeys(known.qualname for known in observation.observations))
        say(f"evokernel: observed {', '.join(names)} of {observation.file}", err=True)
    say("evokernel: evokernel observe --show prints what is known, --forget deletes it.", err=True)


def _ended(status: int) -> str:
    """How a command ended that did not succeed, by its status as a shell gives it."""
    if status > _OF_SIGNALS:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(status - _OF_SIGNALS).name}"
    return f"failed (exit status {status})"


def _below(roots: Iterable[Path]) -> str:
    return f"below {', '.join(map(str, roots))}"


def _why_nothing(run: Run, roots: Iterable[Path]) -> str:
    if run.observed:
        return ""
    if not run.pythons:
        return (
            "the command ran no Python that could be observed: name the interpreter itself, without "
            "-I, -E and -S, and on this machine."
        )
    if not run.with_torch:
        return (
            f"{', '.join(sorted(run.pythons))} ran, but did not import torch: observe what calls the model."
        )
    where = _below(roots)
    return f"no class or function with tensors {where} was called: name its folder by --workspace."
