#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t SLOTS = 2; // one is filled while the other is used
constexpr uint32_t RESULTS = 2; // in L0C: one is stored while the other is computed
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t C0 = BLOCK_BYTES / sizeof(float); // columns of a fractal
constexpr uint32_t MOST_PITCH = 65535; // elements from row to row that one copy can step over
constexpr uint32_t MOST_REPEATS = 255;
constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result
constexpr uint16_t RESULT_READY = 0; // from the cube core to its vector cores
constexpr uint16_t RESULT_TAKEN = 1; // from both vector cores to the cube core

// One tile of the result.
struct Tile {
    uint64_t matrix;
    uint64_t row;
    uint64_t column;
    uint32_t rows;
    uint32_t columns;
};

__aicore__ inline uint32_t Part(uint64_t left, uint32_t most)
{
    return left < most ? left : most;
}

// Tiles run down a strip and then to the right, so that those at work at a time share rows and columns.
__aicore__ inline Tile TileAt(const OpTiling &tiling, uint64_t index)
{
    const uint64_t perMatrix = static_cast<uint64_t>(tiling.tilesM) * tiling.tilesN;
    const uint64_t place = index % perMatrix;
    const uint64_t top = place / (tiling.strip * tiling.tilesN) * tiling.strip;
    const uint64_t inside = place - top * tiling.tilesN;
    const uint32_t height = Part(tiling.tilesM - top, tiling.strip);
    Tile tile;
    tile.matrix = index / perMatrix;
    tile.row = (top + inside % height) * tiling.tileM;
    tile.column = inside / height * tiling.tileN;
    tile.rows = Part(tiling.m - tile.row, tiling.tileM);
    tile.columns = Part(tiling.n - tile.column, tiling.tileN);
    return tile;
}

// The cube core: products, handed over to the vector cores result by result.
class LinearProduct {
public:
    __aicore__ inline LinearProduct() {}
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const OpTiling &tiling)
    {
        tiling_ = tiling;
        aGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(a));
        bGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(b));
        cGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c));
        LocalMemAllocator<Hardware::L1> inL1;
        LocalMemAllocator<Hardware::L0A> inL0A;
        LocalMemAllocator<Hardware::L0B> inL0B;
        LocalMemAllocator<Hardware::L0C> inL0C;
        aPanel = inL1.Alloc<TPosition::A1, float, SLOTS * BASE_M * PANEL_K>();
        bPanel = inL1.Alloc<TPosition::B1, float, SLOTS * PARTS * BASE_N * PANEL_K>();
        aStep = inL0A.Alloc<TPosition::A2, float, SLOTS * BASE_M * BASE_K>();
        bStep = inL0B.Alloc<TPosition::B2, float, SLOTS * BASE_N * BASE_K>();
        result = inL0C.Alloc<TPosition::CO1, float, RESULTS * BASE_M * BASE_N>();
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
        for (uint32_t left = Part(storeCount, HANDED); left > 0; --left) {
            CrossCoreWaitFlag(RESULT_TAKEN);
        }
    }

private:
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

    __aicore__ inline Panel FirstPanel(uint64_t index)
    {
        Panel panel;
        panel.index = index;
        if (panel.index < tiling_.tiles) {
            panel.tile = TileAt(tiling_, panel.index);
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
            resultCount += Whole(panel.tile.columns, tiling_.partN) / tiling_.partN;
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
        params.dstStride = columns;
        params.ndNum = 1;
        return params;
    }

    __aicore__ inline void Store(uint32_t slot, const Tile &tile, uint32_t column, uint32_t columns)
    {
        SetFlag<HardEvent::M_FIX>(slot);
        WaitFlag<HardEvent::M_FIX>(slot);
        const FixpipeParamsV220 params = Rows(tile, tile.rows, columns);
        if (storeCount >= HANDED) { // its place in the workspace is taken until then
            CrossCoreWaitFlag(RESULT_TAKEN);
        }
        const uint64_t offset = storeCount++ % HANDED * BASE_M * BASE_N;
        Fixpipe<float, float, CFG_ROW_MAJOR>(cGlobal[offset], result[slot * BASE_M * BASE_N], params);
        SetFlag<HardEvent::FIX_M>(slot);
        CrossCoreSetFlag<2, PIPE_FIX>(RESULT_READY);
    }

    __aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
    {
        return (value + unit - 1) / unit * unit;
    }

    OpTiling tiling_;
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
    uint32_t storeCount = 0;
};

