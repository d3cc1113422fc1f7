#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

namespace stage0 {

constexpr uint32_t SLOTS = 2; // one is filled while the other is used
constexpr uint32_t RESULTS = 2; // in L0C: one is stored while the other is computed
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t C0 = BLOCK_BYTES / sizeof(float); // columns of a fractal
constexpr uint32_t MOST_PITCH = 65535; // elements from row to row that one copy can step over
constexpr uint32_t MOST_REPEATS = 255;
constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result

class LinearStage0Kernel {
public:
    __aicore__ inline LinearStage0Kernel() {}
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        aGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(a));
        bGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(b));
        cGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c));
        pipe->InitBuffer(aPanels, SLOTS * BASE_M * PANEL_K * sizeof(float));
        pipe->InitBuffer(bPanels, SLOTS * PARTS * BASE_N * PANEL_K * sizeof(float));
        pipe->InitBuffer(aSteps, SLOTS * BASE_M * BASE_K * sizeof(float));
        pipe->InitBuffer(bSteps, SLOTS * BASE_N * BASE_K * sizeof(float));
        pipe->InitBuffer(results, RESULTS * BASE_M * BASE_N * sizeof(float));
        aPanel = aPanels.Get<float>();
        bPanel = bPanels.Get<float>();
        aStep = aSteps.Get<float>();
        bStep = bSteps.Get<float>();
        result = results.Get<float>();
    }

    __aicore__ inline void Process()
    {
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            SetFlag<HardEvent::MTE1_MTE2>(slot);
            SetFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t slot = 0; slot < RESULTS; ++slot) {
            SetFlag<HardEvent::FIX_M>(slot);
        }
        Panel panel = FirstPanel(GetBlockIdx());
        bool goesOn = panel.index < tiling_.tiles;
        if (goesOn) {
            Load(panel);
        }
        while (goesOn) {
            const Panel next = NextPanel(panel);
            goesOn = next.index < tiling_.tiles;
            if (goesOn) { // travels while this panel is multiplied
                Load(next);
            }
            Multiply(panel);
            panel = next;
        }
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            WaitFlag<HardEvent::MTE1_MTE2>(slot);
            WaitFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t slot = 0; slot < RESULTS; ++slot) {
            WaitFlag<HardEvent::FIX_M>(slot);
        }
    }

