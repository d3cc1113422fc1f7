"""``evokernel mcp``: the MCP server, for coding agents."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from evokernel_core.cli.options import ENVIRONMENT, chip_option, named_interpreter, target_option
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.keys import with_keys
from evokernel_core.targets import with_device

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)


@click.command(name="mcp")
@click.option("--root", "roots", multiple=True, metavar="DIR", type=_FOLDER,
              help="Only files in this folder, in place of the client's roots; may be repeated.")  # fmt: skip
@click.option("--trust", "trusted", multiple=True, metavar="DIR", type=_FOLDER,
              help="Code of files in this folder may be run; may be repeated.")  # fmt: skip
@click.option("--allow-write", is_flag=True,
              help="Kernels may be put into files, and programs with their own main be run.")  # fmt: skip
@target_option
@chip_option
@click.option("--interpreter", envvar=f"{ENVIRONMENT}_INTERPRETER", default="", metavar="PATH",
              callback=named_interpreter,
              help="Python with torch; found from the file's folder upwards if not given.")  # fmt: skip
@click.option("--verifier", envvar=f"{ENVIRONMENT}_VERIFIER_URL", default="", metavar="URL",
              help="A verifier elsewhere; its token as for synth.")  # fmt: skip
@click.option("--verifier-ca", envvar=f"{ENVIRONMENT}_VERIFIER_CA", default="", metavar="PATH",
              help="CA bundle of that verifier.")  # fmt: skip
def command(  # noqa: PLR0913, PLR0917
    roots: tuple[Path, ...],
    trusted: tuple[Path, ...],
    allow_write: bool,
    target: str,
    chip: str,
    interpreter: str,
    verifier: str,
    verifier_ca: str,
) -> None:
    """Serve coding agents by the Model Context Protocol, over standard input and output.

    Without --trust files are parsed and nothing of them is run; without --allow-write none is changed.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "The MCP server needs the package mcp: run 'pip install mcp' in EvoKernel's environment."
        )
    from evokernel_mcp.access import Rules
    from evokernel_mcp.app import serve

    settings = Settings(
        interpreter=interpreter,
        target=target,
        chip=chip,
        verifier_url=verifier,
        verifier_ca_bundle=verifier_ca,
    )
    serve(with_keys(with_device(settings)), Rules(roots, trusted, allow_write))
