"""``evokernel verifier``: serve verification to other machines, and look at a service."""

from __future__ import annotations

import json
from pathlib import Path

import click

from evokernel_core.cli.options import named_interpreter
from evokernel_core.cli.terminal import say
from evokernel_core.cli.verifier_token import (
    TOKEN_VARIABLE,
    check_strength,
    default_token_path,
    environment_token,
    read_token,
    token,
)
from evokernel_core.domain.errors import UsageError
from evokernel_core.extras import REMOTE, SERVICE, needed
from evokernel_core.paths import data_dir


@click.group("verifier", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Serve verification to other machines."""


@command.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8732, show_default=True, type=click.IntRange(1, 65535))
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the queue.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 256), help="Kernels at a time."
)
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the token.")
@click.option("--backend", default="twin", show_default=True, help="twin, cann, interpreter or cuda.")
@click.option("--chip", default="", metavar="NAME", show_default="the backend's own",
              help="Device that kernels are written and timed for.")  # fmt: skip
@click.option(
    "--interpreter",
    default="",
    callback=named_interpreter,
    help="Python with torch for the references; else the active one, that of PATH or EvoKernel's own.",
)
@click.option("--tls-cert", default="", help="PEM certificate; with --tls-key the service speaks https.")
@click.option("--tls-key", default="", help="PEM key of the certificate.")
@click.option("--plain-http", is_flag=True, help="Listen beyond this machine without https.")
@click.option(
    "--ray",
    default="",
    metavar="ADDRESS",
    help="Verify on the hosts of the Ray cluster at HOST:PORT; `local` starts one here.",
)
@click.option(
    "--device",
    type=click.Choice(["twin", "NPU", "GPU"]),
    help="Ray resource that a host declares for each kernel that it verifies at a time; by the backend.",
)
@click.option(
    "--connections", default=256, show_default=True, type=click.IntRange(8, 1024), help="From one address."
)
@click.option(
    "--confinement",
    type=click.Choice(["full", "files", "processes", "limits"]),
    default="full",
    show_default=True,
    help="Serve although kernels are confined no further than this.",
)
def serve(  # noqa: PLR0913, PLR0917
    host: str,
    port: int,
    data: Path | None,
    workers: int,
    token_file: Path | None,
    backend: str,
    chip: str,
    interpreter: str,
    tls_cert: str,
    tls_key: str,
    plain_http: bool,
    ray: str,
    device: str | None,
    connections: int,
    confinement: str,
) -> None:
    """Verify kernels that others send, until stopped."""
    from evokernel_core.network import is_loopback
    from evokernel_core.verifier.factory import device_of, name_of
    from evokernel_core.verifier.sandbox import Level, confinement_here, insist
    from evokernel_core.verifier.serving.fleet.pool import DEVICES, check_ray

    with needed(SERVICE):
        from evokernel_core.verifier.service import ServiceConfig
        from evokernel_core.verifier.service import serve as run
        from evokernel_core.verifier.serving.door import Limits

    if bool(tls_cert) != bool(tls_key):
        raise UsageError("https needs both --tls-cert and --tls-key.")
    if not (is_loopback(host) or tls_cert or plain_http):
        raise UsageError(
            f"Listening on {host} without https lets others read the token; give --tls-cert and --tls-key,"
            " or --plain-http where something else protects the way."
        )
    chip = device_of(backend, chip)
    folder = data or data_dir() / "verifier"
    path = token_file or folder / "token"
    given = environment_token()
    if ray:
        check_ray()
    config = ServiceConfig(
        folder=folder,
        token=check_strength(
            given or read_token(path, create=token_file is None), TOKEN_VARIABLE if given else str(path)
        ),
        name=name_of(backend),
        backend=backend,
        chip=chip,
        workers=workers,
        arguments={"backend": backend, "chip": chip, "interpreter": interpreter},
        ray=ray,
        device=device or DEVICES[backend],
        limits=Limits(connections_an_address=connections),
    )
    insist(Level.LIMITS if DEVICES[backend] != "twin" else confinement_here(), confinement)
    scheme = "https" if tls_cert else "http"
    who = f"the hosts of Ray at {ray}" if ray else f"{workers} worker(s)"
    say(f"Verifying on {scheme}://{host}:{port} with {who}; the queue is in {folder}.", err=True)
    run(config, host=host, port=port, certificate=tls_cert, key=tls_key)


@command.command()
@click.option("--url", default="http://127.0.0.1:8732", show_default=True)
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the token.")
@click.option("--ca-bundle", default="", help="PEM file of certificates to trust besides the system's.")
@click.option("--plain-http", is_flag=True, help="Send the token over http to another machine.")
@click.option("--json", "as_json", is_flag=True)
def status(url: str, token_file: Path | None, ca_bundle: str, plain_http: bool, as_json: bool) -> None:
    """The backend of the verifier at a URL, and the length of its queue."""
    with needed(REMOTE):
        from evokernel_core.verifier.client import RemoteVerifier

    token = environment_token() or read_token(token_file or default_token_path())
    remote = RemoteVerifier(url, token, ca_bundle, patience=3.0, plain_http=plain_http)
    view = remote.status().model_dump()
    if as_json:
        say(json.dumps(view))
        return
    say(
        "{name} for {chip}: {running} running, {queued} queued, {done} done, {workers} worker(s).".format(
            **view
        )
    )


command.add_command(token)
