#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

// Several whole rows a tile; values of a row are vectors, broadcast over the columns.
class SoftmaxKernel {
public:
    __aicore__ inline SoftmaxKernel() {}
    __aicore__ inline void Init(GM_ADDR xIn, GM_ADDR outputOut, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        xInGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(xIn));
        outputOutGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(outputOut));
        pipe->InitBuffer(xLocalQueue, 2, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(outputLocalQueue, 2, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(rowValuesBuffer, ROW_CAPACITY * 2 * sizeof(float));
        pipe->InitBuffer(foldEvenBuffer, FOLD_EVEN * sizeof(float));
        pipe->InitBuffer(foldOddBuffer, FOLD_ODD * sizeof(float));
        pipe->InitBuffer(blocksBuffer, ROW_CAPACITY * FLOATS_PER_BLOCK * sizeof(float));
        pipe->InitBuffer(softmaxSumBuffer, ROW_CAPACITY * sizeof(float));
        pipe->InitBuffer(row2Buffer, ROW_CAPACITY * sizeof(float));
        rowValues = rowValuesBuffer.Get<float>();
        foldEven = foldEvenBuffer.Get<float>();
        foldOdd = foldOddBuffer.Get<float>();
        blocks = blocksBuffer.Get<float>();
        softmaxSum = softmaxSumBuffer.Get<float>();
        row2 = row2Buffer.Get<float>();
    }

    __aicore__ inline void Process()
    {
        Prepare();
        for (uint64_t core = GetBlockIdx(); core < (tiling_.rows + tiling_.rowsPerCore - 1) / tiling_.rowsPerCore;
            core += GetBlockNum()) {
            const uint64_t begin = core * tiling_.rowsPerCore;
            const uint64_t end = begin + tiling_.rowsPerCore < tiling_.rows ? begin + tiling_.rowsPerCore :
                tiling_.rows;
            const uint64_t tiles = (end - begin + tiling_.rowsPerTile - 1) / tiling_.rowsPerTile;
            if (0 < tiles) {
                CopyIn(begin, end, 0);
            }
            for (uint64_t tile = 0; tile < tiles; ++tile) {
                const uint64_t row = begin + tile * tiling_.rowsPerTile;
                const uint32_t rows = static_cast<uint32_t>(end - row < tiling_.rowsPerTile ? end - row :
                    tiling_.rowsPerTile);
                if (tile + 1 < tiles) { // travels while this turn is computed
                    CopyIn(begin, end, tile + 1);
                }
                const uint32_t count = rows * tiling_.pitch;
                Compute(rows, count);
                CopyOut(row, rows);
            }
        }
    }

private:
    __aicore__ inline void Prepare()
    {
        Duplicate(rowValues, 0.0f, ROW_CAPACITY * 2);
    }

    __aicore__ inline void CopyIn(uint64_t begin, uint64_t end, uint64_t tile)
    {
        const uint64_t row = begin + tile * tiling_.rowsPerTile;
        const uint32_t rows = static_cast<uint32_t>(end - row < tiling_.rowsPerTile ? end - row : tiling_.rowsPerTile);
        LocalTensor<float> xLocal = xLocalQueue.AllocTensor<float>();
        if (tiling_.columns % 8 == 0) {
            DataCopyPad(xLocal, xInGlobal[row * tiling_.columns],
                DataCopyExtParams{1, static_cast<uint32_t>(rows * tiling_.columns * sizeof(float)), 0, 0, 0},
                DataCopyPadExtParams<float>{false, 0, 0, 0});
        } else {
            DataCopyPad(xLocal, xInGlobal[row * tiling_.columns],
                DataCopyExtParams{static_cast<uint16_t>(rows),
                    static_cast<uint32_t>(tiling_.columns * sizeof(float)),
                    static_cast<uint32_t>((tiling_.columns - tiling_.columns) * sizeof(float)), 0, 0},
                DataCopyPadExtParams<float>{false, 0, 0, 0});
        }
        xLocalQueue.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t rows, uint32_t count)
    {
        LocalTensor<float> xLocal = xLocalQueue.DeQue<float>();
        if (tiling_.columns % LANES == 0) {
            // softmax
            MaxWholeRows(rowValues, xLocal, rows, tiling_.columns);
        } else {
            MaxRows(rowValues, xLocal, rows, tiling_.columns, tiling_.pitch);
        }
        SubRows(xLocal, xLocal, rowValues, rows, tiling_.pitch);
        Exp(xLocal, xLocal, count);
        if (tiling_.columns % LANES == 0) {
            SumWholeRows(softmaxSum, xLocal, rows, tiling_.columns);
        } else {
            SumRows(softmaxSum, xLocal, rows, tiling_.columns, tiling_.pitch);
        }
        Duplicate(row2, 1.0f, rows);
        Div(rowValues[ROW_CAPACITY], row2, softmaxSum, rows);
        LocalTensor<float> outputLocal = outputLocalQueue.AllocTensor<float>();
        MulRows(outputLocal, xLocal, rowValues[ROW_CAPACITY], rows, tiling_.pitch);
        xLocalQueue.FreeTensor(xLocal);
        outputLocalQueue.EnQue(outputLocal);
    }

    // Max of each row of a tile of whole repeats: BlockReduceMax takes all rows at once.
    __aicore__ inline void MaxWholeRows(const LocalTensor<float> &to, const LocalTensor<float> &tile,
        uint32_t height, uint32_t across)
    {
        BlockReduceMax(foldEven, tile, height * (across / LANES), LANES, 1, 1, BLOCKS_PER_REPEAT);
        if (across / FLOATS_PER_BLOCK % LANES == 0) {
            BlockReduceMax(foldOdd, foldEven, height * (across / FLOATS_PER_BLOCK / LANES), LANES, 1, 1,
                BLOCKS_PER_REPEAT);
            for (uint32_t lanePiece = 0; lanePiece < (across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK - LANES + LANES -
                1) / LANES; ++lanePiece) {
                const uint32_t lane = LANES + lanePiece * LANES;
                const uint32_t laneLeft = across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK - lane;
                const uint32_t laneCount = laneLeft < LANES ? laneLeft : LANES;
                Max(foldOdd, foldOdd, foldOdd[lane], laneCount, static_cast<uint8_t>(height), BinaryRepeatParams{1,
                    1, 1, static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK)});
            }
            const uint32_t lastWidth = across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK < LANES ? across /
                FLOATS_PER_BLOCK / FLOATS_PER_BLOCK : LANES;
            WholeReduceMax(to, foldOdd, lastWidth, height, 1, 1,
                across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK, ReduceOrder::ORDER_ONLY_VALUE);
        } else {
            for (uint32_t lanePiece = 0; lanePiece < (across / FLOATS_PER_BLOCK - LANES + LANES - 1) / LANES;
                ++lanePiece) {
                const uint32_t lane = LANES + lanePiece * LANES;
                const uint32_t laneLeft = across / FLOATS_PER_BLOCK - lane;
                const uint32_t laneCount = laneLeft < LANES ? laneLeft : LANES;
                Max(foldEven, foldEven, foldEven[lane], laneCount, static_cast<uint8_t>(height),
                    BinaryRepeatParams{1, 1, 1, static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK)});
            }
            const uint32_t lastWidth = across / FLOATS_PER_BLOCK < LANES ? across / FLOATS_PER_BLOCK : LANES;
            WholeReduceMax(to, foldEven, lastWidth, height, 1, 1, across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK,
                ReduceOrder::ORDER_ONLY_VALUE);
        }
    }

    // BlockReduceMax leaves a number of each block at full rate; the slow part sees the last repeat.
    __aicore__ inline void MaxLanes(const LocalTensor<float> &to, const LocalTensor<float> &lanes, uint32_t width)
    {
        if (width <= LANES) {
            WholeReduceMax(to, lanes, width, 1, 1, 1, BLOCKS_PER_REPEAT, ReduceOrder::ORDER_ONLY_VALUE);
        } else {
            const uint32_t repeats1 = width / LANES;
            const uint32_t tail1 = width % LANES;
            BlockReduceMax(foldEven, lanes, repeats1, LANES, 1, 1, BLOCKS_PER_REPEAT);
            if (tail1 > 0) {
                BlockReduceMax(foldEven[repeats1 * BLOCKS_PER_REPEAT], lanes[repeats1 * LANES], 1, tail1, 1, 1,
                    BLOCKS_PER_REPEAT);
            }
            const uint32_t blocks1 = (width + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
            if (blocks1 <= LANES) {
                WholeReduceMax(to, foldEven, blocks1, 1, 1, 1, BLOCKS_PER_REPEAT, ReduceOrder::ORDER_ONLY_VALUE);
            } else {
                const uint32_t repeats2 = blocks1 / LANES;
                const uint32_t tail2 = blocks1 % LANES;
                BlockReduceMax(foldOdd, foldEven, repeats2, LANES, 1, 1, BLOCKS_PER_REPEAT);
                if (tail2 > 0) {
                    BlockReduceMax(foldOdd[repeats2 * BLOCKS_PER_REPEAT], foldEven[repeats2 * LANES], 1, tail2, 1,
                        1, BLOCKS_PER_REPEAT);
                }
                const uint32_t blocks2 = (blocks1 + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
                if (blocks2 <= LANES) {
                    WholeReduceMax(to, foldOdd, blocks2, 1, 1, 1, BLOCKS_PER_REPEAT, ReduceOrder::ORDER_ONLY_VALUE);
                } else {
                    const uint32_t repeats3 = blocks2 / LANES;
                    const uint32_t tail3 = blocks2 % LANES;
                    BlockReduceMax(foldEven, foldOdd, repeats3, LANES, 1, 1, BLOCKS_PER_REPEAT);
                    if (tail3 > 0) {
                        BlockReduceMax(foldEven[repeats3 * BLOCKS_PER_REPEAT], foldOdd[repeats3 * LANES], 1, tail3,
                            1, 1, BLOCKS_PER_REPEAT);
                    }
                    const uint32_t blocks3 = (blocks2 + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
                    WholeReduceMax(to, foldEven, blocks3, 1, 1, 1, BLOCKS_PER_REPEAT, ReduceOrder::ORDER_ONLY_VALUE);
                }
            }
        }
    }

    // Max of each row of a tile.
    __aicore__ inline void MaxRows(const LocalTensor<float> &to, const LocalTensor<float> &tile, uint32_t height,
        uint32_t across, uint32_t apart)
    {
        if (across <= LANES) {
            WholeReduceMax(to, tile, across, height, 1, 1, apart / FLOATS_PER_BLOCK, ReduceOrder::ORDER_ONLY_VALUE);
        } else {
            for (uint32_t line = 0; line < height; ++line) {
                MaxLanes(to[line], tile[line * apart], across);
            }
        }
    }

    // Sub of each row of a tile and its value, which fills a block that a stride of 0 repeats.
    __aicore__ inline void SubRows(const LocalTensor<float> &to, const LocalTensor<float> &tile,
        const LocalTensor<float> &values, uint32_t height, uint32_t width)
    {
        Brcb(blocks, values, static_cast<uint8_t>((height + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT),
            BrcbRepeatParams{1, BLOCKS_PER_REPEAT});
        const uint32_t wholeRepeats = width / LANES;
        const uint32_t tail = width % LANES;
        for (uint32_t line = 0; line < height; ++line) {
            if (wholeRepeats > 0) {
                Sub(to[line * width], tile[line * width], blocks[line * FLOATS_PER_BLOCK], LANES,
                    static_cast<uint8_t>(wholeRepeats), BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT,
                    BLOCKS_PER_REPEAT, 0});
            }
            if (tail > 0) {
                Sub(to[line * width + wholeRepeats * LANES], tile[line * width + wholeRepeats * LANES],
                    blocks[line * FLOATS_PER_BLOCK], tail, 1, BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT,
                    BLOCKS_PER_REPEAT, 0});
            }
        }
    }

    // Sum of each row of a tile of whole repeats: BlockReduceSum takes all rows at once.
    __aicore__ inline void SumWholeRows(const LocalTensor<float> &to, const LocalTensor<float> &tile,
        uint32_t height, uint32_t across)
    {
        BlockReduceSum(foldEven, tile, height * (across / LANES), LANES, 1, 1, BLOCKS_PER_REPEAT);
        if (across / FLOATS_PER_BLOCK % LANES == 0) {
            BlockReduceSum(foldOdd, foldEven, height * (across / FLOATS_PER_BLOCK / LANES), LANES, 1, 1,
                BLOCKS_PER_REPEAT);
            for (uint32_t lanePiece = 0; lanePiece < (across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK - LANES + LANES -
                1) / LANES; ++lanePiece) {
                const uint32_t lane = LANES + lanePiece * LANES;
                const uint32_t laneLeft = across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK - lane;
                const uint32_t laneCount = laneLeft < LANES ? laneLeft : LANES;
                Add(foldOdd, foldOdd, foldOdd[lane], laneCount, static_cast<uint8_t>(height), BinaryRepeatParams{1,
                    1, 1, static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK)});
            }
            const uint32_t lastWidth = across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK < LANES ? across /
                FLOATS_PER_BLOCK / FLOATS_PER_BLOCK : LANES;
            WholeReduceSum(to, foldOdd, lastWidth, height, 1, 1,
                across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK);
        } else {
            for (uint32_t lanePiece = 0; lanePiece < (across / FLOATS_PER_BLOCK - LANES + LANES - 1) / LANES;
                ++lanePiece) {
                const uint32_t lane = LANES + lanePiece * LANES;
                const uint32_t laneLeft = across / FLOATS_PER_BLOCK - lane;
                const uint32_t laneCount = laneLeft < LANES ? laneLeft : LANES;
                Add(foldEven, foldEven, foldEven[lane], laneCount, static_cast<uint8_t>(height),
                    BinaryRepeatParams{1, 1, 1, static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK),
                    static_cast<uint8_t>(across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK)});
            }
            const uint32_t lastWidth = across / FLOATS_PER_BLOCK < LANES ? across / FLOATS_PER_BLOCK : LANES;
            WholeReduceSum(to, foldEven, lastWidth, height, 1, 1, across / FLOATS_PER_BLOCK / FLOATS_PER_BLOCK);
        }
    }

    // BlockReduceSum leaves a number of each block at full rate; the slow part sees the last repeat.
    __aicore__ inline void SumLanes(const LocalTensor<float> &to, const LocalTensor<float> &lanes, uint32_t width)
    {
        if (width <= LANES) {
            WholeReduceSum(to, lanes, width, 1, 1, 1, BLOCKS_PER_REPEAT);
        } else {
            const uint32_t repeats1 = width / LANES;
            const uint32_t tail1 = width % LANES;
            BlockReduceSum(foldEven, lanes, repeats1, LANES, 1, 1, BLOCKS_PER_REPEAT);
            if (tail1 > 0) {
                BlockReduceSum(foldEven[repeats1 * BLOCKS_PER_REPEAT], lanes[repeats1 * LANES], 1, tail1, 1, 1,
                    BLOCKS_PER_REPEAT);
            }
            const uint32_t blocks1 = (width + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
            if (blocks1 <= LANES) {
                WholeReduceSum(to, foldEven, blocks1, 1, 1, 1, BLOCKS_PER_REPEAT);
            } else {
                const uint32_t repeats2 = blocks1 / LANES;
                const uint32_t tail2 = blocks1 % LANES;
                BlockReduceSum(foldOdd, foldEven, repeats2, LANES, 1, 1, BLOCKS_PER_REPEAT);
                if (tail2 > 0) {
                    BlockReduceSum(foldOdd[repeats2 * BLOCKS_PER_REPEAT], foldEven[repeats2 * LANES], 1, tail2, 1,
                        1, BLOCKS_PER_REPEAT);
                }
                const uint32_t blocks2 = (blocks1 + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
                if (blocks2 <= LANES) {
                    WholeReduceSum(to, foldOdd, blocks2, 1, 1, 1, BLOCKS_PER_REPEAT);
                } else {
                    const uint32_t repeats3 = blocks2 / LANES;
                    const uint32_t tail3 = blocks2 % LANES;
                    BlockReduceSum(foldEven, foldOdd, repeats3, LANES, 1, 1, BLOCKS_PER_REPEAT);
                    if (tail3 > 0) {
                        BlockReduceSum(foldEven[repeats3 * BLOCKS_PER_REPEAT], foldOdd[repeats3 * LANES], 1, tail3,
                            1, 1, BLOCKS_PER_REPEAT);
                    }
                    const uint32_t blocks3 = (blocks2 + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
                    WholeReduceSum(to, foldEven, blocks3, 1, 1, 1, BLOCKS_PER_REPEAT);
                }
            }
        }
    }

    // Sum of each row of a tile.
    __aicore__ inline void SumRows(const LocalTensor<float> &to, const LocalTensor<float> &tile, uint32_t height,
        uint32_t across, uint32_t apart)
    {
        if (across <= LANES) {
            WholeReduceSum(to, tile, across, height, 1, 1, apart / FLOATS_PER_BLOCK);
        } else {
            for (uint32_t line = 0; line < height; ++line) {
                SumLanes(to[line], tile[line * apart], across);
            }
        }
    }

    // Mul of each row of a tile and its value, which fills a block that a stride of 0 repeats.
    __aicore__ inline void MulRows(const LocalTensor<float> &to, const LocalTensor<float> &tile,
        const LocalTensor<float> &values, uint32_t height, uint32_t width)
    {
        Brcb(blocks, values, static_cast<uint8_t>((height + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT),
            BrcbRepeatParams{1, BLOCKS_PER_REPEAT});
        const uint32_t wholeRepeats = width / LANES;
        const uint32_t tail = width % LANES;
        for (uint32_t line = 0; line < height; ++line) {
            if (wholeRepeats > 0) {
                Mul(to[line * width], tile[line * width], blocks[line * FLOATS_PER_BLOCK], LANES,
                    static_cast<uint8_t>(wholeRepeats), BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT,
                    BLOCKS_PER_REPEAT, 0});
            }
            if (tail > 0) {
                Mul(to[line * width + wholeRepeats * LANES], tile[line * width + wholeRepeats * LANES],
                    blocks[line * FLOATS_PER_BLOCK], tail, 1, BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT,
                    BLOCKS_PER_REPEAT, 0});
            }
        }
    }

    __aicore__ inline void CopyOut(uint64_t row, uint32_t rows)
    {
        LocalTensor<float> outputLocal = outputLocalQueue.DeQue<float>();
        if (tiling_.columns % 8 == 0) {
            DataCopyPad(outputOutGlobal[row * tiling_.columns], outputLocal,
                DataCopyExtParams{1, static_cast<uint32_t>(rows * tiling_.columns * sizeof(float)), 0, 0, 0});
        } else {
            DataCopyPad(outputOutGlobal[row * tiling_.columns], outputLocal,
                DataCopyExtParams{static_cast<uint16_t>(rows),
                    static_cast<uint32_t>(tiling_.columns * sizeof(float)), 0,
                    static_cast<uint32_t>((tiling_.columns - tiling_.columns) * sizeof(float)), 0});
        }
        outputLocalQueue.FreeTensor(outputLocal);
    }

    OpTiling tiling_;
    TQue<TPosition::VECIN, 2> xLocalQueue;
    TQue<TPosition::VECOUT, 1> outputLocalQueue;
    TBuf<TPosition::VECCALC> rowValuesBuffer;
    TBuf<TPosition::VECCALC> foldEvenBuffer;
    TBuf<TPosition::VECCALC> foldOddBuffer;
    TBuf<TPosition::VECCALC> blocksBuffer;
    TBuf<TPosition::VECCALC> softmaxSumBuffer;
    TBuf<TPosition::VECCALC> row2Buffer;
    GlobalTensor<float> xInGlobal;
    GlobalTensor<float> outputOutGlobal;
    LocalTensor<float> rowValues;
    LocalTensor<float> foldEven;
    LocalTensor<float> foldOdd;
    LocalTensor<float> blocks;
    LocalTensor<float> softmaxSum;
    LocalTensor<float> row2;
};

extern "C" __global__ __vector__ void softmax_kernel(
    GM_ADDR x, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
{
    TPipe pipe;
    SoftmaxKernel op;
    op.Init(x, output, tiling, &pipe);
    op.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    softmax_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], workspace, tiling);
}
