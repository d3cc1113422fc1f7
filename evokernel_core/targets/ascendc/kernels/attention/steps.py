"""The steps of an attention: sizes, the tiles that they are cut into, and the loops over them.

A step is some queries of one matrix against some of its keys. A cube core and its two vector cores take the
same steps in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.kernels.attention.attention_settings import (
    AttentionSchedule,
    ChipAttention,
)

FLOATS = Constant("FLOATS", 8, "of a block; also the blocks of a repeat")


@frozen
class AttentionSizes:
    """What ComputeTiling computes, and the numbers of a schedule: sizes, tiles of queries in each matrix and
    in all (units), matrices that share their keys, whether one step holds all keys; ``half`` the rows of a
    step are a vector core's, which takes a ``chunk`` of them at a time, and ``part_rows`` of the output,
    ``part_pitch`` elements from each other; ``head_queries`` the rows after which queries are
    numbered anew, where that matters."""

    tile_queries: Constant
    tile_keys: Constant
    half: Constant
    chunk: Constant
    queries: Param
    keys: Param
    depth: Param
    width: Param
    query_tiles: Param
    units: Param
    sharing: Param
    is_whole: Param
    part_pitch: Param
    part_rows: Param
    head_queries: Param | None
    bottom_right: bool

    def seen_by(self, row: Expr) -> Expr:
        """How many keys the query of a row sees where attention is causal."""
        number = row + 1 if self.head_queries is None else row % self.head_queries + 1
        if not self.bottom_right:
            return number
        queries = self.queries if self.head_queries is None else self.head_queries
        seen = number + self.keys
        return Choice(seen, ">", queries, seen - queries, Int(0))


def sizes_of(k: Builder, problem: ChipAttention, schedule: AttentionSchedule) -> AttentionSizes:
    """The fields of the tiling, and what a call must meet."""
    tile_queries = Constant("TILE_QUERIES", schedule.queries, "rows of one unit")
    tile_keys = Constant("TILE_KEYS", schedule.keys, "keys of one step")
    half = Constant("HALF_QUERIES", schedule.queries // 2, "rows of one vector core")
    chunk = Constant("CHUNK_ROWS", schedule.chunk, "rows in the unified buffer at a time")
    names = ("matrices", "queries", "keys", "depth", "width")
    matrices, queries, keys, depth, width = (k.param(name, Size(getattr(problem, name))) for name in names)
    for size in (matrices, queries, keys, depth, width):
        k.require(size, ">=", 1)
    note = "matrices of queries that share one of keys and values"
    sharing = k.param("sharing", Size(problem.sharing), note)
    tiles = k.param("queryTiles", ceil_div(queries, tile_queries))
    units = k.param("units", matrices * tiles, "tiles of queries over all matrices")
    is_whole = Choice(keys, "<=", tile_keys, Int(1), Int(0))
    whole_step = k.param("isWhole", is_whole, "one step holds all keys", U32)
    pitch = k.param("partPitch", round_up(width, FLOATS), "from row to row of the output's parts", U32)
    room = chunk * tile_keys
    k.require(pitch * FLOATS, "<=", room, "values too wide for the unified buffer")
    part_rows = k.param("partRows", least(room // pitch, half) // FLOATS * FLOATS, "in a chunk", U32)
    numbered = problem.causal and not problem.heads.is_one
    head_queries = (
        k.param("headQueries", queries // k.param("heads", Size(problem.heads))) if numbered else None
    )
    rest = (tiles, units, sharing, whole_step, pitch, part_rows, head_queries, problem.bottom_right)
    return AttentionSizes(tile_queries, tile_keys, half, chunk, queries, keys, depth, width, *rest)


@frozen
class AttentionStep:
    """Where a step begins, how much it holds, and which one it is of all steps of its queries."""

    matrix: Var
    query: Var
    key: Var
    queries: Var
    keys: Var
    tile: Var
    tiles: Var


def _seen(sizes: AttentionSizes, behind: Expr) -> Expr:
    """How many keys the queries in front of a row need: one at least, since a step without any key writes
    nothing."""
    if sizes.head_queries is not None:
        return sizes.keys
    if not sizes.bottom_right:
        return least(behind, sizes.keys)
    return least(greatest(sizes.seen_by(behind - 1), 1), sizes.keys)


@contextmanager
def walk(
    k: Builder, sizes: AttentionSizes, *, causal: bool, with_cube: bool = False
) -> Iterator[AttentionStep]:
    """The steps of a core, of a vector core where it goes ``with_cube`` core. Late queries see more keys
    where attention is causal: the tiles of each next matrix are turned by one then, so that no core has the
    same tile of all its matrices; keys behind the last query of a unit weigh nothing."""
    with k.cores("unit", sizes.units, with_cube=with_cube) as unit:
        matrix = k.let("matrix", unit // sizes.query_tiles, U64)
        turned = unit + matrix if causal else unit
        query = k.let("query", turned % sizes.query_tiles * sizes.tile_queries, U64)
        queries = k.let("queries", least(sizes.queries - query, sizes.tile_queries))
        seen = k.let("seenKeys", _seen(sizes, query + queries) if causal else sizes.keys, U64)
        tiles = k.let("keyTiles", ceil_div(seen, sizes.tile_keys))
        with k.loop("keyTile", tiles) as tile:
            key = k.let("key", tile * sizes.tile_keys, U64)
            left = k.let("left", seen - key, U64)
            keys = k.let("keys", least(left, sizes.tile_keys))
            yield AttentionStep(matrix, query, key, queries, keys, tile, tiles)
