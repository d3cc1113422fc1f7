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

// The cube core: products, passed to the vector cores result by result.
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

// A vector core: results of the cube core, part by part, and what follows them, before they are stored.
class LinearKernel {
public:
    __aicore__ inline LinearKernel() {}
    __aicore__ inline void Init(GM_ADDR biasIn, GM_ADDR outputOut, GM_ADDR c, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        biasInGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(biasIn));
        outputOutGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(outputOut));
        cGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c));
        pipe->InitBuffer(mmLocalQueue, 2, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(outputLocalQueue, 2, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(biasLocalQueue, 2, COLUMN_CAPACITY * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        const uint64_t indexEnd = tiling_.tiles;
        if (GetBlockIdx() / GetTaskRatio() < indexEnd) {
            CopyIn(GetBlockIdx() / GetTaskRatio(), 0);
        }
        for (uint64_t index = GetBlockIdx() / GetTaskRatio(); index < indexEnd; index += GetBlockNum()) {
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
            const uint32_t upperRows = (rows + 2 - 1) / 2;
            const uint32_t mostRows = TILE_ELEMENTS / ((tiling_.partN + WIDEST_STEP - 1) / WIDEST_STEP *
                WIDEST_STEP) < ROW_CAPACITY ? TILE_ELEMENTS / ((tiling_.partN + WIDEST_STEP - 1) / WIDEST_STEP *
                WIDEST_STEP) : ROW_CAPACITY;
            const uint32_t ownParts = (upperRows + mostRows - 1) / mostRows;
            const uint32_t rowsAtATime = (upperRows + ownParts - 1) / ownParts;
            const uint32_t ownFirst = GetSubBlockIdx() == 0 ? 0 : upperRows;
            const uint32_t ownEnd = GetSubBlockIdx() == 0 ? upperRows : rows;
            for (uint32_t ownPart = 0; ownPart < (columns + tiling_.partN - 1) / tiling_.partN * ownParts; ++ownPart) {
                const uint32_t handedNumber = ownPart / ownParts;
                const uint32_t firstColumn = handedNumber * tiling_.partN;
                const uint32_t ownPlace = ownFirst + ownPart % ownParts * rowsAtATime;
                const uint32_t ownRows = ownPlace < ownEnd ? (ownEnd - ownPlace < rowsAtATime ? ownEnd - ownPlace :
                    rowsAtATime) : 0;
                const uint64_t ownRow = matrix * tiling_.m + row + ownPlace;
                const uint32_t ownColumns = columns - firstColumn < tiling_.partN ? columns - firstColumn :
                    tiling_.partN;
                const uint32_t ownPitch = (ownColumns + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK * FLOATS_PER_BLOCK;
                if (ownPart + 1 < (columns + tiling_.partN - 1) / tiling_.partN * ownParts) { // travels while this turn is computed
                    CopyIn(index, ownPart + 1);
                } else {
                    if (index + GetBlockNum() < indexEnd) {
                        CopyIn(index + GetBlockNum(), 0);
                    }
                }
                Compute(ownRows, ownPitch);
                CopyOut(column, firstColumn, ownRows, ownRow, ownColumns);
            }
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t index, uint32_t ownPart)
    {
        const uint64_t place = index % (tiling_.tilesM * tiling_.tilesN);
        const uint64_t top = place / (tiling_.strip * tiling_.tilesN) * tiling_.strip;
        const uint64_t inside = place - top * tiling_.tilesN;
        const uint64_t height = tiling_.tilesM - top < tiling_.strip ? tiling_.tilesM - top : tiling_.strip;
        const uint64_t row = (top + inside % height) * tiling_.tileM;
        const uint64_t column = inside / height * tiling_.tileN;
        const uint32_t rows = static_cast<uint32_t>(tiling_.m - row < tiling_.tileM ? tiling_.m - row : tiling_.tileM);
        const uint32_t columns = static_cast<uint32_t>(tiling_.n - column < tiling_.tileN ? tiling_.n - column :
            tiling_.tileN);
        const uint32_t upperRows = (rows + 2 - 1) / 2;
        const uint32_t mostRows = TILE_ELEMENTS / ((tiling_.partN + WIDEST_STEP - 1) / WIDEST_STEP * WIDEST_STEP) <
            ROW_CAPACITY ? TILE_ELEMENTS / ((tiling_.partN + WIDEST_STEP - 1) / WIDEST_STEP * WIDEST_STEP) :
            ROW_CAPACITY;
        const uint32_t ownParts = (upperRows + mostRows - 1) / mostRows;
        const uint32_t rowsAtATime = (upperRows + ownParts - 1) / ownParts;
        const uint32_t ownFirst = GetSubBlockIdx() == 0 ? 0 : upperRows;
        const uint32_t ownEnd = GetSubBlockIdx() == 0 ? upperRows : rows;
        const uint32_t handedNumber = ownPart / ownParts;
        const uint32_t firstColumn = handedNumber * tiling_.partN;
        const uint32_t ownPlace = ownFirst + ownPart % ownParts * rowsAtATime;
        const uint32_t ownRows = ownPlace < ownEnd ? (ownEnd - ownPlace < rowsAtATime ? ownEnd - ownPlace :
            rowsAtATime) : 0;
        const uint32_t ownColumns = columns - firstColumn < tiling_.partN ? columns - firstColumn : tiling_.partN;
        if (ownPart % ownParts == 0) {
            CrossCoreWaitFlag(RESULT_READY);
            takenCount = takenCount + 1;
        }
        LocalTensor<float> mmLocal = mmLocalQueue.AllocTensor<float>();
        LocalTensor<float> biasLocal = biasLocalQueue.AllocTensor<float>();
        if (ownRows > 0) {
            if (ownColumns % 8 == 0) {
                DataCopyPad(mmLocal, cGlobal[(takenCount - 1) % HANDED * (BASE_M * BASE_N) + ownPlace * ownColumns],
                    DataCopyExtParams{1, static_cast<uint32_t>(ownRows * ownColumns * sizeof(float)), 0, 0, 0},
                    DataCopyPadExtParams<float>{false, 0, 0, 0});
            } else {
                DataCopyPad(mmLocal, cGlobal[(takenCount - 1) % HANDED * (BASE_M * BASE_N) + ownPlace * ownColumns],
                    DataCopyExtParams{static_cast<uint16_t>(ownRows),
                        static_cast<uint32_t>(ownColumns * sizeof(float)),
                        static_cast<uint32_t>((ownColumns - ownColumns) * sizeof(float)), 0, 0},
                    DataCopyPadExtParams<float>{false, 0, 0, 0});
            }
            DataCopyPad(biasLocal, biasInGlobal[column + firstColumn],
                DataCopyExtParams{1, static_cast<uint32_t>(ownColumns * sizeof(float)), 0, 0, 0},
                DataCopyPadExtParams<float>{false, 0, 0, 0});
        }
        mmLocalQueue.EnQue(mmLocal);
        biasLocalQueue.EnQue(biasLocal);
        if (ownPart % ownParts == ownParts - 1) {
            CrossCoreSetFlag<2, PIPE_MTE2>(RESULT_TAKEN);
        }
    }

    __aicore__ inline void Compute(uint32_t ownRows, uint32_t ownPitch)
    {
        LocalTensor<float> mmLocal = mmLocalQueue.DeQue<float>();
        LocalTensor<float> biasLocal = biasLocalQueue.DeQue<float>();
        LocalTensor<float> outputLocal = outputLocalQueue.AllocTensor<float>();
        if (ownRows > 0) {
            const uint32_t count = ownRows * ownPitch;
            // add
            AddColumns(mmLocal, mmLocal, biasLocal, ownRows, ownPitch);
            // relu
            Relu(outputLocal, mmLocal, count);
        }
        mmLocalQueue.FreeTensor(mmLocal);
        biasLocalQueue.FreeTensor(biasLocal);
        outputLocalQueue.EnQue(outputLocal);
    }

    // Add of each step of a tile and a row.
    __aicore__ inline void AddColumns(const LocalTensor<float> &to, const LocalTensor<float> &tile,
        const LocalTensor<float> &row, uint32_t height, uint32_t width)
    {
        for (uint32_t lanePiece = 0; lanePiece < (width + LANES - 1) / LANES; ++lanePiece) {
            const uint32_t lane = lanePiece * LANES;
            const uint32_t laneLeft = width - lane;
            const uint32_t laneCount = laneLeft < LANES ? laneLeft : LANES;
            Add(to[lane], tile[lane], row[lane], laneCount, static_cast<uint8_t>(height), BinaryRepeatParams{1, 1,
                1, static_cast<uint8_t>(width / 8), static_cast<uint8_t>(width / 8), 0});
        }
    }

    __aicore__ inline void CopyOut(uint64_t column, uint32_t firstColumn, uint32_t ownRows, uint64_t ownRow,
        uint32_t ownColumns)
    {
        LocalTensor<float> outputLocal = outputLocalQueue.DeQue<float>();
        if (ownRows > 0) {
            if ((ownColumns == tiling_.n ? ownColumns % 8 : 1) == 0) {
                DataCopyPad(outputOutGlobal[ownRow * tiling_.n + (column + firstColumn)], outputLocal,
                    DataCopyExtParams{1, static_cast<uint32_t>(ownRows * ownColumns * sizeof(float)), 0, 0, 0});
            } else {
                DataCopyPad(outputOutGlobal[ownRow * tiling_.n + (column + firstColumn)], outputLocal,
                    DataCopyExtParams{static_cast<uint16_t>(ownRows),
                        static_cast<uint32_t>(ownColumns * sizeof(float)), 0,
                        static_cast<uint32_t>((tiling_.n - ownColumns) * sizeof(float)), 0});
            }
        }
        outputLocalQueue.FreeTensor(outputLocal);
    }

    OpTiling tiling_;
    TQue<TPosition::VECIN, 2> mmLocalQueue;
    TQue<TPosition::VECOUT, 1> outputLocalQueue;
    TQue<TPosition::VECIN, 2> biasLocalQueue;
    GlobalTensor<float> biasInGlobal;
    GlobalTensor<float> outputOutGlobal;
    GlobalTensor<float> cGlobal;
    uint32_t takenCount = 0; // results of this core so far
};

extern "C" __global__ __mix__(1, 2) void linear_kernel(
    GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
{
    // What a cube core and its vector cores hand to each other lies in their own part of the workspace.
    if ASCEND_IS_AIC { // without a TPipe, which on cube cores sets events of its own
        InitSocState();
        GM_ADDR own = workspace + GetBlockIdx() * tiling.coreBytes;
        LinearProduct op;
        op.Init(x, weight, own + tiling.cOffset, tiling);
        op.Process();
        PipeBarrier<PIPE_ALL>();
    }
    if ASCEND_IS_AIV {
        TPipe pipe;
        GM_ADDR own = workspace + GetBlockIdx() / GetTaskRatio() * tiling.coreBytes;
        LinearKernel op;
        op.Init(bias, output, own + tiling.cOffset, tiling, &pipe);
        op.Process();
    }
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    linear_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], tensors[3], workspace, tiling);
}
