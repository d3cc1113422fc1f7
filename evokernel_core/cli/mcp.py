"""``evokernel mcp``: the MCP server, for coding agents."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import click

from evokernel_core.cli.options import settings_from, verifying_options
from evokernel_core.domain.errors import UsageError

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)


@click.command(name="mcp")
@click.option("--root", "roots", multiple=True, metavar="DIR", type=_FOLDER,
              help="Only files in this folder, in place of the client's roots; may be repeated.")  # fmt: skip
@click.option("--trust", "trusted", multiple=True, metavar="DIR", type=_FOLDER,
              help="Code of files in this folder may be run; may be repeated.")  # fmt: skip
@click.option("--allow-write", is_flag=True,
              help="Kernels may be put into files, and programs with their own main be run.")  # fmt: skip
@verifying_options
def command(roots: tuple[Path, ...], trusted: tuple[Path, ...], allow_write: bool, **options: Any) -> None:
    """Serve coding agents by the Model Context Protocol, over standard input and output.

    Without --trust files are parsed and nothing of them is run; without --allow-write none is changed.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "The MCP server needs the package mcp: run 'pip install mcp' in EvoKernel's environment."
        )
    from evokernel_mcp.access import Rules
    from evokernel_mcp.app import serve

    serve(settings_from(options), Rules(roots, trusted, allow_write))
