#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t PANELS = 2; // in L1: some are loaded while one is multiplied
constexpr uint32_t STEPS = 2; // in L0A and L0B: one is filled while the other is used
constexpr uint32_t SUMS = 2; // in L0C: one is stored while the other is computed
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t C0 = BLOCK_BYTES / sizeof(float); // columns of a fractal
constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result
constexpr uint32_t MOST_PITCH = 65535; // elements from row to row that one copy can step over
constexpr uint32_t MOST_REPEATS = 255;
constexpr uint16_t RESULT_READY = 0; // from the cube core to its vector cores
constexpr uint16_t RESULT_TAKEN = 1; // from both vector cores to the cube core

// Some rows or columns, of all that there are.
struct Span {
    uint32_t start;
    uint32_t count;
    uint32_t of;
};

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
        aPanel = inL1.Alloc<TPosition::A1, float, PANELS * BASE_M * PANEL_K>();
        bPanel = inL1.Alloc<TPosition::B1, float, PANELS * PARTS * BASE_N * PANEL_K>();
        aStep = inL0A.Alloc<TPosition::A2, float, STEPS * BASE_M * BASE_K>();
        bStep = inL0B.Alloc<TPosition::B2, float, STEPS * BASE_N * BASE_K>();
        result = inL0C.Alloc<TPosition::CO1, float, SUMS * BASE_M * BASE_N>();
    }

    __aicore__ inline void Process()
    {
        for (uint32_t slot = 0; slot < PANELS; ++slot) {
            SetFlag<HardEvent::MTE1_MTE2>(slot);
        }
        for (uint32_t slot = 0; slot < STEPS; ++slot) {
            SetFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t slot = 0; slot < SUMS; ++slot) {
            SetFlag<HardEvent::FIX_M>(slot);
        }
        Turn ahead = First(GetBlockIdx());
        Turn turns[PANELS];
        uint64_t used = 0;
        for (uint64_t loaded = 0;; ++used) {
            while (ahead.index < tiling_.tiles && loaded < used + PANELS) { // travel in the meantime
                Load(ahead);
                turns[loaded++ % PANELS] = ahead;
                ahead = Next(ahead);
            }
            if (used == loaded) {
                break;
            }
            Use(turns[used % PANELS]);
        }
        for (uint32_t slot = 0; slot < PANELS; ++slot) {
            WaitFlag<HardEvent::MTE1_MTE2>(slot);
        }
        for (uint32_t slot = 0; slot < STEPS; ++slot) {
            WaitFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t slot = 0; slot < SUMS; ++slot) {
            WaitFlag<HardEvent::FIX_M>(slot);
        }
        for (uint32_t left = storeCount < HANDED ? storeCount : HANDED; left > 0; --left) {
            CrossCoreWaitFlag(RESULT_TAKEN);
        }
    }

