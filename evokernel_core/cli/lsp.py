"""``evokernel lsp``: the language server."""

from __future__ import annotations

import gc

import click

from evokernel_core.domain.errors import UsageError


@click.command(name="lsp")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen for one client on an address of this machine.")
def command(stdio: bool, tcp: str | None) -> None:
    """Run the language server."""
    gc.disable()  # all that is imported stays: looking for garbage in it costs start and every later request
    from evokernel_server import serve

    gc.freeze()
    gc.enable()
    if stdio and tcp:
        raise click.UsageError("Give either --stdio or --tcp, not both.")
    if tcp is None:
        serve.serve_stdio()
    else:
        serve.serve_tcp(*_address(tcp))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is no HOST:PORT, such as 127.0.0.1:2087.", param_hint="--tcp")
    from evokernel_core.network import is_loopback

    host = host.strip("[]")
    if not is_loopback(host):
        raise UsageError(
            f"Whoever reaches {host} could have code run here: listen on 127.0.0.1, and forward the port "
            "(ssh -L) where the editor is on another machine."
        )
    return host, int(port)
