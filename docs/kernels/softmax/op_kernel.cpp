#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr int32_t BUFFER_NUM = 2; // the next tile is copied while this one is computed
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t LANES = 64; // float32 elements of one repeat
constexpr uint8_t BLOCKS_PER_REPEAT = 8;
constexpr uint32_t FOLD_EVEN = 672;
constexpr uint32_t FOLD_ODD = 88;

class SoftmaxKernel {
public:
    __aicore__ inline SoftmaxKernel() {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR output, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x));
        outputGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(output));
        pipe->InitBuffer(xQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(outputQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(rowBuffer, 4 * ROW_CAPACITY * sizeof(float));
        pipe->InitBuffer(blockBuffer, ROW_CAPACITY * FLOATS_PER_BLOCK * sizeof(float));
        pipe->InitBuffer(foldBuffer, (FOLD_EVEN + FOLD_ODD) * sizeof(float));
        softmaxMax = rowBuffer.Get<float>();
        softmaxSum = softmaxMax[ROW_CAPACITY];
        row2 = softmaxMax[2 * ROW_CAPACITY];
        row3 = softmaxMax[3 * ROW_CAPACITY];
        blocks = blockBuffer.Get<float>();
        foldEven = foldBuffer.Get<float>();
        foldOdd = foldEven[FOLD_EVEN];
        // Row tensors are read in whole blocks and repeats.
        Duplicate(softmaxMax, 0.0f, 4 * ROW_CAPACITY);
    }

    __aicore__ inline void Process()
    {
        const uint64_t begin = GetBlockIdx() * tiling_.rowsPerCore;
        const uint64_t run = begin + tiling_.rowsPerCore;
        const uint64_t end = run < tiling_.rows ? run : tiling_.rows;
        uint32_t rows = RowsAt(begin, end);
        CopyIn(begin, rows);
        for (uint64_t row = begin; row < end;) {
            const uint64_t next = row + rows;
            const uint32_t nextSize = RowsAt(next, end);
            if (nextSize > 0) { // travels while this tile is computed
                CopyIn(next, nextSize);
            }
            Compute(rows);
            CopyOut(row, rows);
            row = next;
            rows = nextSize;
        }
    }

private:
    __aicore__ inline uint32_t RowsAt(uint64_t row, uint64_t end)
    {
        const uint64_t left = end - row;
        return left < tiling_.rowsPerTile ? left : tiling_.rowsPerTile;
    }

    __aicore__ inline void CopyIn(uint64_t row, uint32_t rows)
    {
        LocalTensor<float> xLocal = xQueue.AllocTensor<float>();
        DataCopyPad(xLocal, xGlobal[row * tiling_.columns],
            RowCopy<float>(rows),
            DataCopyPadExtParams<float>{false, 0, 0, 0});
        xQueue.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t rows)
    {
        LocalTensor<float> xLocal = xQueue.DeQue<float>();
        LocalTensor<float> outputLocal = outputQueue.AllocTensor<float>();
        const uint32_t count = rows * tiling_.pitch;
        // softmax
        MaxRows(softmaxMax, xLocal, rows);
        SubRows(xLocal, xLocal, softmaxMax, rows);
        Exp(xLocal, xLocal, count);
        SumRows(softmaxSum, xLocal, rows);
        Duplicate(row2, 1.0f, rows);
        Div(row3, row2, softmaxSum, rows);
        MulRows(outputLocal, xLocal, row3, rows);
        outputQueue.EnQue(outputLocal);
        xQueue.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint64_t row, uint32_t rows)
    {
        LocalTensor<float> outputLocal = outputQueue.DeQue<float>();
        DataCopyPad(outputGlobal[row * tiling_.columns], outputLocal,
            RowCopy<float>(rows));
        outputQueue.FreeTensor(outputLocal);
    }

    // Sum of each row of the tile.
    __aicore__ inline void SumRows(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows)
    {
        if (tiling_.columns <= LANES) { // one repeat a row
            WholeReduceSum(dst, src, tiling_.columns, rows, 1, 1,
                tiling_.pitch / FLOATS_PER_BLOCK);
            return;
        }
        for (uint32_t row = 0; row < rows; ++row) {
            SumRow(dst[row], src[row * tiling_.pitch], tiling_.columns);
        }
    }

    // Sum of one row. BlockReduceSum leaves one value per 32-byte block at full rate; the slower
    // WholeReduceSum only sees the last repeat.
    __aicore__ inline void SumRow(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t count)
    {
        LocalTensor<float> from = src;
        uint32_t width = count;
        for (uint32_t level = 0; width > LANES; ++level) {
            const LocalTensor<float> to = level % 2 == 0 ? foldEven : foldOdd;
            const uint32_t repeats = width / LANES;
            const uint32_t tail = width % LANES;
            if (repeats > 0) {
                BlockReduceSum(to, from, repeats, LANES, 1, 1, BLOCKS_PER_REPEAT);
            }
            if (tail > 0) {
                BlockReduceSum(to[repeats * BLOCKS_PER_REPEAT], from[repeats * LANES], 1, tail, 1, 1,
                    BLOCKS_PER_REPEAT);
            }
            width = (width + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
            from = to;
        }
        WholeReduceSum(dst, from, width, 1, 1, 1, BLOCKS_PER_REPEAT);
    }

    // Max of each row of the tile.
    __aicore__ inline void MaxRows(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows)
    {
        if (tiling_.columns <= LANES) { // one repeat a row
            WholeReduceMax(dst, src, tiling_.columns, rows, 1, 1,
                tiling_.pitch / FLOATS_PER_BLOCK, ReduceOrder::ORDER_ONLY_VALUE);
            return;
        }
        for (uint32_t row = 0; row < rows; ++row) {
            MaxRow(dst[row], src[row * tiling_.pitch], tiling_.columns);
        }
    }

    // Max of one row. BlockReduceMax leaves one value per 32-byte block at full rate; the slower
    // WholeReduceMax only sees the last repeat.
    __aicore__ inline void MaxRow(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t count)
    {
        LocalTensor<float> from = src;
        uint32_t width = count;
        for (uint32_t level = 0; width > LANES; ++level) {
            const LocalTensor<float> to = level % 2 == 0 ? foldEven : foldOdd;
            const uint32_t repeats = width / LANES;
            const uint32_t tail = width % LANES;
            if (repeats > 0) {
                BlockReduceMax(to, from, repeats, LANES, 1, 1, BLOCKS_PER_REPEAT);
            }
            if (tail > 0) {
                BlockReduceMax(to[repeats * BLOCKS_PER_REPEAT], from[repeats * LANES], 1, tail, 1, 1,
                    BLOCKS_PER_REPEAT);
            }
            width = (width + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK;
            from = to;
        }
        WholeReduceMax(dst, from, width, 1, 1, 1, BLOCKS_PER_REPEAT, ReduceOrder::ORDER_ONLY_VALUE);
    }

    // Mul each row of a tile and the row's value. Brcb fills one 32-byte block with each value; a block
    // stride of 0 then uses that block for the whole row.
    __aicore__ inline void MulRows(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                                  const LocalTensor<float> &values, uint32_t rows)
    {
        const uint8_t repeats = (rows + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT;
        Brcb(blocks, values, repeats, BrcbRepeatParams{1, BLOCKS_PER_REPEAT});
        const uint8_t wholeRepeats = tiling_.pitch / LANES;
        const uint32_t tail = tiling_.pitch % LANES;
        for (uint32_t row = 0; row < rows; ++row) {
            const LocalTensor<float> value = blocks[row * FLOATS_PER_BLOCK];
            const uint32_t start = row * tiling_.pitch;
            if (wholeRepeats > 0) {
                Mul(dst[start], src[start], value, LANES, wholeRepeats,
                    BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT, BLOCKS_PER_REPEAT, 0});
            }
            if (tail > 0) {
                const uint32_t rest = start + wholeRepeats * LANES;
                Mul(dst[rest], src[rest], value, tail, 1,
                    BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT, BLOCKS_PER_REPEAT, 0});
            }
        }
    }

    // Sub each row of a tile and the row's value. Brcb fills one 32-byte block with each value; a block
    // stride of 0 then uses that block for the whole row.
    __aicore__ inline void SubRows(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                                  const LocalTensor<float> &values, uint32_t rows)
    {
        const uint8_t repeats = (rows + BLOCKS_PER_REPEAT - 1) / BLOCKS_PER_REPEAT;
        Brcb(blocks, values, repeats, BrcbRepeatParams{1, BLOCKS_PER_REPEAT});
        const uint8_t wholeRepeats = tiling_.pitch / LANES;
        const uint32_t tail = tiling_.pitch % LANES;
        for (uint32_t row = 0; row < rows; ++row) {
            const LocalTensor<float> value = blocks[row * FLOATS_PER_BLOCK];
            const uint32_t start = row * tiling_.pitch;
            if (wholeRepeats > 0) {
                Sub(dst[start], src[start], value, LANES, wholeRepeats,
                    BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT, BLOCKS_PER_REPEAT, 0});
            }
            if (tail > 0) {
                const uint32_t rest = start + wholeRepeats * LANES;
                Sub(dst[rest], src[rest], value, tail, 1,
                    BinaryRepeatParams{1, 1, 0, BLOCKS_PER_REPEAT, BLOCKS_PER_REPEAT, 0});
            }
        }
    }

    // Rows that fill whole blocks travel as one piece; others are padded to a block each.
    template <typename T> __aicore__ inline DataCopyExtParams RowCopy(uint32_t rows)
    {
        const uint32_t rowBytes = tiling_.columns * sizeof(T);
        if (rowBytes % BLOCK_BYTES == 0) {
            return {1, rows * rowBytes, 0, 0, 0};
        }
        return {static_cast<uint16_t>(rows), rowBytes, 0, 0, 0};
    }

    OpTiling tiling_;
    TQue<TPosition::VECIN, BUFFER_NUM> xQueue;
    TQue<TPosition::VECOUT, 1> outputQueue;
    TBuf<TPosition::VECCALC> rowBuffer;
    TBuf<TPosition::VECCALC> blockBuffer;
    TBuf<TPosition::VECCALC> foldBuffer;
    GlobalTensor<float> xGlobal;
    GlobalTensor<float> outputGlobal;
    LocalTensor<float> softmaxMax;
    LocalTensor<float> softmaxSum;
    LocalTensor<float> row2;
    LocalTensor<float> row3;
    LocalTensor<float> blocks;
    LocalTensor<float> foldEven;
    LocalTensor<float> foldOdd;
};

extern "C" __global__ __vector__ void softmax_kernel(GM_ADDR x, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
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
