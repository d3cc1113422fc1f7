"""The parameter through which a tool gets what one call may touch: the roots are the client's where the
person named none."""

from __future__ import annotations

from typing import Annotated

from evokernel_server.trust import Trust
from mcp.server.mcpserver import Context, ListRoots, Resolve
from mcp_types import ListRootsResult

from evokernel_mcp.access import Access, local_folder
from evokernel_mcp.context import state_of


def _ask_roots(ctx: Context) -> ListRoots | ListRootsResult:
    given = state_of(ctx).rules
    known = ctx.client_capabilities
    asks = not given.roots and known is not None and known.roots is not None
    return ListRoots() if asks else ListRootsResult(roots=[])


def _access(ctx: Context, listed: Annotated[ListRootsResult, Resolve(_ask_roots)]) -> Access:
    rules = state_of(ctx).rules
    theirs = tuple(folder for root in listed.roots if (folder := local_folder(str(root.uri))))
    trust = Trust(folders=rules.trusted)
    return Access(rules.roots or theirs or rules.trusted, trust, rules.may_write)


Allowed = Annotated[Access, Resolve(_access)]
"""A tool's parameter that the server fills in."""
