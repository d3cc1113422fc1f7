"""How many bytes of tiles a kernel has alive at once, counted over what triton-ascend's front makes of it.

A chip's unified buffer holds all of them, and what does not fit is the most frequent error of that compiler's
users. Counted are tensors and allocated buffers, each from the line that makes it to its last use, and to the
end of a loop in which something from outside is used. Fills with one number are operands of instructions and
count nothing, views lie in what they show, and accumulators stay in place. A tile that dies where another
begins counts beside it, so that the count is rather too high; what the compiler doubles to overlap copies
with work is not in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from attrs import define, field

_TYPE = re.compile(r"(?:tensor|memref)<((?:\d+x)*)(f64|f32|f16|bf16|i64|i32|i16|i8|i1|index)\b")
_DYNAMIC = re.compile(r"(?:tensor|memref)<[\dx]*\?")
_BYTES = {"f64": 8, "i64": 8, "index": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "i1": 1}
_RESULT = re.compile(r"^(%[\w$.-]+)(?::\d+)? = ([\w.]+)")
_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_ITERATED = re.compile(r"(%\w+) = (%[\w#]+)")
_VIEWS = frozenset(
    {
        *("bufferization.to_tensor", "tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice"),
        *("tensor.cast", "memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape"),
        *("memref.reinterpret_cast", "bufferization.to_memref", "memref.reshape", "tensor.reshape"),
    }
)
_NOTHING = frozenset({"tensor.empty", "linalg.fill", "tensor.splat", "tensor.extract", "memref.load"})


@define
class _Tile:
    """``begun`` and ``last`` are lines."""

    nbytes: int
    begun: int
    last: int


@define
class _Walk:
    """Tiles by the names of values, several of one where they lie in each other."""

    lines: list[str]
    tiles: dict[str, _Tile] = field(factory=dict)
    depth: list[tuple[int, bool]] = field(factory=list)
    ends: dict[int, int] = field(factory=dict)
    all: list[_Tile] = field(factory=list)
    carried: set[str] = field(factory=set)

    def run(self) -> list[_Tile]:
        self.ends = _ends(self.lines)
        for number, line in enumerate(self.lines):
            if line.startswith("}"):
                self.depth = self.depth[:-1]
            self._used(line, number)
            self._made(line, number)
            if line.endswith("{") or line.endswith(") {"):
                self.depth = [*self.depth, (number, "scf.for" in line or "scf.while" in line)]
        return self.all

    def _used(self, line: str, number: int) -> None:
        for name in _NAME.findall(line.partition(" = ")[2] or line):
            tile = self.tiles.get(name) or self.tiles.get(name.partition("#")[0])
            if tile is None:
                continue
            loops = [start for start, is_loop in self.depth if is_loop and start > tile.begun]
            tile.last = max(tile.last, number, *(self.ends[start] for start in loops[:1]))

    def _made(self, line: str, number: int) -> None:
        match = _RESULT.match(line)
        if match is not None:
            self._forget(match[1])  # names come again in other regions
        if "scf.for" in line and "iter_args(" in line:
            self._iterated(line, number, match[1] if match else "")
            return
        if match is None or match[2] in _NOTHING:
            return
        name, op = match.groups()
        source = self._in_place(line, op)
        if source is not None:
            self.tiles[name] = source
        elif (nbytes := _result_bytes(line, op)) > 0:
            self._add(name, nbytes, number)

    def _forget(self, name: str) -> None:
        for known in [one for one in self.tiles if one.partition("#")[0] == name]:
            del self.tiles[known]

    def _in_place(self, line: str, op: str) -> _Tile | None:
        """The tile in which a result lies."""
        operands = _NAME.findall(line.partition(" = ")[2])
        if op in _VIEWS:
            return self.tiles.get(operands[0]) if operands else None
        if op in ("tensor.insert", "tensor.insert_slice"):
            return self.tiles.get(operands[1]) if len(operands) > 1 else None
        given = re.search(r"outs\((%[\w#]+)", line)
        return self.tiles.get(given[1]) if given and op == "linalg.matmul" else None

    def _iterated(self, line: str, number: int, result: str) -> None:
        """What a loop carries has one place from its beginning on: that of a loop around it where it comes
        from there."""
        given = line.partition("iter_args(")[2].partition(") -> ")
        types = re.findall(r"tensor<[^>]*>|memref<[^>]*(?:<[^>]*>[^>]*)?>|[\w]+", given[2].partition("{")[0])
        for place, (name, before) in enumerate(_ITERATED.findall(given[0])):
            nbytes = _type_bytes(types[place]) if place < len(types) else 0
            outer = self.tiles.get(before) if before in self.carried else None
            self._forget(name)
            if nbytes:
                tile = self.tiles[name] = outer or self._add(name, nbytes, number)
                tile.last = max(tile.last, self.ends[number])
                self.tiles[f"{result}#{place}"] = tile
                self.carried.add(name)
                if place == 0:
                    self.tiles.setdefault(result, tile)

    def _add(self, name: str, nbytes: int, number: int) -> _Tile:
        tile = self.tiles[name] = _Tile(nbytes, number, number)
        self.all.append(tile)
        return tile


def live_bytes(text: str) -> int:
    """The most bytes of tiles that are alive at a line of a function (linalg in MLIR's textual form)."""
    events: dict[int, int] = {}
    for tile in _Walk([line.strip() for line in text.splitlines()]).run():
        events[tile.begun] = events.get(tile.begun, 0) + tile.nbytes
        events[tile.last + 1] = events.get(tile.last + 1, 0) - tile.nbytes
    alive = most = 0
    for line in sorted(events):
        alive += events[line]
        most = max(most, alive)
    return most


def _ends(lines: list[str]) -> dict[int, int]:
    """The line on which each region ends, by the one on which it begins."""
    begun: list[int] = []
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        if line.startswith("}") and begun:
            ends[begun.pop()] = number
        if line.endswith("{"):
            begun.append(number)
    return ends


def _result_bytes(line: str, op: str) -> int:
    """Of what an operation makes that is no view; 0 for what is no tile."""
    if op in ("memref.alloc", "memref.alloca"):
        return _type_bytes(line)
    texts = list(_texts(line))
    nbytes = _type_bytes(texts[-1]) if texts else 0
    if op in ("arith.cmpf", "arith.cmpi") and nbytes:
        match = _TYPE.search(texts[-1])
        return math.prod(map(int, match[1].split("x")[:-1])) if match else 0
    return nbytes if texts and texts[-1].startswith("tensor") else 0


def _texts(line: str) -> Iterator[str]:
    """The types of a line; the last is that of the result."""
    given = re.search(r"outs\(%[\w#]+ : (tensor<[^>]*>)", line)
    if given:
        yield given[1]
    else:
        yield from re.findall(r"(?:tensor|memref)<[^>]*>", line)


def _type_bytes(text: str) -> int:
    match = _TYPE.search(text)
    if match is None or _DYNAMIC.search(text):
        return 0
    return math.prod(int(size) for size in match[1].split("x") if size) * _BYTES[match[2]]
