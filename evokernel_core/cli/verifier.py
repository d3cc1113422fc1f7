"""``evokernel verifier``: serve verification to other machines, and look at a service."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import click

from evokernel_core.domain.errors import StoreError, UsageError
from evokernel_core.paths import data_dir

TOKEN_VARIABLE = "EVOKERNEL_VERIFIER_TOKEN"


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
@click.option("--backend", type=click.Choice(["twin", "cann"]), default="twin", show_default=True)
@click.option("--chip", default="ascend910b1", show_default=True, help="Chip that the twin models.")
@click.option("--interpreter", default="", help="Python with torch for the references; found if not given.")
@click.option("--tls-cert", default="", help="PEM certificate; with --tls-key the service speaks https.")
@click.option("--tls-key", default="", help="PEM key of the certificate.")
@click.option("--plain-http", is_flag=True, help="Listen beyond this machine without https.")
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
) -> None:
    """Judge kernels that others send, until stopped."""
    from evokernel_core.network import is_loopback
    from evokernel_core.verifier.factory import name_of
    from evokernel_core.verifier.service import ServiceConfig
    from evokernel_core.verifier.service import serve as run

    if bool(tls_cert) != bool(tls_key):
        raise UsageError("https needs both --tls-cert and --tls-key.")
    if not (is_loopback(host) or tls_cert or plain_http):
        raise UsageError(
            f"Listening on {host} without https lets others read the token; give --tls-cert and --tls-key,"
            " or --plain-http where something else protects the way."
        )
    folder = data or data_dir() / "verifier"
    path = token_file or folder / "token"
    config = ServiceConfig(
        folder=folder,
        token=_environment_token() or read_token(path, create=token_file is None),
        name=name_of(backend),
        backend=backend,
        chip=chip,
        workers=workers,
        arguments={"backend": backend, "chip": chip, "interpreter": interpreter},
    )
    scheme = "https" if tls_cert else "http"
    click.echo(
        f"Verifying on {scheme}://{host}:{port} with {workers} worker(s); the queue is in {folder}.", err=True
    )
    run(config, host=host, port=port, certificate=tls_cert, key=tls_key)


@command.command()
@click.option("--url", default="http://127.0.0.1:8732", show_default=True)
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the token.")
@click.option("--ca-bundle", default="", help="PEM file of certificates to trust besides the system's.")
@click.option("--plain-http", is_flag=True, help="Send the token over http to another machine.")
@click.option("--json", "as_json", is_flag=True)
def status(url: str, token_file: Path | None, ca_bundle: str, plain_http: bool, as_json: bool) -> None:
    """Who judges at a URL, and how much waits there."""
    from evokernel_core.verifier.client import RemoteVerifier

    token = _environment_token() or read_token(token_file or default_token_path())
    remote = RemoteVerifier(url, token, ca_bundle, patience=3.0, plain_http=plain_http)
    view = remote.status().model_dump()
    if as_json:
        click.echo(json.dumps(view))
        return
    click.echo(
        "{name} for {chip}: {running} running, {queued} queued, {done} done, {workers} worker(s).".format(
            **view
        )
    )


@command.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the service.")
def token(data: Path | None) -> None:
    """Print the token of this machine's service; made at the first use."""
    click.echo(read_token(data / "token" if data else default_token_path(), create=True))


def default_token_path() -> Path:
    return data_dir() / "verifier" / "token"


def read_token(path: Path, *, create: bool = False) -> str:
    """The token in a file, made there for its owner alone if allowed. Raises UsageError, StoreError."""
    try:
        if create and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_private(path, secrets.token_urlsafe(32))
        text = path.read_text().strip()
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no token in {path}; give --token-file or set {TOKEN_VARIABLE}."
        ) from error
    except OSError as error:
        raise StoreError(
            f"The token in {path} cannot be read or made ({error}); check the folder."
        ) from error
    if not text:
        raise UsageError(f"The token file {path} is empty; delete it and a new one is made.")
    return text


def _write_private(path: Path, text: str) -> None:
    """Writes at once or not at all, readable by the owner only; a file that is there already wins."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink()


def _environment_token() -> str:
    return os.environ.get(TOKEN_VARIABLE, "").strip()