private:
    struct Tile {
        uint64_t matrix;
        uint64_t row;
        uint64_t column;
        uint32_t rows;
        uint32_t columns;
    };

    // One step along k in L1, for the tile with number `index`.
    struct Panel {
        Tile tile;
        uint64_t index;
        uint64_t start;
        uint64_t end; // of the sum that the panel is part of
        uint32_t depth;
        uint32_t slot;
        bool isFirst;
        bool isLast;
    };

    // Tiles run down a strip and then to the right, so that those at work at a time share rows and columns.
    __aicore__ inline Tile TileAt(uint64_t index)
    {
        const uint64_t perMatrix = static_cast<uint64_t>(tiling_.tilesM) * tiling_.tilesN;
        const uint64_t place = index % perMatrix;
        const uint64_t top = place / (tiling_.strip * tiling_.tilesN) * tiling_.strip;
        const uint64_t inside = place - top * tiling_.tilesN;
        const uint32_t height = Part(tiling_.tilesM - top, tiling_.strip);
        Tile tile;
        tile.matrix = index / perMatrix;
        tile.row = (top + inside % height) * tiling_.tileM;
        tile.column = inside / height * tiling_.tileN;
        tile.rows = Part(tiling_.m - tile.row, tiling_.tileM);
        tile.columns = Part(tiling_.n - tile.column, tiling_.tileN);
        return tile;
    }

    __aicore__ inline Panel FirstPanel(uint64_t index)
    {
        Panel panel;
        panel.index = index;
        if (panel.index < tiling_.tiles) {
            panel.tile = TileAt(panel.index);
            panel.start = 0;
            panel.end = tiling_.k;
            Place(panel, true);
        }
        return panel;
    }

    // The next one of the same tile, or the first one of the core's next tile.
    __aicore__ inline Panel NextPanel(const Panel &panel)
    {
        if (panel.isLast) {
            return FirstPanel(panel.index + tiling_.blockDim);
        }
        Panel next = panel;
        next.start += panel.depth;
        Place(next, false);
        return next;
    }

    __aicore__ inline void Place(Panel &panel, bool isFirst)
    {
        panel.slot = panelCount++ % SLOTS;
        panel.depth = Part(panel.end - panel.start, PANEL_K);
        panel.isLast = panel.start + panel.depth == panel.end;
        panel.isFirst = isFirst;
    }

    __aicore__ inline void Load(const Panel &panel)
    {
        WaitFlag<HardEvent::MTE1_MTE2>(panel.slot);
        LoadPanels(panel);
        SetFlag<HardEvent::MTE2_MTE1>(panel.slot);
    }

    // The results of a tile are computed one after the other, so that one is stored while the next is computed.
    __aicore__ inline void Multiply(const Panel &panel)
    {
        WaitFlag<HardEvent::MTE2_MTE1>(panel.slot);
        for (uint32_t column = 0; column < panel.tile.columns; column += tiling_.partN) {
            const uint32_t columns = Part(panel.tile.columns - column, tiling_.partN);
            const uint32_t slot = (resultCount + column / tiling_.partN) % RESULTS;
            if (panel.isFirst) {
                WaitFlag<HardEvent::FIX_M>(slot);
            }
            for (uint32_t step = 0; step < panel.depth; step += BASE_K) {
                const uint32_t part = Part(panel.depth - step, BASE_K);
                const uint32_t buffer = stepCount++ % SLOTS;
                WaitFlag<HardEvent::M_MTE1>(buffer);
                LoadLeft(aStep[buffer * BASE_M * BASE_K], panel, step, part);
                LoadRight(bStep[buffer * BASE_N * BASE_K], panel, column, columns, step, part);
                MultiplyStep(buffer, slot, panel.tile.rows, columns, part, panel.isFirst && step == 0);
            }
            if (panel.isLast) {
                Store(slot, panel.tile, column, columns);
            }
        }
        if (panel.isLast) {
            resultCount += CeilDiv(panel.tile.columns, tiling_.partN);
        }
        SetFlag<HardEvent::MTE1_MTE2>(panel.slot);
    }

    __aicore__ inline void LoadPanels(const Panel &panel)
    {
        const Tile &tile = panel.tile;
        LocalTensor<float> left = aPanel[panel.slot * BASE_M * PANEL_K];
        LocalTensor<float> right = bPanel[panel.slot * PARTS * BASE_N * PANEL_K];
        CopyPanel(left, aGlobal[tile.row * tiling_.aPitch + panel.start], tile.rows,
                  panel.depth, tiling_.aPitch);
        for (uint32_t column = 0; column < tile.columns; column += tiling_.partN) {
            CopyPanel(right[column * PANEL_K],
                      bGlobal[(tile.column + column) * tiling_.bPitch + panel.start],
                      Part(tile.columns - column, tiling_.partN), panel.depth, tiling_.bPitch);
        }
    }

    // Rows of memory into fractals, the columns of fractals one after the other.
    __aicore__ inline void CopyPanel(LocalTensor<float> panel, GlobalTensor<float> matrix, uint32_t rows,
                                     uint32_t columns, uint64_t pitch)
    {
        Nd2NzParams params;
        params.ndNum = 1;
        params.nValue = rows;
        params.dValue = columns;
        params.srcDValue = pitch < columns ? columns : pitch;
        params.dstNzC0Stride = Whole(rows, FRACTAL);
        params.dstNzNStride = 1;
        if (pitch <= MOST_PITCH) {
            DataCopy(panel, matrix, params);
            return;
        }
        params.nValue = 1;
        params.srcDValue = columns;
        for (uint32_t row = 0; row < rows; ++row) { // too far apart for one copy
            DataCopy(panel[row * C0], matrix[row * pitch], params);
        }
    }

    __aicore__ inline void MultiplyStep(uint32_t buffer, uint32_t slot, uint32_t rows, uint32_t columns,
                                        uint32_t depth, bool isFirst)
    {
        SetFlag<HardEvent::MTE1_M>(buffer);
        WaitFlag<HardEvent::MTE1_M>(buffer);
        MmadParams params;
        params.m = Whole(rows, FRACTAL); // a single row would be taken for a vector without fractals
        params.n = columns;
        params.k = depth;
        params.cmatrixInitVal = isFirst;
        Mmad(result[slot * BASE_M * BASE_N], aStep[buffer * BASE_M * BASE_K], bStep[buffer * BASE_N * BASE_K],
             params);
        if (params.m / FRACTAL * (Whole(columns, FRACTAL) / FRACTAL) < FEW_FRACTALS) {
            PipeBarrier<PIPE_M>();
        }
        SetFlag<HardEvent::M_MTE1>(buffer);
    }

    __aicore__ inline void LoadLeft(LocalTensor<float> target, const Panel &panel, uint32_t step,
                                    uint32_t part)
    {
        LoadData3DParamsV2<float> params;
        params.l1H = 1;
        params.l1W = Whole(panel.tile.rows, FRACTAL);
        params.channelSize = Whole(panel.depth, C0);
        params.kExtension = Whole(part, C0);
        params.mExtension = Whole(panel.tile.rows, FRACTAL);
        params.kStartPt = step;
        LoadData(target, aPanel[panel.slot * BASE_M * PANEL_K], params);
    }

    __aicore__ inline void LoadRight(LocalTensor<float> target, const Panel &panel, uint32_t column,
                                     uint32_t columns, uint32_t step, uint32_t part)
    {
        LocalTensor<float> source = bPanel[panel.slot * PARTS * BASE_N * PANEL_K];
        // The fractals of a step lie in a row.
        uint32_t left = Whole(part, C0) / C0 * (Whole(columns, FRACTAL) / FRACTAL);
        uint32_t place = column * PANEL_K + step * Whole(columns, FRACTAL);
        uint32_t done = 0;
        while (left > 0) {
            LoadData2DParams params;
            params.repeatTimes = Part(left, MOST_REPEATS);
            params.srcStride = 1;
            LoadData(target[done], source[place + done], params);
            done += params.repeatTimes * FRACTAL * C0;
            left -= params.repeatTimes;
        }
    }

    __aicore__ inline FixpipeParamsV220 Rows(const Tile &tile, uint32_t rows, uint32_t columns)
    {
        FixpipeParamsV220 params;
        params.nSize = columns;
        params.mSize = rows;
        params.srcStride = Whole(tile.rows, FRACTAL);
        params.dstStride = tiling_.n;
        params.ndNum = 1;
        return params;
    }

    __aicore__ inline void Store(uint32_t slot, const Tile &tile, uint32_t column, uint32_t columns)
    {
        SetFlag<HardEvent::M_FIX>(slot);
        WaitFlag<HardEvent::M_FIX>(slot);
        const FixpipeParamsV220 params = Rows(tile, tile.rows, columns);
        const uint64_t offset = (tile.matrix * tiling_.m + tile.row) * tiling_.n + tile.column + column;
        Fixpipe<float, float, CFG_ROW_MAJOR>(cGlobal[offset], result[slot * BASE_M * BASE_N], params);
        SetFlag<HardEvent::FIX_M>(slot);
    }

    __aicore__ inline uint32_t Part(uint64_t left, uint32_t most)
    {
        return left < most ? left : most;
    }

    __aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
    {
        return (value + unit - 1) / unit * unit;
    }

    OpTiling tiling_;
    TBuf<TPosition::A1> aPanels;
    TBuf<TPosition::B1> bPanels;
    TBuf<TPosition::A2> aSteps;
    TBuf<TPosition::B2> bSteps;
    TBuf<TPosition::CO1> results;
    GlobalTensor<float> aGlobal;
    GlobalTensor<float> bGlobal;
    GlobalTensor<float> cGlobal;
    LocalTensor<float> aPanel;
    LocalTensor<float> bPanel;
    LocalTensor<float> aStep;
    LocalTensor<float> bStep;
    LocalTensor<float> result;
    uint32_t resultCount = 0;
    uint32_t panelCount = 0;
    uint32_t stepCount = 0;
};

