"""Helper methods of the emitted classes, emitted only where they are called."""

from __future__ import annotations

from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule


def whole_repeats() -> str:
    return """\
// Compare works on whole repeats of 256 bytes.
__aicore__ inline uint32_t WholeRepeats(uint32_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}
"""


def spread_rows(schedule: Schedule) -> str:
    return _at_pitch(
        """\
// Give every column of a row the row's value. Brcb fills one 32-byte block with each value; a block
// stride of 0 then repeats that block.
__aicore__ inline void SpreadRows(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows)
{
    const uint8_t repeats = (rows + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT;
    Brcb(blocks, src, repeats, BrcbRepeatParams{1, BLOCKS_PER_REPEAT});
    const uint8_t pitchBlocks = tiling_.pitch / FLOATS_PER_BLOCK;
    for (uint32_t column = 0; column < tiling_.pitch; column += LANES) {
        const uint32_t left = tiling_.pitch - column;
        Adds(dst[column], blocks, 0.0f, left < LANES ? left : LANES, rows,
            UnaryRepeatParams{1, 0, pitchBlocks, 1});
    }
}
""",
        schedule,
    )


def _at_pitch(text: str, schedule: Schedule) -> str:
    """The text with the distance of a tile's rows, which in tiles of several steps is that of a unit."""
    return text.replace("tiling_.pitch", "pitch") if schedule.form is Form.CHANNELS else text


def repeat_columns(schedule: Schedule) -> str:
    return _at_pitch(
        """\
// Give every row of the tile the same columns.
__aicore__ inline void RepeatColumns(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                                     uint32_t rows)
{
    const uint8_t pitchBlocks = tiling_.pitch / FLOATS_PER_BLOCK;
    for (uint32_t lane = 0; lane < tiling_.pitch; lane += LANES) {
        const uint32_t left = tiling_.pitch - lane;
        Adds(dst[lane], src[lane], 0.0f, left < LANES ? left : LANES, rows,
            UnaryRepeatParams{1, 1, pitchBlocks, 0});
    }
}
""",
        schedule,
    )


def narrow(op: str, schedule: Schedule) -> str:
    """A binary operation whose second operand has one value a row or a column, such as ``MulRows``."""
    if op.endswith("Rows"):
        return _at_pitch(_with_rows(op, op.removesuffix("Rows")), schedule)
    return _at_pitch(_with_columns(op, op.removesuffix("Columns")), schedule)


def _with_rows(name: str, op: str) -> str:
    return f"""\
// {op} each row of a tile and the row's value. Brcb fills one 32-byte block with each value; a block
// stride of 0 then uses that block for the whole row.
__aicore__ inline void {name}(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                              const LocalTensor<float> &values, uint32_t rows)
{{
    const uint8_t repeats = (rows + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT;
    Brcb(blocks, values, repeats, BrcbRepeatParams{{1, BLOCKS_PER_REPEAT}});
    const uint8_t pitchBlocks = tiling_.pitch / FLOATS_PER_BLOCK;
    for (uint32_t column = 0; column < tiling_.pitch; column += LANES) {{
        const uint32_t left = tiling_.pitch - column;
        {op}(dst[column], src[column], blocks, left < LANES ? left : LANES, rows,
            BinaryRepeatParams{{1, 1, 0, pitchBlocks, pitchBlocks, 1}});
    }}
}}
"""


def _with_columns(name: str, op: str) -> str:
    return f"""\
// {op} each row of a tile and the same columns.
__aicore__ inline void {name}(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                              const LocalTensor<float> &columns, uint32_t rows)
{{
    const uint8_t pitchBlocks = tiling_.pitch / FLOATS_PER_BLOCK;
    for (uint32_t lane = 0; lane < tiling_.pitch; lane += LANES) {{
        const uint32_t left = tiling_.pitch - lane;
        {op}(dst[lane], src[lane], columns[lane], left < LANES ? left : LANES, rows,
            BinaryRepeatParams{{1, 1, 1, pitchBlocks, pitchBlocks, 0}});
    }}
}}
"""


def row_pitch() -> str:
    return """\
// Elements from one row to the next in the unified buffer, where a row starts on a 32-byte block.
template <typename T> __aicore__ inline uint32_t RowPitch()
{
    constexpr uint32_t ELEMENTS_PER_BLOCK = BLOCK_BYTES / sizeof(T);
    return (tiling_.columns + ELEMENTS_PER_BLOCK - 1) / ELEMENTS_PER_BLOCK * ELEMENTS_PER_BLOCK;
}
"""


def cast_rows() -> str:
    return """\
// Convert a tile. Rows of types of different width start at different distances unless a row fills
// its blocks.
template <typename To, typename From>
__aicore__ inline void CastRows(const LocalTensor<To> &dst, const LocalTensor<From> &src, RoundMode mode,
                                uint32_t rows)
{
    const uint32_t dstPitch = RowPitch<To>();
    const uint32_t srcPitch = RowPitch<From>();
    if (dstPitch == srcPitch) {
        Cast(dst, src, mode, rows * dstPitch);
        return;
    }
    const uint32_t shared = dstPitch < srcPitch ? dstPitch : srcPitch;
    for (uint32_t row = 0; row < rows; ++row) {
        Cast(dst[row * dstPitch], src[row * srcPitch], mode, shared);
    }
}
"""
