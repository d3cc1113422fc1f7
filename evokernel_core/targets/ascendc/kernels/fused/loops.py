"""The loops of a core over its tiles, with or without fetching one tile ahead."""

from __future__ import annotations


def core_range(total: str, share: str) -> list[str]:
    """``begin`` and ``end`` of what this core works on."""
    return [
        f"const uint64_t begin = GetBlockIdx() * tiling_.{share};",
        f"const uint64_t run = begin + tiling_.{share};",
        f"const uint64_t end = run < tiling_.{total} ? run : tiling_.{total};",
    ]


def measured(ahead: bool, position: str, size: str, measure: str, arguments: str) -> list[str]:
    """Tiles of varying size: ``measure(position, end)`` gives it, 0 behind the last tile."""
    if not ahead:
        return [
            f"for (uint64_t {position} = begin; {position} < end;) {{",
            f"    const uint32_t {size} = {measure}({position}, end);",
            f"    CopyIn({position}, {size});",
            f"    Compute({arguments});",
            f"    CopyOut({position}, {size});",
            f"    {position} += {size};",
            "}",
        ]
    return [
        f"uint32_t {size} = {measure}(begin, end);",
        f"CopyIn(begin, {size});",
        f"for (uint64_t {position} = begin; {position} < end;) {{",
        f"    const uint64_t next = {position} + {size};",
        f"    const uint32_t nextSize = {measure}(next, end);",
        "    if (nextSize > 0) { // travels while this tile is computed",
        "        CopyIn(next, nextSize);",
        "    }",
        f"    Compute({arguments});",
        f"    CopyOut({position}, {size});",
        f"    {position} = next;",
        f"    {size} = nextSize;",
        "}",
    ]