__aicore__ inline void linear_stage0_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
{
    TPipe pipe;
    LinearStage0Kernel op;
    op.Init(x, weight, output, tiling, &pipe);
    op.Process();
}

} // namespace stage0

namespace stage1 {

constexpr int32_t BUFFER_NUM = 2; // the next tile is copied while this one is computed
constexpr uint32_t BLOCK_BYTES = 32;

class LinearStage1Kernel {
public:
    __aicore__ inline LinearStage1Kernel() {}
    __aicore__ inline void Init(GM_ADDR mm, GM_ADDR bias, GM_ADDR output, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        mmGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(mm));
        biasGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(bias));
        outputGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(output));
        pipe->InitBuffer(mmQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(outputQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(biasQueue, 1, COLUMN_CAPACITY * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        const uint64_t begin = GetBlockIdx() * tiling_.rowsPerCore;
        const uint64_t run = begin + tiling_.rowsPerCore;
        const uint64_t end = run < tiling_.rows ? run : tiling_.rows;
        biasLocal = biasQueue.AllocTensor<float>();
        DataCopyPad(biasLocal, biasGlobal,
            DataCopyExtParams{1, static_cast<uint32_t>(tiling_.columns * sizeof(float)), 0, 0, 0},
            DataCopyPadExtParams<float>{false, 0, 0, 0});
        biasQueue.EnQue(biasLocal);
        biasLocal = biasQueue.DeQue<float>();
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
        biasQueue.FreeTensor(biasLocal);
    }

private:
    __aicore__ inline uint32_t RowsAt(uint64_t row, uint64_t end)
    {
        const uint64_t left = end - row;
        return left < tiling_.rowsPerTile ? left : tiling_.rowsPerTile;
    }

    __aicore__ inline void CopyIn(uint64_t row, uint32_t rows)
    {
        LocalTensor<float> mmLocal = mmQueue.AllocTensor<float>();
        DataCopyPad(mmLocal, mmGlobal[row * tiling_.columns],
            RowCopy<float>(rows),
            DataCopyPadExtParams<float>{false, 0, 0, 0});
        mmQueue.EnQue(mmLocal);
    }

    __aicore__ inline void Compute(uint32_t rows)
    {
        LocalTensor<float> mmLocal = mmQueue.DeQue<float>();
        LocalTensor<float> outputLocal = outputQueue.AllocTensor<float>();
        const uint32_t count = rows * tiling_.pitch;
        // add
        AddColumns(mmLocal, mmLocal, biasLocal, rows);
        // relu
        Relu(outputLocal, mmLocal, count);
        outputQueue.EnQue(outputLocal);
        mmQueue.FreeTensor(mmLocal);
    }

    __aicore__ inline void CopyOut(uint64_t row, uint32_t rows)
    {
        LocalTensor<float> outputLocal = outputQueue.DeQue<float>();
        DataCopyPad(outputGlobal[row * tiling_.columns], outputLocal,
            RowCopy<float>(rows));
        outputQueue.FreeTensor(outputLocal);
    }

    // Add each row of a tile and the same columns.
    __aicore__ inline void AddColumns(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                                  const LocalTensor<float> &columns, uint32_t rows)
    {
        for (uint32_t row = 0; row < rows; ++row) {
            const uint32_t start = row * tiling_.pitch;
            Add(dst[start], src[start], columns, tiling_.pitch);
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
    TQue<TPosition::VECIN, BUFFER_NUM> mmQueue;
    TQue<TPosition::VECIN, 1> biasQueue;
    TQue<TPosition::VECOUT, 1> outputQueue;
    GlobalTensor<float> mmGlobal;
    GlobalTensor<float> biasGlobal;
    GlobalTensor<float> outputGlobal;
    LocalTensor<float> biasLocal;
};

__aicore__ inline void linear_stage1_kernel(GM_ADDR bias, GM_ADDR mm, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
{
    TPipe pipe;
    LinearStage1Kernel op;
    op.Init(mm, bias, output, tiling, &pipe);
    op.Process();
}

} // namespace stage1

// One launch: a part begins when what it reads has been written.
extern "C" __global__ __mix__(1, 2) void linear_kernels0(
    GM_ADDR xMemory, GM_ADDR weightMemory, GM_ADDR biasMemory, GM_ADDR output0Memory, GM_ADDR workspace,
    OpTiling tiling)
{
    if ASCEND_IS_AIC {
        if (GetBlockIdx() < tiling.stage0.blockDim) {
            stage0::linear_stage0_kernel(
                xMemory, weightMemory, workspace + tiling.slot0, workspace + tiling.scratch, tiling.stage0);
        }
    }
    PipeBarrier<PIPE_ALL>();
    SyncAll<false>();
    if ASCEND_IS_AIV {
        if (GetBlockIdx() < tiling.stage1.blockDim) {
            stage1::linear_stage1_kernel(
                biasMemory, workspace + tiling.slot0, output0Memory, workspace + tiling.scratch, tiling.stage1);
        }
    }
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    linear_kernels0<<<tiling.blockDim, nullptr, stream>>>(
        tensors[0], tensors[1], tensors[2], tensors[3], workspace, tiling);
}
