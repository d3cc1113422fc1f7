"""Who asks the service: what a token allows, and how much of the service its user may take."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Scope(StrEnum):
    """What a token allows. ``submit`` includes taking one's own jobs back, ``admin`` everything."""

    SUBMIT = "submit"
    READ = "read"
    ADMIN = "admin"


class Priority(StrEnum):
    """Somebody waits for the answer, or a refinement goes on behind the editor."""

    INTERACTIVE = "interactive"
    BACKGROUND = "background"


@frozen
class Quota:
    """What one user may take, over all of the user's tokens; 0 is no limit.

    ``jobs_a_day`` and ``cpu_s_a_day`` are counted from midnight UTC, ``queued`` at any moment.
    """

    jobs_a_day: int = 0
    queued: int = 0
    cpu_s_a_day: int = 0


NO_LIMIT = Quota()

DEFAULT_QUOTA = Quota(jobs_a_day=20_000, queued=500, cpu_s_a_day=36_000)
"""Of a user who was added without one: a busy day of one editor, and ten hours of one core."""

OWNER = "owner"


@frozen
class User:
    """The bearer of a valid token. ``token`` is the token's public id, for the log."""

    name: str
    scopes: frozenset[Scope]
    priorities: frozenset[Priority] = frozenset(Priority)
    quota: Quota = NO_LIMIT
    token: str = ""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


def owner() -> User:
    """The user of the service's own token: whoever may read the files of its host."""
    return User(OWNER, frozenset(Scope))