// Part of the result as the cube core hands it over: each of its two vector cores takes half of the rows.
struct Region {
    uint64_t row; // over all matrices
    uint64_t column;
    uint64_t place; // of the first element among what the cube core has handed over
    uint32_t rows;
    uint32_t columns;
};

constexpr int32_t BUFFER_NUM = 2; // the next tile is copied while this one is computed
constexpr uint32_t LANES = 64; // float32 elements of one repeat
class LinearEpilogue {
public:
    __aicore__ inline LinearEpilogue() {}
    __aicore__ inline void Init(GM_ADDR mm, GM_ADDR bias, GM_ADDR output, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        mmGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(mm));
        biasGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(bias));
        outputGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(output));
        pipe->InitBuffer(mmQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(outputQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(biasQueue, BUFFER_NUM, COLUMN_CAPACITY * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        const uint64_t core = GetBlockIdx() / GetTaskRatio();
        uint32_t count = 0;
        for (uint64_t index = core; index < tiling_.tiles; index += tiling_.blockDim) {
            const Tile tile = TileAt(tiling_, index);
            const uint64_t row = tile.matrix * tiling_.m + tile.row;
            for (uint32_t column = 0; column < tile.columns; column += tiling_.partN) {
                const uint32_t columns = Part(tile.columns - column, tiling_.partN);
                const uint64_t place = count++ % HANDED * BASE_M * BASE_N;
                CrossCoreWaitFlag(RESULT_READY);
                Take(Region{row, tile.column + column, place, tile.rows, columns});
                CrossCoreSetFlag<2, PIPE_MTE2>(RESULT_TAKEN);
            }
        }
        Finish();
    }

private:
    __aicore__ inline void Take(const Region &region)
    {
        const uint32_t half = (region.rows + 1) / 2;
        const uint32_t end = GetSubBlockIdx() == 0 ? half : region.rows;
        const uint32_t most = RowsAtATime(half, region.columns);
        for (uint32_t row = GetSubBlockIdx() == 0 ? 0 : half; row < end;) {
            Region part = region;
            part.row += row;
            part.place += row * region.columns;
            part.rows = end - row < most ? end - row : most;
            CopyIn(part);
            Finish();
            waiting = part;
            row += part.rows;
        }
    }

    __aicore__ inline void Finish()
    {
        if (waiting.rows > 0) {
            Compute(waiting);
            CopyOut(waiting);
            waiting.rows = 0;
        }
    }

    // Equal tiles of a region.
    __aicore__ inline uint32_t RowsAtATime(uint32_t rows, uint32_t columns)
    {
        const uint32_t fitting = TILE_ELEMENTS / Whole(columns, 8);
        const uint32_t most = fitting < ROW_CAPACITY ? fitting : ROW_CAPACITY;
        const uint32_t tiles = (rows + most - 1) / most;
        return (rows + tiles - 1) / tiles;
    }

    __aicore__ inline void CopyIn(const Region &part)
    {
        LocalTensor<float> mmLocal = mmQueue.AllocTensor<float>();
        DataCopyPad(mmLocal, mmGlobal[part.place],
            RowsOf<float>(part.rows, part.columns, part.columns),
            DataCopyPadExtParams<float>{false, 0, 0, 0});
        mmQueue.EnQue(mmLocal);
        LocalTensor<float> biasLocal = biasQueue.AllocTensor<float>();
        DataCopyPad(biasLocal, biasGlobal[part.column],
            RowsOf<float>(1, part.columns, part.columns),
            DataCopyPadExtParams<float>{false, 0, 0, 0});
        biasQueue.EnQue(biasLocal);
    }

    __aicore__ inline void Compute(const Region &part)
    {
        const uint32_t rows = part.rows;
        tileColumns = part.columns;
        tilePitch = Whole(part.columns, FLOATS_PER_BLOCK);
        LocalTensor<float> mmLocal = mmQueue.DeQue<float>();
        LocalTensor<float> biasLocal = biasQueue.DeQue<float>();
        LocalTensor<float> outputLocal = outputQueue.AllocTensor<float>();
        const uint32_t count = rows * tilePitch;
        // add
        AddColumns(mmLocal, mmLocal, biasLocal, rows);
        // relu
        Relu(outputLocal, mmLocal, count);
        outputQueue.EnQue(outputLocal);
        mmQueue.FreeTensor(mmLocal);
        biasQueue.FreeTensor(biasLocal);
    }

    __aicore__ inline void CopyOut(const Region &part)
    {
        LocalTensor<float> outputLocal = outputQueue.DeQue<float>();
        DataCopyPad(outputGlobal[part.row * tiling_.n + part.column], outputLocal,
            RowsTo<float>(part.rows, part.columns, tiling_.n));
        outputQueue.FreeTensor(outputLocal);
    }

    // Rows in memory, `pitch` elements from one to the next, into rows of whole blocks.
    template <typename T>
    __aicore__ inline DataCopyExtParams RowsOf(uint32_t rows, uint32_t columns, uint64_t pitch)
    {
        const uint32_t bytes = columns * sizeof(T);
        if (pitch == columns && bytes % BLOCK_BYTES == 0) { // one piece
            return {1, rows * bytes, 0, 0, 0};
        }
        return {static_cast<uint16_t>(rows), bytes, static_cast<uint32_t>(pitch * sizeof(T) - bytes), 0, 0};
    }

    // The same the other way.
    template <typename T>
    __aicore__ inline DataCopyExtParams RowsTo(uint32_t rows, uint32_t columns, uint64_t pitch)
    {
        const DataCopyExtParams copy = RowsOf<T>(rows, columns, pitch);
        return {copy.blockCount, copy.blockLen, copy.dstStride, copy.srcStride, 0};
    }

    __aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
    {
        return (value + unit - 1) / unit * unit;
    }

    // Add each row of a tile and the same columns.
    __aicore__ inline void AddColumns(const LocalTensor<float> &dst, const LocalTensor<float> &src,
                                  const LocalTensor<float> &columns, uint32_t rows)
    {
        const uint8_t pitchBlocks = tilePitch / FLOATS_PER_BLOCK;
        for (uint32_t lane = 0; lane < tilePitch; lane += LANES) {
            const uint32_t left = tilePitch - lane;
            Add(dst[lane], src[lane], columns[lane], left < LANES ? left : LANES, rows,
                BinaryRepeatParams{1, 1, 1, pitchBlocks, pitchBlocks, 0});
        }
    }

    OpTiling tiling_;
    Region waiting{}; // copied in and not yet computed
    uint32_t tileColumns = 0;
    uint32_t tilePitch = 0; // elements from row to row in the unified buffer
    TQue<TPosition::VECIN, BUFFER_NUM> mmQueue;
    TQue<TPosition::VECIN, BUFFER_NUM> biasQueue;
    TQue<TPosition::VECOUT, 1> outputQueue;
    GlobalTensor<float> mmGlobal;
    GlobalTensor<float> biasGlobal;
    GlobalTensor<float> outputGlobal;
};

extern "C" __global__ __mix__(1, 2) void linear_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
{
    // What a cube core hands over lies in its own part of the workspace.
    if ASCEND_IS_AIC { // without a TPipe, which on cube cores sets events of its own
        InitSocState();
        LinearProduct op;
        op.Init(x, weight, workspace + GetBlockIdx() * HANDED_BYTES, tiling);
        op.Process();
        PipeBarrier<PIPE_ALL>();
    }
    if ASCEND_IS_AIV {
        TPipe pipe;
        LinearEpilogue op;
        op.Init(workspace + GetBlockIdx() / GetTaskRatio() * HANDED_BYTES, bias, output, tiling, &pipe);
        op.Process();
    }
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    linear_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], tensors[3], workspace, tiling);
}
