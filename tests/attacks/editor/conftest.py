"""The language server's own fixtures: a workspace, a home, and editors with a server each."""

from __future__ import annotations

from tests.server.conftest import (  # noqa: F401
    capabilities_fixture,
    eventually_fixture,
    home,
    scripted,
    sessions,
    workspace,
)
