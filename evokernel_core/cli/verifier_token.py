"""``evokernel verifier token``: who may use this machine's service, how much of it and for how long."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click

from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import StoreError, UsageError
from evokernel_core.paths import data_dir
from evokernel_core.verifier.serving.private import private_folder
from evokernel_core.verifier.serving.tokens import SHORTEST, TokenRow, TokenStore
from evokernel_core.verifier.serving.users import DEFAULT_QUOTA, Priority, Quota, Scope

TOKEN_VARIABLE = "EVOKERNEL_VERIFIER_TOKEN"
_DATA = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the service."
)
_COUNT = click.IntRange(0)


@click.group("token", invoke_without_command=True)
@_DATA
@click.pass_context
def token(context: click.Context, data: Path | None) -> None:
    """Print the token of this machine's owner, or manage those of the service's users.

    The owner's is made at the first use, in a file that only its owner can read.
    """
    context.obj = data
    if context.invoked_subcommand is None:
        say(read_token(data / "token" if data else default_token_path(), create=True))


@token.command()
@click.argument("user")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    default=[Scope.SUBMIT.value, Scope.READ.value],
    show_default=True,
    help="May be given several times.",
)
@click.option(
    "--priority",
    "priorities",
    multiple=True,
    type=click.Choice([priority.value for priority in Priority]),
    default=[priority.value for priority in Priority],
    show_default=True,
    help="Which jobs it is for; may be given twice.",
)
@click.option("--days", default=90, show_default=True, type=click.IntRange(1, 3650), help="Until it expires.")
@click.option("--jobs-a-day", default=DEFAULT_QUOTA.jobs_a_day, show_default=True, type=_COUNT)
@click.option(
    "--queued", default=DEFAULT_QUOTA.queued, show_default=True, type=_COUNT, help="Jobs that wait."
)
@click.option("--cpu-seconds-a-day", default=DEFAULT_QUOTA.cpu_s_a_day, show_default=True, type=_COUNT)
@_DATA
@click.pass_obj
def add(  # noqa: PLR0913, PLR0917
    folder: Path | None,
    user: str,
    scopes: tuple[str, ...],
    priorities: tuple[str, ...],
    days: int,
    jobs_a_day: int,
    queued: int,
    cpu_seconds_a_day: int,
    data: Path | None,
) -> None:
    """Print a new token of USER. It is shown this once; the service keeps its hash.

    Limits are the user's, over all tokens of that name; 0 is no limit.
    """
    quota = Quota(jobs_a_day, queued, cpu_seconds_a_day)
    allowed = frozenset(map(Priority, priorities))
    with _store(data or folder) as store:
        made = store.add(user, frozenset(map(Scope, scopes)), days=days, priorities=allowed, quota=quota)
    say(made)
    say(f"For {user}, {days} days from now; it is not shown again.", err=True)


@token.command("list")
@click.option("--json", "as_json", is_flag=True)
@_DATA
@click.pass_obj
def list_tokens(folder: Path | None, as_json: bool, data: Path | None) -> None:
    """Who has which tokens, without the tokens."""
    with _store(data or folder) as store:
        rows = store.rows()
    if as_json:
        say(json.dumps({"tokens": [_facts(row) for row in rows]}))
        return
    for row in rows:
        say(_line(row))
    if not rows:
        say("There are no tokens but the owner's; `evokernel verifier token add USER` makes one.")


@token.command()
@click.argument("which", metavar="ID|USER")
@_DATA
@click.pass_obj
def revoke(folder: Path | None, which: str, data: Path | None) -> None:
    """Revoke the token with this ID, or all tokens of USER; from the next request on."""
    with _store(data or folder) as store:
        count = store.revoke(which)
    if not count:
        raise UsageError(
            f"No valid token has the id or user {which!r}; `evokernel verifier token list` shows all."
        )
    say(f"Revoked {count} token(s).", err=True)


def _store(folder: Path | None) -> closing[TokenStore]:
    return closing(TokenStore(folder or default_token_path().parent))


def _facts(row: TokenRow) -> dict[str, object]:
    user = row.user
    return {
        "id": row.id,
        "user": user.name,
        "state": row.state(time.time()),
        "scopes": sorted(user.scopes),
        "priorities": sorted(user.priorities),
        "created": _date(row.created),
        "expires": _date(row.expires),
        "jobs_a_day": user.quota.jobs_a_day,
        "queued": user.quota.queued,
        "cpu_seconds_a_day": user.quota.cpu_s_a_day,
    }


def _line(row: TokenRow) -> str:
    user, until = row.user, _date(row.expires)[:10]
    allowed = ", ".join([*sorted(user.scopes), *sorted(user.priorities)])
    return f"{row.id}  {user.name:20} {row.state(time.time()):8} until {until}  {allowed}"


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def default_token_path() -> Path:
    return data_dir() / "verifier" / "token"


def environment_token() -> str:
    """The token that the environment gives, or nothing."""
    return os.environ.get(TOKEN_VARIABLE, "").strip()


def read_token(path: Path, *, create: bool = False) -> str:
    """The token in a file, made there for its owner alone if allowed. Raises UsageError, StoreError."""
    try:
        if create and not path.exists():
            private_folder(path.parent)
            _write_private(path, secrets.token_urlsafe(32))
        text = path.read_text().strip()
        if create:
            path.chmod(0o600)
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


def check_strength(token: str, origin: str) -> str:
    """The token that a service is to take. Raises UsageError for one that could be guessed."""
    if len(token) < SHORTEST:
        raise UsageError(
            f"The token in {origin} has fewer than {SHORTEST} characters and could be guessed; take one that"
            " `evokernel verifier token` makes."
        )
    return token


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
