"""The ``evokernel`` command: finds a subcommand's module only when it is used."""

from __future__ import annotations

import importlib
import logging
import os
import sys

import click

from evokernel_core import __version__
from evokernel_core.cli.terminal import say
from evokernel_core.domain.defects import contained
from evokernel_core.domain.errors import EvoKernelError, InternalError
from evokernel_core.paths import log_path

COMMANDS = {
    "bench": "Synthesise kernels for a folder of KernelBench-format problems.",
    "doctor": "Check the compiler, interpreter, memory and verifier of this machine.",
    "key": "Keep the model's key and the verifier's token in the system's keyring.",
    "lsp": "Run the language server.",
    "mcp": "Run the server for coding agents (Model Context Protocol).",
    "memory": "Look into, export, import or forget what was learned.",
    "observe": "Run a program once and note what its models are called with.",
    "report": "Summarise what the memory holds as one page.",
    "status": "Say which accepted kernels of a file can run on this machine.",
    "synth": "Write and verify kernels for a PyTorch file.",
    "twin": "Run AscendC on the CPU: checked and timed by a model.",
    "verifier": "Serve verification to other machines.",
    "verify": "Verify a kernel package again.",
}


class _LazyGroup(click.Group):
    """Each command lives in ``evokernel_core/cli/<name>.py`` as ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"evokernel_core.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="evokernel-lsp")
@click.pass_context
def cli(context: click.Context) -> None:
    """Writes, proves and keeps improving kernels for PyTorch models: AscendC for Ascend NPUs, Triton for
    GPUs."""
    if context.invoked_subcommand not in ("lsp", "mcp"):  # a server's log is its standard error stream
        log_to_file()


def main() -> None:
    """Entry point: errors become one sentence on stderr and an exit status, never a traceback."""
    try:
        with contained("running this command"):
            cli()
    except EvoKernelError as error:
        say(f"evokernel: {error}", err=True)
        if isinstance(error, InternalError):
            say(f"evokernel: the log is {log_path()}", err=True)
        sys.exit(error.exit_status)


_MOST_BYTES = 1_000_000
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_file() -> None:
    """Sends what EvoKernel logs to ``paths.log_path``, from EVOKERNEL_LOG's level on."""
    logger = logging.getLogger("evokernel_core")
    if logger.handlers:
        return
    from logging.handlers import RotatingFileHandler  # no part of a server's start, whose log is its stderr

    handler = RotatingFileHandler(log_path(), maxBytes=_MOST_BYTES, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(os.environ.get("EVOKERNEL_LOG", "WARNING").upper())
    logger.propagate = False
