"""Images that vector cores frame for cube cores, chunk by chunk: fields of ComputeTiling, and the class."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.ascendc.ir.builder import Builder
from evokernel_core.ascendc.ir.expr import (
    U32,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Size,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.ascendc.kernels.convolution.fields import WHOLE, Counts, Tiles, equal
from evokernel_core.ascendc.kernels.convolution.geometry import Convolution
from evokernel_core.ascendc.kernels.convolution.padding import TABLE_BYTES, frame_tile_bytes, is_cut_across
from evokernel_core.ascendc.kernels.convolution.schedule import RING
from evokernel_core.ascendc.kernels.cube import Before, BeforeText
from evokernel_core.ascendc.kernels.rendering import render
from evokernel_core.ascendc.kernels.space_to_depth.family import BITS, FIXED_PATTERNS
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip

_RING = Constant("RING", RING, "chunks that are framed or read at a time")
_FIELDS = {
    "int64_t": ("depth", "height", "width", "madeDepth", "madeHeight", "madeWidth", "planes", "chunkPlanes"),
    "uint64_t": ("tilesOfPlane", "chunkElements", "pieces", "pieceStep", "chunks"),
    "uint32_t": ("tileRows", "tileWidth", "tilesRows", "tilesWidth"),
}
"""What vector cores are told: fields of the tiling without ``frame``. Places in front of an image are
negative, and what they are compared with is signed."""


@frozen
class Frames:
    """Chunks of ``images`` whole images, or of one of ``pieces`` of an image, each ``piece_tiles`` down or
    across; ``of_piece`` and ``of_chunk`` count tiles. ``made``: planes, rows and elements of a phase of what
    is framed."""

    ring: Constant
    chunks: Param
    chunk_elements: Param
    images: Param
    pieces: Param
    piece_tiles: Param
    of_piece: Param
    of_chunk: Param
    made: tuple[Param, Param, Param]


def framed_width(found: Convolution, pixels: Expr) -> Expr:
    """Elements of one phase for a row of so many pixels of the result."""
    reach = (found.kernel[2] - 1) * (found.dilation[2].constant or 1) // found.phases
    return round_up(pixels + reach, WHOLE)


def _framed_height(found: Convolution, rows: Expr) -> Expr:
    """Rows for so many rows of the result."""
    reach = (found.kernel[1] - 1) * (found.dilation[1].constant or 1)
    return (rows - 1) * found.stride[1] + (reach + 1)


def chunks_of(
    k: Builder, found: Convolution, chunk_kib: int, known: tuple[Counts, Tiles], pitch: Param, chip: Chip
) -> Frames:
    """Chunks of whole images, or of pieces of one, small enough that L2 keeps what is framed until it is
    read; ``pitch``: elements of a framed row."""
    (counts, tiles), across = known, is_cut_across(found)
    assert found.frame is not None
    sizes = zip(("frameDepth", "frameHeight", "frameWidth"), found.frame.sizes, strict=True)
    for given in [k.param(name, Size(item)) for name, item in sizes]:
        k.require(given, ">=", 1)
    taps, gap = found.kernel[0], found.dilation[0].constant or 1
    planes = (counts.made[0] - 1) * found.stride[0] + ((taps - 1) * gap + 1)
    depth = k.param("frameMadeDepth", planes, "of a chunk")

    def elements(number: Expr) -> Expr:
        """Of an image's piece with so many tiles."""
        of_planes = counts.channels * found.groups * depth
        if across:
            return of_planes * found.phases * framed_width(found, number * tiles.width)
        return of_planes * _framed_height(found, number * tiles.rows) * pitch

    size = ITEM_SIZE[found.dtype]
    bytes_ = Constant("CHUNK_BYTES", chunk_kib * 1024, "about what is framed before cube cores read it")
    number = tiles.across if across else tiles.down
    image = k.param("imageBytes", elements(number) * size, "of a framed image")
    wanted = k.param("wantedPieces", least(ceil_div(image, bytes_), number))
    piece_tiles = k.param("pieceTiles", ceil_div(number, wanted), "of a piece, down or across", U32)
    pieces = k.param("framePieces", ceil_div(number, piece_tiles), "of an image that is larger than a chunk")
    several = Choice(image, "<", bytes_, equal(counts.batch, bytes_ // image), Int(1))
    images = k.param("chunkImages", several, "of a chunk")
    chunks = k.param("frameChunks", ceil_div(counts.batch, images) * pieces)
    if across:
        step = k.param("framePieceStep", piece_tiles * tiles.width, "elements of a phase from piece to piece")
        height = k.param("frameMadeHeight", Int(1))
        width = k.param("frameMadeWidth", framed_width(found, step), "of one phase")
        of_piece = k.param("tilesOfPiece", piece_tiles)
    else:
        rows = k.param("pieceRows", piece_tiles * tiles.rows)
        k.param("framePieceStep", rows * found.stride[1], "rows from piece to piece")
        height = k.param("frameMadeHeight", _framed_height(found, rows))
        width = k.param("frameMadeWidth", pitch // found.phases, "of one phase")
        of_piece = k.param("tilesOfPiece", counts.made[0] * piece_tiles * tiles.across)
    of_chunk = k.param("tilesOfChunk", tiles.of_outputs * found.groups * images * of_piece, "empty ones too")
    k.param("framePlanes", counts.channels * found.groups * counts.batch, "channels of all images")
    k.param("frameChunkPlanes", counts.channels * found.groups * images)
    chunk_elements = k.param("frameChunkElements", images * elements(piece_tiles))
    _framed_at_once(k, found, (depth, height, width), chip)
    return Frames(
        _RING, chunks, chunk_elements, images, pieces, piece_tiles, of_piece, of_chunk, (depth, height, width)
    )


def _framed_at_once(k: Builder, found: Convolution, made: tuple[Param, Param, Param], chip: Chip) -> None:
    """Long rows are cut; of short ones a vector core frames several at once."""
    elements = frame_tile_bytes(chip) // ITEM_SIZE[found.dtype] // found.phases // WHOLE.value * WHOLE.value
    widest = Constant("MOST_WIDTH", elements, "of a phase, in the unified buffer")
    most = Constant("MOST_ROWS", most_of("DataCopyPadIn", "blockCount"), "of one copy")
    depth, height, width = made
    tile = k.param("frameTileWidth", round_up(equal(width, widest), WHOLE), "", U32)
    fitting = k.param("frameMostRows", Choice(tile, "<", width, Int(1), least(widest // tile, most)), "", U32)
    rows = k.param("frameTileRows", equal(height, fitting), "", U32)
    down = k.param("frameTilesRows", ceil_div(height, rows), "", U32)
    across = k.param("frameTilesWidth", ceil_div(width, tile), "", U32)
    k.param("frameTilesOfPlane", depth * down * across, "of one channel of one image")


# -- the class of the vector cores ----------------------------------------------------------------


def framing(found: Convolution, frames: Frames, chip: Chip) -> Before:
    """The vector cores that frame images."""
    size = ITEM_SIZE[found.dtype]

    def written(class_name: str) -> BeforeText:
        return _class(found, class_name, chip)

    return Before(written, frames.ring * frames.chunk_elements * size)


def _class(found: Convolution, class_name: str, chip: Chip) -> BeforeText:
    assert found.frame is not None
    size = ITEM_SIZE[found.dtype]
    pattern = FIXED_PATTERNS.get(found.phases, 0)
    tables = found.phases > 1 and not pattern
    context = {
        "f": found,
        "bits": BITS[size],
        "fixed_pattern": pattern,
        "across": is_cut_across(found),
        "beside": True,
        "piece": "FramePiece",
        "framer": class_name,
        "tiling_struct": "FrameTiling",
    }
    parts = [render(f"space_to_depth/{part}", **context) for part in ("constants", "class")]
    needed = (4 if found.phases > 1 else 2) * frame_tile_bytes(chip) + (TABLE_BYTES if tables else 0)
    settings = [*_struct(), f"constexpr uint64_t FRAME_BYTES = {needed}; // of the unified buffer"]
    text = "\n".join([*_constants(found, size, chip), *parts, *_frame_of()])
    arguments = f"{camel(found.x)}, workspace, FrameOf(tiling)"
    return BeforeText("\n".join(settings), text, class_name, arguments, "ubBytes < FRAME_BYTES")


def _constants(found: Convolution, size: int, chip: Chip) -> list[str]:
    assert found.frame is not None
    numbers = {
        "PHASES": found.phases,
        "ELEMENT_BYTES": size,
        "TILE_BYTES": frame_tile_bytes(chip),
        "UNIT": WHOLE.value,
        "SLOTS": 2,
        **dict(zip(("BEFORE_D", "BEFORE_H", "BEFORE_W"), found.frame.before, strict=True)),
    }
    notes = {
        "PHASES": "element w of a row lies in phase w % PHASES at w / PHASES",
        "TILE_BYTES": "most that a vector core frames at once",
        "UNIT": "elements in which rows of the frame are whole",
        "BEFORE_D": "zeros in front of planes, rows and elements",
        "SLOTS": "one tile is framed while another is stored",
    }
    lines = [
        f"constexpr uint32_t {name} = {value};{_note(notes.get(name, ''))}" for name, value in numbers.items()
    ]
    return [
        *lines,
        "constexpr uint16_t ALL_FRAMED = 2; // among vector cores: all have framed their part of a chunk",
        "constexpr uint16_t ALL_READ = 3; // among vector cores: all cube cores have read a chunk",
        "",
    ]


def _note(text: str) -> str:
    return f" // {text}" if text else ""


def _struct() -> list[str]:
    fields = [f"    {ctype} {name};" for ctype, names in _FIELDS.items() for name in names]
    note = "// Images in a frame of zeros, their rows cut into phases, chunk by chunk for the cube cores."
    return [note, "struct FrameTiling {", *fields, "};", ""]


def _frame_of() -> list[str]:
    names = [name for names in _FIELDS.values() for name in names]
    lines = [f"    frame.{name} = tiling.frame{name[0].upper()}{name[1:]};" for name in names]
    head = "__aicore__ inline FrameTiling FrameOf(const OpTiling &tiling)"
    return [head, "{", "    FrameTiling frame;", *lines, "    return frame;", "}", ""]
