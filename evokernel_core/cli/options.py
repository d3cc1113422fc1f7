"""Options that several commands share, and the Settings that they and the environment give."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import evolve
from click.core import ParameterSource

from evokernel_core.cli import model_options
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.settings import PolicyName, ProposerName, RetrievalName, Settings
from evokernel_core.keys import with_keys
from evokernel_core.targets import AUTO, TARGETS, require_target, with_device

F = TypeVar("F", bound=Callable[..., Any])

ENVIRONMENT = "EVOKERNEL"
"""Prefix of the variables: EVOKERNEL_CHIP, EVOKERNEL_VERIFIER_URL, EVOKERNEL_MODEL_URL, ..."""


class OutputFile(click.Path):
    """A file to write when the work is done, refused before it begins where it could not be written.
    ``-`` is standard output where the command says so."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        if str(path) != "-" and not os.access(path.absolute().parent, os.W_OK):
            self.fail(f"{path} cannot be written: its folder is missing or protected.", param, ctx)
        return path


def named_interpreter(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The callback of every ``--interpreter``: a path that was typed is one of the present folder, as of any
    command, and stays that file wherever it is looked for later. One from the environment names no folder: it
    is relative to that of a file whose code is run anyway."""
    path = Path(value).expanduser()
    typed = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    return str(path.absolute()) if typed and os.sep in value and path.is_file() else value


def added(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Adds several options, in their order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def target_option(function: F) -> F:
    """Adds ``--target``; its value goes into the Settings as it is, and is asked for by name."""
    option = click.option("--target", envvar=f"{ENVIRONMENT}_TARGET", default=AUTO, show_default=True,
                          metavar=f"[{'|'.join((AUTO, *TARGETS))}]", callback=_known_target,
                          help="Language of the kernels; auto: that of --chip, else ascendc.")  # fmt: skip
    return option(function)


def chip_option(function: F) -> F:
    """Adds ``--chip``: empty where none is named; ``targets.with_device`` puts the target's own in place."""
    option = click.option("--chip", envvar=f"{ENVIRONMENT}_CHIP", default="", metavar="NAME",
                          show_default="the target's own",
                          help="Device that kernels are written and timed for.")  # fmt: skip
    return option(function)


def _known_target(ctx: click.Context, param: click.Parameter, value: str) -> str:
    require_target(value)
    return value


_VERIFYING = (
    target_option,
    chip_option,
    click.option("--interpreter", envvar=f"{ENVIRONMENT}_INTERPRETER", default="", metavar="PATH",
                 callback=named_interpreter,
                 help="Python with torch; found from the file's folder upwards if not given."),
    click.option("--verifier", "verifier_url", envvar=f"{ENVIRONMENT}_VERIFIER_URL", default="",
                 metavar="URL",
                 help="A verifier elsewhere; its token: EVOKERNEL_VERIFIER_TOKEN, or `evokernel key`."),
    click.option("--verifier-ca", "verifier_ca_bundle", envvar=f"{ENVIRONMENT}_VERIFIER_CA", default="",
                 metavar="PATH", help="CA bundle of that verifier."),
)  # fmt: skip
verifying_options = added(*_VERIFYING)
"""Adds the options of a command that captures files and verifies kernels."""
_SHARED = (
    click.option("--budget", default=30, show_default=True, type=click.IntRange(1, 10_000), metavar="T",
                 help="Attempts for each region, drafts and refinements together."),
    click.option("--proposer", default="schedule", show_default=True,
                 type=click.Choice([name.value for name in ProposerName]), help="Who writes the kernels."),
    click.option("--policy", default="qvalue", show_default=True,
                 type=click.Choice([name.value for name in PolicyName]), help="How the search chooses."),
    click.option("--retrieval", default="q", show_default=True,
                 type=click.Choice([name.value for name in RetrievalName]), help="How memory is consulted."),
    *_VERIFYING,
    click.option("--candidates-at-once", default=0, show_default=True, type=click.IntRange(0), metavar="N",
                 help="Kernels of one region that are verified at a time; 0: as many as the verifier has "
                      "workers, one on this machine."),
    click.option("--half", is_flag=True,
                 help="Let work on float16 be computed in float16, where its results pass the gates too."),
    *model_options.OPTIONS,
    click.option("--seed", default=0, show_default=True, type=int, help="Seed of the search's choices."),
)  # fmt: skip


def synthesis_options(patience: int) -> Callable[[F], F]:
    """Adds the options of a command that synthesises; pass them to ``settings_from``."""
    waiting = click.option("--patience", default=patience, show_default=True, type=click.IntRange(0),
                           metavar="N", help="End after N attempts in a row that improve the best by less "
                           "than 1 %; 0: never.")  # fmt: skip

    return added(_SHARED[0], waiting, *_SHARED[1:])


def settings_from(options: Mapping[str, Any]) -> Settings:
    """The Settings of the shared options; secrets come from the environment or the keyring alone."""
    settings = from_data(model_options.given_for(Settings, options), Settings)
    return with_keys(with_device(evolve(settings, endpoint=model_options.endpoint_from(options))))