private:
    // One turn of the loops: what is in L1 at a time.
    struct Turn {
        uint64_t index;
        uint64_t panel;
        uint64_t row;
        uint64_t column;
        uint32_t rows;
        uint32_t columns;
        uint64_t panels;
        uint64_t start;
        uint32_t depth;
        uint32_t slot;
    };

    __aicore__ inline Turn First(uint64_t index)
    {
        Turn turn;
        turn.index = index;
        if (index < tiling_.tiles) {
            const uint64_t place = turn.index % (tiling_.tilesM * tiling_.tilesN);
            const uint64_t top = place / (tiling_.strip * tiling_.tilesN) * tiling_.strip;
            const uint64_t inside = place - top * tiling_.tilesN;
            const uint64_t height = tiling_.tilesM - top < tiling_.strip ? tiling_.tilesM - top : tiling_.strip;
            turn.row = (top + inside % height) * tiling_.tileM;
            turn.column = inside / height * tiling_.tileN;
            turn.rows = static_cast<uint32_t>(tiling_.m - turn.row < tiling_.tileM ? tiling_.m - turn.row :
                tiling_.tileM);
            turn.columns = static_cast<uint32_t>(tiling_.n - turn.column < tiling_.tileN ? tiling_.n - turn.column :
                tiling_.tileN);
            turn.panels = (tiling_.k + PANEL_K - 1) / PANEL_K;
            Enter(turn, 0);
        }
        return turn;
    }

    // The next one of the same tile, or the first one of the core's next tile.
    __aicore__ inline Turn Next(const Turn &turn)
    {
        if (turn.panel + 1 == turn.panels) {
            return First(turn.index + tiling_.blockDim);
        }
        Turn next = turn;
        Enter(next, turn.panel + 1);
        return next;
    }

    __aicore__ inline void Enter(Turn &turn, uint64_t panel)
    {
        turn.panel = panel;
        turn.start = turn.panel * PANEL_K;
        turn.depth = static_cast<uint32_t>(tiling_.k - turn.start < PANEL_K ? tiling_.k - turn.start : PANEL_K);
        turn.slot = turnCount++ % PANELS;
    }

    __aicore__ inline void Load(const Turn &turn)
    {
        WaitFlag<HardEvent::MTE1_MTE2>(turn.slot);
        CopyRows(aPanel[turn.slot * (BASE_M * PANEL_K)], aGlobal[turn.row * tiling_.aPitch + turn.start], turn.rows,
            turn.depth, tiling_.aPitch);
        for (uint32_t firstPiece = 0; firstPiece < (turn.columns + tiling_.partN - 1) / tiling_.partN; ++firstPiece) {
            const uint32_t first = firstPiece * tiling_.partN;
            const uint32_t firstLeft = turn.columns - first;
            const uint32_t firstCount = firstLeft < tiling_.partN ? firstLeft : tiling_.partN;
            CopyRows(bPanel[turn.slot * (PARTS * BASE_N * PANEL_K) + first * PANEL_K],
                bGlobal[(turn.column + first) * tiling_.bPitch + turn.start], firstCount, turn.depth, tiling_.bPitch);
        }
        SetFlag<HardEvent::MTE2_MTE1>(turn.slot);
    }

    __aicore__ inline void Use(const Turn &turn)
    {
        WaitFlag<HardEvent::MTE2_MTE1>(turn.slot);
        for (uint32_t firstPiece = 0; firstPiece < (turn.columns + tiling_.partN - 1) / tiling_.partN; ++firstPiece) {
            const uint32_t first = firstPiece * tiling_.partN;
            const uint32_t firstLeft = turn.columns - first;
            const uint32_t firstCount = firstLeft < tiling_.partN ? firstLeft : tiling_.partN;
            const uint32_t sum = (sumCount + firstPiece) % SUMS;
            if (turn.panel == 0) {
                WaitFlag<HardEvent::FIX_M>(sum);
            }
            AddSteps(turn, first, firstCount, sum);
            if (turn.panel + 1 == turn.panels) {
                SetFlag<HardEvent::M_FIX>(sum);
                WaitFlag<HardEvent::M_FIX>(sum);
                if (storeCount >= HANDED) { // its place in the workspace is taken until then
                    CrossCoreWaitFlag(RESULT_TAKEN);
                }
                const uint64_t place = storeCount++ % HANDED * BASE_M * BASE_N;
                Store(cGlobal[place], result[sum * (BASE_M * BASE_N)], turn.rows, firstCount, turn.rows, firstCount);
                SetFlag<HardEvent::FIX_M>(sum);
                CrossCoreSetFlag<2, PIPE_FIX>(RESULT_READY);
            }
        }
        if (turn.panel + 1 == turn.panels) {
            sumCount += (turn.columns + tiling_.partN - 1) / tiling_.partN;
        }
        SetFlag<HardEvent::MTE1_MTE2>(turn.slot);
    }

    // The panels of a turn, step by step, into one of the sums.
    __aicore__ inline void AddSteps(const Turn &turn, uint32_t first, uint32_t firstCount, uint32_t sum)
    {
        for (uint32_t placePiece = 0; placePiece < (turn.depth + BASE_K - 1) / BASE_K; ++placePiece) {
            const uint32_t place = placePiece * BASE_K;
            const uint32_t placeLeft = turn.depth - place;
            const uint32_t placeCount = placeLeft < BASE_K ? placeLeft : BASE_K;
            const uint32_t step = stepCount++ % STEPS;
            WaitFlag<HardEvent::M_MTE1>(step);
            LoadLeft(aStep[step * (BASE_M * BASE_K)], aPanel[turn.slot * (BASE_M * PANEL_K)], Span{0, turn.rows,
                turn.rows}, Span{place, placeCount, turn.depth});
            LoadRun(bStep[step * (BASE_N * BASE_K)],
                bPanel[turn.slot * (PARTS * BASE_N * PANEL_K) + first * PANEL_K], firstCount, place, placeCount);
            SetFlag<HardEvent::MTE1_M>(step);
            WaitFlag<HardEvent::MTE1_M>(step);
            Multiply(result[sum * (BASE_M * BASE_N)], aStep[step * (BASE_M * BASE_K)],
                bStep[step * (BASE_N * BASE_K)], turn.rows, firstCount, placeCount, turn.panel == 0 && placePiece == 0);
            SetFlag<HardEvent::M_MTE1>(step);
        }
    }

    // Rows of memory into fractals, the columns of fractals one after the other.
    __aicore__ inline void CopyRows(LocalTensor<float> panel, GlobalTensor<float> matrix, uint32_t rows,
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

    // Rows and columns of a panel that is as high and wide as `of`, as they lie.
    __aicore__ inline void LoadLeft(LocalTensor<float> target, LocalTensor<float> panel, Span rows, Span columns)
    {
        LoadData3DParamsV2<float> params;
        params.l1H = 1;
        params.l1W = Whole(rows.of, FRACTAL);
        params.channelSize = Whole(columns.of, C0);
        params.mExtension = Whole(rows.count, FRACTAL);
        params.mStartPt = rows.start;
        params.kExtension = Whole(columns.count, C0);
        params.kStartPt = columns.start;
        LoadData(target, panel, params);
    }

    // All rows of columns of a panel: their fractals lie in a row.
    __aicore__ inline void LoadRun(LocalTensor<float> target, LocalTensor<float> panel, uint32_t rows,
                                   uint32_t start, uint32_t columns)
    {
        uint32_t left = Whole(columns, C0) / C0 * (Whole(rows, FRACTAL) / FRACTAL);
        const uint32_t place = start * Whole(rows, FRACTAL);
        uint32_t done = 0;
        while (left > 0) {
            LoadData2DParams params;
            params.repeatTimes = left < MOST_REPEATS ? left : MOST_REPEATS;
            params.srcStride = 1;
            LoadData(target[done], panel[place + done], params);
            done += params.repeatTimes * FRACTAL * C0;
            left -= params.repeatTimes;
        }
    }

    __aicore__ inline void Multiply(LocalTensor<float> sum, LocalTensor<float> left, LocalTensor<float> right,
                                    uint32_t rows, uint32_t columns, uint32_t depth, bool isFirst)
    {
        MmadParams params;
        params.m = Whole(rows, FRACTAL); // a single row would be taken for a vector without fractals
        params.n = columns;
        params.k = depth;
        params.cmatrixInitVal = isFirst;
        Mmad(sum, left, right, params);
        if (params.m / FRACTAL * (Whole(columns, FRACTAL) / FRACTAL) < FEW_FRACTALS) {
            PipeBarrier<PIPE_M>();
        }
    }

    // Part of a sum that is `height` rows high, into rows of memory.
    __aicore__ inline void Store(GlobalTensor<float> target, LocalTensor<float> sum, uint32_t rows,
                                 uint32_t columns, uint32_t height, uint32_t pitch)
    {
        FixpipeParamsV220 params;
        params.nSize = columns;
        params.mSize = rows;
        params.srcStride = Whole(height, FRACTAL);
        params.dstStride = pitch;
        params.ndNum = 1;
        Fixpipe<float, float, CFG_ROW_MAJOR>(target, sum, params);
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
    uint32_t turnCount = 0;
    uint32_t stepCount = 0;
    uint32_t sumCount = 0;
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
            const uint64_t matrix = index / (tiling_.tilesM * tiling_.tilesN);
            const uint64_t place = index % (tiling_.tilesM * tiling_.tilesN);
            const uint64_t top = place / (tiling_.strip * tiling_.tilesN) * tiling_.strip;
            const uint64_t inside = place - top * tiling_.tilesN;
            const uint64_t height = tiling_.tilesM - top < tiling_.strip ? tiling_.tilesM - top : tiling_.strip;
            const uint64_t row = (top + inside % height) * tiling_.tileM;
            const uint64_t column = inside / height * tiling_.tileN;
            const uint32_t rows = static_cast<uint32_t>(tiling_.m - row < tiling_.tileM ? tiling_.m - row :
                tiling_.tileM);
            const uint32_t columns = static_cast<uint32_t>(tiling_.n - column < tiling_.tileN ? tiling_.n - column :
                tiling_.tileN);
            for (uint32_t firstPiece = 0; firstPiece < (columns + tiling_.partN - 1) / tiling_.partN; ++firstPiece) {
                const uint32_t first = firstPiece * tiling_.partN;
                const uint32_t firstLeft = columns - first;
                const uint32_t firstCount = firstLeft < tiling_.partN ? firstLeft : tiling_.partN;
                const uint64_t spot = count++ % HANDED * BASE_M * BASE_N;
                CrossCoreWaitFlag(RESULT_READY);
                Take(Region{matrix * tiling_.m + row, column + first, spot, rows, firstCount});
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

extern "C" __global__ __mix__(1, 2) void linear_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR output,
    GM_ADDR workspace, OpTiling tiling)
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
