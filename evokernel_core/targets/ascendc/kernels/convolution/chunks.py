"""Images that vector cores frame for cube cores, chunk by chunk: fields of ComputeTiling, and the class."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
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
    ceil_div,
    equal,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import RING
from evokernel_core.targets.ascendc.kernels.convolution.fields import WHOLE, ConvTiles, Counts
from evokernel_core.targets.ascendc.kernels.convolution.padding import frame_tile_bytes, is_cut_across
from evokernel_core.targets.ascendc.kernels.space_to_depth.space_to_depth_kernel import (
    BITS,
    Frame,
    Framer,
    Origin,
    Pieces,
    pieces_of,
)
from evokernel_core.targets.ascendc.lowering.program import camel

_RING = Constant("RING", RING, "chunks that are framed or read at a time")


@frozen
class Frames:
    """Chunks of ``images`` whole images, or of one of ``pieces`` of an image, each ``piece_tiles`` down or
    across; ``of_piece`` and ``of_chunk`` count tiles. ``made``: planes, rows and elements of a phase of what
    is framed; ``tiles`` of it, ``tiles_of_plane`` of one channel of one image. ``piece_step``: rows from
    piece to piece, or elements of a phase; ``planes`` counts the channels of all images, ``chunk_planes``
    those of a chunk."""

    ring: Constant
    chunks: Param
    chunk_elements: Param
    images: Param
    pieces: Param
    piece_tiles: Param
    of_piece: Param
    of_chunk: Param
    made: tuple[Param, Param, Param]
    tiles: Pieces
    tiles_of_plane: Param
    piece_step: Param
    planes: Param
    chunk_planes: Param


def framed_width(problem: Convolution, pixels: Expr) -> Expr:
    """Elements of one phase for a row of so many pixels of the result."""
    reach = (problem.kernel[2] - 1) * (problem.dilation[2].constant or 1) // problem.phases
    return round_up(pixels + reach, WHOLE)


def _framed_height(problem: Convolution, rows: Expr) -> Expr:
    """Rows for so many rows of the result."""
    reach = (problem.kernel[1] - 1) * (problem.dilation[1].constant or 1)
    return (rows - 1) * problem.stride[1] + (reach + 1)


def chunks_of(
    k: Builder,
    problem: Convolution,
    chunk_kib: int,
    known: tuple[Counts, ConvTiles],
    pitch: Param,
    chip: Chip,
) -> Frames:
    """Chunks of whole images, or of pieces of one, small enough that L2 keeps what is framed until it is
    read; ``pitch``: elements of a framed row."""
    (counts, tiles), across = known, is_cut_across(problem)
    taps, gap = problem.kernel[0], problem.dilation[0].constant or 1
    planes = (counts.made[0] - 1) * problem.stride[0] + ((taps - 1) * gap + 1)
    depth = k.param("frameMadeDepth", planes, "of a chunk")

    def elements(number: Expr) -> Expr:
        """Of an image's piece with so many tiles."""
        of_planes = counts.channels * problem.groups * depth
        if across:
            return of_planes * problem.phases * framed_width(problem, number * tiles.width)
        return of_planes * _framed_height(problem, number * tiles.rows) * pitch

    size = ITEM_SIZE[problem.dtype]
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
        width = k.param("frameMadeWidth", framed_width(problem, step), "of one phase")
        of_piece = k.param("tilesOfPiece", piece_tiles)
    else:
        rows = k.param("pieceRows", piece_tiles * tiles.rows)
        step = k.param("framePieceStep", rows * problem.stride[1], "rows from piece to piece")
        height = k.param("frameMadeHeight", _framed_height(problem, rows))
        width = k.param("frameMadeWidth", pitch // problem.phases, "of one phase")
        of_piece = k.param("tilesOfPiece", counts.made[0] * piece_tiles * tiles.across)
    of_chunk = k.param(
        "tilesOfChunk", tiles.of_outputs * problem.groups * images * of_piece, "empty ones too"
    )
    all_planes = k.param("framePlanes", counts.channels * problem.groups * counts.batch, "of all images")
    of_images = k.param("frameChunkPlanes", counts.channels * problem.groups * images)
    chunk_elements = k.param("frameChunkElements", images * elements(piece_tiles))
    made = depth, height, width
    sizes = _image_sizes(k, problem)
    at_once = pieces_of(
        k, frame_of(problem, chip), sizes, (depth if sizes[0] != Int(1) else Int(1), height, width), _of_frame
    )
    of_plane = k.param("frameTilesOfPlane", depth * at_once.down * at_once.across, "of a channel of an image")
    return Frames(
        _RING, chunks, chunk_elements, images, pieces, piece_tiles, of_piece, of_chunk,
        made, at_once, of_plane, step, all_planes, of_images,
    )  # fmt: skip


def _of_frame(name: str) -> str:
    """What a field of the frame is called among those of the convolution."""
    return f"frame{name[0].upper()}{name[1:]}"


def _image_sizes(k: Builder, problem: Convolution) -> tuple[Expr, Expr, Expr]:
    """Planes, rows and elements of an image; a single plane in which all of a frame lies is a number."""
    assert problem.frame is not None
    planes, *area = problem.frame.sizes
    is_flat = planes.is_one and problem.made[0].is_one and not problem.frame.before[0]
    height, width = (
        k.param(_of_frame(name), Size(item)) for name, item in zip(("height", "width"), area, strict=True)
    )
    depth: Expr = Int(1) if is_flat else k.param(_of_frame("depth"), Size(planes))
    for given in (depth, height, width):
        k.require(given, ">=", 1)
    return depth, height, width


def frame_of(problem: Convolution, chip: Chip) -> Frame:
    """How images lie among zeros."""
    assert problem.frame is not None
    return Frame(problem.frame.before, problem.phases, ITEM_SIZE[problem.dtype], frame_tile_bytes(chip))


def framing(problem: Convolution, frames: Frames, chip: Chip) -> Kernel:
    """The vector cores that frame images into a ring of chunks, which stays in L2."""
    frame = frame_of(problem, chip)
    k = Builder("Images in a frame of zeros, their rows cut into phases, chunk by chunk for the cube cores.")
    x = k.input("x", camel(problem.x), BITS[frame.size], frame.size)
    framed = k.output("framed", "workspace", BITS[frame.size], frame.size)
    framer = Framer(k, frame, frames.tiles, x, framed)
    framer.prepare()
    with k.chunks("chunk", frames.chunks, frames.ring) as chunk:
        image = k.let("image", chunk // frames.pieces * frames.chunk_planes, U64)
        start = k.let("pieceStart", chunk % frames.pieces * frames.piece_step, U64)
        place = k.let("chunkPlace", chunk % frames.ring * frames.chunk_elements, U64)
        tiles = k.let("tiles", least(frames.planes - image, frames.chunk_planes) * frames.tiles_of_plane, U64)
        down, across = (Int(0), start) if is_cut_across(problem) else (start, Int(0))
        with k.cores("index", tiles, beside=True) as index:
            framer.tile(index, Origin(image, down, across, place))
    return k.kernel()


def workspace_bytes(problem: Convolution, frames: Frames) -> Expr:
    """What the ring of chunks takes, on the host."""
    return frames.ring * frames.chunk_elements * ITEM_SIZE[problem.dtype]
