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

// Some rows or columns, of all that there are.
struct Span {
    uint32_t start;
    uint32_t count;
    uint32_t of;
};

// Products of matrices.
class LinearKernel {
public:
    __aicore__ inline LinearKernel() {}
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR bias, const OpTiling &tiling)
    {
        tiling_ = tiling;
        aGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(a));
        bGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(b));
        cGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c));
        biasGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(bias));
        LocalMemAllocator<Hardware::L1> inL1;
        LocalMemAllocator<Hardware::L0A> inL0A;
        LocalMemAllocator<Hardware::L0B> inL0B;
        LocalMemAllocator<Hardware::L0C> inL0C;
        biasPanel = inL1.Alloc<TPosition::B1, float, PANELS * PARTS * BASE_N * FRACTAL>();
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
    }

private:
    // One turn of the loops: what is in L1 at a time.
    struct Turn {
        uint64_t index;
        uint64_t panel;
        uint64_t matrix;
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
            turn.matrix = turn.index / (tiling_.tilesM * tiling_.tilesN);
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
        if (turn.panel + 1 == turn.panels) {
            if (biasPanelKey[turn.slot] != turn.column + 1) {
                CopyRows(biasPanel[turn.slot * (PARTS * BASE_N * FRACTAL)], biasGlobal[turn.column], 1,
                    turn.columns, turn.columns);
                biasPanelKey[turn.slot] = turn.column + 1;
            }
        }
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
                EndWithBias(turn, first, firstCount, sum);
            }
            if (turn.panel + 1 == turn.panels) {
                SetFlag<HardEvent::M_FIX>(sum);
                WaitFlag<HardEvent::M_FIX>(sum);
                Store(cGlobal[(turn.matrix * tiling_.m + turn.row) * tiling_.n + turn.column + first],
                    result[sum * (BASE_M * BASE_N)], turn.rows, firstCount, turn.rows, tiling_.n);
                SetFlag<HardEvent::FIX_M>(sum);
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

    // The product of a column of ones with the row of biases is added to the steps.
    __aicore__ inline void EndWithBias(const Turn &turn, uint32_t first, uint32_t firstCount, uint32_t sum)
    {
        const uint32_t step = stepCount++ % STEPS;
        WaitFlag<HardEvent::M_MTE1>(step);
        FillWith(aStep[step * (BASE_M * BASE_K)], (turn.rows + FRACTAL - 1) / FRACTAL, 1);
        LoadRight(bStep[step * (BASE_N * BASE_K)], biasPanel[turn.slot * (PARTS * BASE_N * FRACTAL)], Span{0, 1, 1},
            Span{first, firstCount, turn.columns});
        SetFlag<HardEvent::MTE1_M>(step);
        WaitFlag<HardEvent::MTE1_M>(step);
        Multiply(result[sum * (BASE_M * BASE_N)], aStep[step * (BASE_M * BASE_K)], bStep[step * (BASE_N * BASE_K)],
            turn.rows, firstCount, 1, false);
        SetFlag<HardEvent::M_MTE1>(step);
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

    __aicore__ inline void FillWith(LocalTensor<float> target, uint32_t fractals, float value)
    {
        InitConstValue(target, InitConstValueParams<float>{1, static_cast<uint16_t>(fractals), 0,
                                                                   static_cast<float>(value)});
    }

    // Rows and columns of a panel that is as high and wide as `of`, turned as L0B always is: rows of memory run along k.
    __aicore__ inline void LoadRight(LocalTensor<float> target, LocalTensor<float> panel, Span rows, Span columns)
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
        params.reluEn = true;
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
    GlobalTensor<float> biasGlobal;
    LocalTensor<float> biasPanel;
    LocalTensor<float> aPanel;
    LocalTensor<float> bPanel;
    LocalTensor<float> aStep;
    LocalTensor<float> bStep;
    LocalTensor<float> result;
    uint32_t turnCount = 0;
    uint32_t stepCount = 0;
    uint32_t sumCount = 0;
    uint64_t biasPanelKey[PANELS] = {}; // of what it holds, one more than its number
};

extern "C" __global__ __cube__ void linear_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR output,
    GM_ADDR workspace, OpTiling tiling)
{
    InitSocState(); // no TPipe does: on cube cores it would set events of its own
    LinearKernel op;
    op.Init(x, weight, output, bias, tiling);
    op.Process();
    PipeBarrier<PIPE_ALL>();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    linear_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], tensors[3], workspace, tiling);
}
