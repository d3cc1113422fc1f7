"""Tokens of the service's users: made once, shown once, kept as hashes in one SQLite file.

A token is ``evk_ID_SECRET`` with 256 random bits in SECRET, so a plain SHA-256 keeps it: there is
nothing that could be guessed faster than the token itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from attrs import frozen
from sqlite_utils.migrations import Migrations

from evokernel_core.domain.errors import UsageError
from evokernel_core.verifier.serving.database import private_database
from evokernel_core.verifier.serving.users import DEFAULT_QUOTA, OWNER, Priority, Quota, Scope, User

SHORTEST = 22
"""Characters of the shortest token that the service takes: 128 bits in base64."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"evk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOTHING = hashlib.sha256(b"").hexdigest()

migrations = Migrations("evokernel.verifier.tokens")


@migrations()  # type: ignore[untyped-decorator]
def m001_tokens(db: Any) -> None:
    db.create_table(
        "tokens",
        {
            "id": str,
            "user": str,
            "digest": str,
            "scopes": str,
            "priorities": str,
            "jobs_a_day": int,
            "queued": int,
            "cpu_s_a_day": int,
            "created": float,
            "expires": float,
            "revoked": float,
        },
        pk="id",
        not_null={"user", "digest", "scopes", "priorities", "created", "expires"},
    )
    db["tokens"].create_index(["user"])


@frozen
class TokenRow:
    """A token as the list shows it; times are seconds since 1970, ``revoked`` is 0 while it is not."""

    id: str
    user: User
    created: float
    expires: float
    revoked: float

    def state(self, now: float) -> str:
        if self.revoked:
            return "revoked"
        return "expired" if now >= self.expires else "valid"


class TokenStore:
    """The tokens of one data folder; several processes may have it open. Raises StoreError."""

    def __init__(self, folder: Path) -> None:
        self._mutex = threading.Lock()
        with private_database(folder, "tokens", migrations) as self._db:
            self._conn: sqlite3.Connection = self._db.conn

    def close(self) -> None:
        with self._mutex:
            self._db.close()

    def add(
        self,
        name: str,
        scopes: frozenset[Scope],
        *,
        days: float,
        priorities: frozenset[Priority] = frozenset(Priority),
        quota: Quota = DEFAULT_QUOTA,
    ) -> str:
        """A new token, which is nowhere else. Raises UsageError for a name that is none."""
        if not _NAME.fullmatch(name) or name == OWNER:
            raise UsageError(
                f"{name!r} cannot name a user: take letters, digits and . _ @ -, up to 64, not {OWNER!r}."
            )
        identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = time.time()
        with self._mutex:
            self._db["tokens"].insert(
                {
                    "id": identity,
                    "user": name,
                    "digest": digest_of(secret),
                    "scopes": " ".join(sorted(scopes)),
                    "priorities": " ".join(sorted(priorities)),
                    "jobs_a_day": quota.jobs_a_day,
                    "queued": quota.queued,
                    "cpu_s_a_day": quota.cpu_s_a_day,
                    "created": now,
                    "expires": now + days * 86_400,
                    "revoked": 0.0,
                }
            )
        return f"evk_{identity}_{secret}"

    def rows(self) -> list[TokenRow]:
        """All tokens, the oldest first."""
        with self._mutex:
            result = self._conn.execute("SELECT * FROM tokens ORDER BY created, id").fetchall()
        return [_row(row) for row in result]

    def revoke(self, which: str) -> int:
        """Revokes the token with this id, or all of the user with this name; how many that were."""
        with self._mutex:
            return self._conn.execute(
                "UPDATE tokens SET revoked = ? WHERE revoked = 0 AND (id = ? OR user = ?)",
                [time.time(), which, which],
            ).rowcount

    def user(self, token: str) -> User | None:
        """The bearer of a valid token; None for one that is unknown, revoked or expired.

        The secret is compared in constant time, and an unknown id costs the same comparison.
        """
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        identity, secret = match.groups()
        with self._mutex:
            row = self._conn.execute("SELECT * FROM tokens WHERE id = ?", [identity]).fetchone()
        same = hmac.compare_digest(digest_of(secret), row["digest"] if row else _NOTHING)
        if row is None or not same:
            return None
        result = _row(row)
        return result.user if result.state(time.time()) == "valid" else None

    def is_valid(self, identity: str) -> bool:
        """Whether the token with this id is neither revoked nor expired."""
        with self._mutex:
            row = self._conn.execute("SELECT * FROM tokens WHERE id = ?", [identity]).fetchone()
        return row is not None and _row(row).state(time.time()) == "valid"


def digest_of(secret: str) -> str:
    """The hexadecimal SHA-256 of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _row(row: sqlite3.Row) -> TokenRow:
    user = User(
        name=row["user"],
        scopes=frozenset(map(Scope, row["scopes"].split())),
        priorities=frozenset(map(Priority, row["priorities"].split())),
        quota=Quota(row["jobs_a_day"], row["queued"], row["cpu_s_a_day"]),
        token=row["id"],
    )
    return TokenRow(row["id"], user, row["created"], row["expires"], row["revoked"])
