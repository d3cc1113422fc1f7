#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t PANELS = 2; // in L1: some are loaded while one is multiplied
constexpr uint32_t STEPS = 2; // in L0A and L0B: one is filled while the other is used
constexpr uint32_t SUMS = 2; // in L0C: one is stored while the other is computed
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t C0 = BLOCK_BYTES / sizeof(float); // columns of a fractal
constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result

// Some rows or columns, of all that there are.
struct Span {
    uint32_t start;
    uint32_t count;
    uint32_t of;
};

// Convolutions as products of weights and shifted pixels.
class ConvolutionKernel {
public:
    __aicore__ inline ConvolutionKernel() {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR weight, GM_ADDR y, const OpTiling &tiling)
    {
        tiling_ = tiling;
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x));
        weightGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(weight));
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y));
        LocalMemAllocator<Hardware::L1> inL1;
        LocalMemAllocator<Hardware::L0A> inL0A;
        LocalMemAllocator<Hardware::L0B> inL0B;
        LocalMemAllocator<Hardware::L0C> inL0C;
        weights = inL1.Alloc<TPosition::A1, float, BASE_M * ((DEPTH + FRACTAL - 1) / FRACTAL * FRACTAL)>();
        pixels = inL1.Alloc<TPosition::B1, float, PANELS * PARTS * PART_N * PANEL_K>();
        weightStep = inL0A.Alloc<TPosition::A2, float, STEPS * BASE_M * BASE_K>();
        pixelStep = inL0B.Alloc<TPosition::B2, float, STEPS * PART_N * BASE_K>();
        result = inL0C.Alloc<TPosition::CO1, float, SUMS * BASE_M * PART_N>();
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
                if (weightsKey[0] != ahead.group * tiling_.outputs + ahead.output + 1) {
                    if (loaded > used) { // turns in L1 need what is there
                        break;
                    }
                    KeepWeights(ahead);
                }
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
        uint64_t output;
        uint64_t column;
        uint64_t row;
        uint64_t plane;
        uint64_t image;
        uint64_t group;
        uint32_t outputs;
        uint32_t rows;
        uint32_t width;
        uint32_t pitch;
        uint32_t lastColumn;
        uint32_t columns;
        uint64_t start;
        uint32_t depth;
        uint32_t slot;
    };

    __aicore__ inline Turn First(uint64_t index)
    {
        Turn turn;
        turn.index = index;
        if (index < tiling_.tiles) {
            const uint64_t ofOutputs = tiling_.batch * tiling_.tilesOfImage;
            turn.output = turn.index / ofOutputs % tiling_.tilesM * tiling_.tileM;
            const uint64_t rest = turn.index % ofOutputs + turn.index / (ofOutputs * tiling_.tilesM) * ofOutputs;
            turn.column = rest % tiling_.tilesW * tiling_.tileW;
            const uint64_t rowsBelow = rest / tiling_.tilesW;
            turn.row = rowsBelow % tiling_.tilesRows * tiling_.tileRows;
            const uint64_t planes = rowsBelow / tiling_.tilesRows;
            turn.plane = planes % tiling_.outD;
            const uint64_t images = planes / tiling_.outD;
            turn.image = images % tiling_.batch;
            turn.group = images / tiling_.batch;
            turn.outputs = static_cast<uint32_t>(tiling_.outputs - turn.output < tiling_.tileM ? tiling_.outputs -
                turn.output : tiling_.tileM);
            turn.rows = static_cast<uint32_t>(tiling_.outH - turn.row < tiling_.tileRows ? tiling_.outH - turn.row :
                tiling_.tileRows);
            turn.width = static_cast<uint32_t>(tiling_.outW - turn.column < tiling_.tileW ? tiling_.outW -
                turn.column : tiling_.tileW);
            turn.pitch = tiling_.panelPitch > 0 ? tiling_.panelPitch : (turn.width + FRACTAL - 1) / FRACTAL * FRACTAL;
            turn.lastColumn = (turn.rows - 1) * turn.pitch + turn.width;
            turn.columns = (turn.lastColumn + FRACTAL - 1) / FRACTAL * FRACTAL;
            Enter(turn, 0);
        }
        return turn;
    }

    // The next one of the same tile, or the first one of the core's next tile.
    __aicore__ inline Turn Next(const Turn &turn)
    {
        if (turn.panel + 1 == (tiling_.depth + PANEL_K - 1) / PANEL_K) {
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
        turn.depth = static_cast<uint32_t>(tiling_.depth - turn.start < PANEL_K ? tiling_.depth - turn.start : PANEL_K);
        turn.slot = turnCount++ % PANELS;
    }

    // Fills what stays: nothing reads the old any more.
    __aicore__ inline void KeepWeights(const Turn &turn)
    {
        for (uint32_t slot = 0; slot < PANELS; ++slot) {
            WaitFlag<HardEvent::MTE1_MTE2>(slot);
        }
        CopyRows(weights[0], weightGlobal[(turn.group * tiling_.outputs + turn.output) * tiling_.depth],
            turn.outputs, tiling_.depth, tiling_.depth);
        weightsKey[0] = turn.group * tiling_.outputs + turn.output + 1;
        for (uint32_t slot = 0; slot < PANELS; ++slot) {
            SetFlag<HardEvent::MTE1_MTE2>(slot);
        }
    }

    __aicore__ inline void Load(const Turn &turn)
    {
        WaitFlag<HardEvent::MTE1_MTE2>(turn.slot);
        LoadPixels(turn);
        SetFlag<HardEvent::MTE2_MTE1>(turn.slot);
    }

    __aicore__ inline void Use(const Turn &turn)
    {
        WaitFlag<HardEvent::MTE2_MTE1>(turn.slot);
        for (uint32_t firstPiece = 0; firstPiece < (turn.columns + tiling_.partColumns - 1) / tiling_.partColumns;
            ++firstPiece) {
            const uint32_t first = firstPiece * tiling_.partColumns;
            const uint32_t firstLeft = turn.columns - first;
            const uint32_t firstCount = firstLeft < tiling_.partColumns ? firstLeft : tiling_.partColumns;
            const uint32_t sum = (sumCount + firstPiece) % SUMS;
            if (turn.panel == 0) {
                WaitFlag<HardEvent::FIX_M>(sum);
            }
            AddSteps(turn, first, firstCount, sum);
            if (turn.panel + 1 == (tiling_.depth + PANEL_K - 1) / PANEL_K) {
                SetFlag<HardEvent::M_FIX>(sum);
                WaitFlag<HardEvent::M_FIX>(sum);
                StorePixels(turn, first, sum);
                SetFlag<HardEvent::FIX_M>(sum);
            }
        }
        if (turn.panel + 1 == (tiling_.depth + PANEL_K - 1) / PANEL_K) {
            sumCount += (turn.columns + tiling_.partColumns - 1) / tiling_.partColumns;
        }
        SetFlag<HardEvent::MTE1_MTE2>(turn.slot);
    }

    // One row of the panel for each channel and tap: the pixels that the tap meets.
    __aicore__ inline void LoadPixels(const Turn &turn)
    {
        const uint32_t height = (turn.depth + FRACTAL - 1) / FRACTAL * FRACTAL;
        const uint64_t runsBefore = turn.start / tiling_.run;
        for (uint64_t ofRuns = 0; ofRuns < (turn.start + turn.depth + tiling_.run - 1) / tiling_.run - runsBefore;
            ++ofRuns) {
            const uint64_t place = turn.start > (runsBefore + ofRuns) * tiling_.run ? turn.start : (runsBefore +
                ofRuns) * tiling_.run;
            const uint64_t end = turn.start + turn.depth < (runsBefore + ofRuns + 1) * tiling_.run ? turn.start +
                turn.depth : (runsBefore + ofRuns + 1) * tiling_.run;
            const uint32_t taps = static_cast<uint32_t>(end - place);
            const uint32_t tap = static_cast<uint32_t>(place % 9);
            const uint64_t source = (turn.image + turn.group) * tiling_.channels * tiling_.channelStride +
                turn.plane * tiling_.planeStride + turn.row * tiling_.rowStride + turn.column + (place / 9 *
                tiling_.channelStride + tap / 9 * tiling_.tapStepD + tap / 3 % 3 * tiling_.tapStepH + tap % 3 *
                tiling_.tapStepW);
            if ((turn.rows == 1 ? 1 : tiling_.panelPitch) > 0) {
                CopyMatrices(pixels[turn.slot * (PARTS * PART_N * PANEL_K) + (place - turn.start) * 8],
                    xGlobal[source], 1, taps, turn.lastColumn, 0, taps > 1 ? tiling_.runStep : turn.lastColumn, height,
                    1, 0);
            } else {
                CopyMatrices(pixels[turn.slot * (PARTS * PART_N * PANEL_K) + (place - turn.start) * 8],
                    xGlobal[source], taps, turn.rows, turn.width, taps > 1 ? tiling_.runStep : 0, tiling_.rowStride,
                    height, turn.pitch / 8 * height, 1);
            }
        }
    }

    // The panels of a turn, step by step, into one of the sums.
    __aicore__ inline void AddSteps(const Turn &turn, uint32_t first, uint32_t firstCount, uint32_t sum)
    {
        for (uint32_t placePiece = 0; placePiece < (turn.depth + BASE_K - 1) / BASE_K; ++placePiece) {
            const uint32_t place = placePiece * BASE_K;
            const uint32_t placeLeft = turn.depth - place;
            const uint32_t placeCount = placeLeft < BASE_K ? placeLeft : BASE_K;
            const uint32_t along = static_cast<uint32_t>(turn.start + place);
            const uint32_t step = stepCount++ % STEPS;
            WaitFlag<HardEvent::M_MTE1>(step);
            LoadLeft(weightStep[step * (BASE_M * BASE_K)], weights[0], Span{0, turn.outputs, turn.outputs},
                Span{along, placeCount, DEPTH});
            LoadRight(pixelStep[step * (PART_N * BASE_K)],
                pixels[turn.slot * (PARTS * PART_N * PANEL_K) + first * ((turn.depth + FRACTAL - 1) / FRACTAL *
                FRACTAL)],
                Span{place, placeCount, turn.depth}, Span{0, firstCount, firstCount});
            SetFlag<HardEvent::MTE1_M>(step);
            WaitFlag<HardEvent::MTE1_M>(step);
            Multiply(result[sum * (BASE_M * PART_N)], weightStep[step * (BASE_M * BASE_K)],
                pixelStep[step * (PART_N * BASE_K)], turn.outputs, firstCount, placeCount,
                turn.panel == 0 && placePiece == 0);
            SetFlag<HardEvent::M_MTE1>(step);
        }
    }

    // One result, without the gaps between rows.
    __aicore__ inline void StorePixels(const Turn &turn, uint32_t first, uint32_t sum)
    {
        const uint32_t firstRow = turn.width > tiling_.partColumns ? 0 : first / turn.pitch;
        const uint32_t firstColumn = turn.width > tiling_.partColumns ? first : 0;
        const uint32_t rowsOf = turn.width > tiling_.partColumns ? 1 : (turn.rows - firstRow < tiling_.partRows ?
            turn.rows - firstRow : tiling_.partRows);
        const uint32_t widthOf = turn.width > tiling_.partColumns ? (turn.width - first < tiling_.partColumns ?
            turn.width - first : tiling_.partColumns) : turn.width;
        StoreMatrices(yGlobal[((turn.image + turn.group) * tiling_.outputs + turn.output) * tiling_.pixels +
            ((turn.plane * tiling_.outH + turn.row + firstRow) * tiling_.outW + turn.column + firstColumn)],
            result[sum * (BASE_M * PART_N)], turn.outputs, widthOf, turn.outputs, tiling_.pixels, rowsOf, turn.pitch,
            widthOf);
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

    // Matrices of memory into fractals that are `height` high: how far rows and matrices lie behind each
    // other there is counted in rows.
    __aicore__ inline void CopyMatrices(LocalTensor<float> panel, GlobalTensor<float> source, uint32_t matrices,
                                        uint32_t rows, uint32_t columns, uint64_t apart, uint64_t pitch,
                                        uint32_t height, uint32_t rowStep, uint32_t matrixStep)
    {
        Nd2NzParams params;
        params.ndNum = matrices;
        params.nValue = rows;
        params.dValue = columns;
        params.srcNdMatrixStride = apart;
        params.srcDValue = pitch;
        params.dstNzC0Stride = height;
        params.dstNzNStride = rowStep;
        params.dstNzMatrixStride = matrixStep * C0;
        DataCopy(panel, source, params);
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

    // Matrices that begin `gap` columns from each other in a sum that is `height` rows high, into rows of memory.
    __aicore__ inline void StoreMatrices(GlobalTensor<float> target, LocalTensor<float> sum, uint32_t rows,
                                         uint32_t columns, uint32_t height, uint32_t pitch, uint32_t matrices,
                                         uint32_t gap, uint32_t apart)
    {
        FixpipeParamsV220 params;
        params.nSize = columns;
        params.mSize = rows;
        params.srcStride = Whole(height, FRACTAL);
        params.dstStride = pitch;
        params.ndNum = matrices;
        params.srcNdStride = gap / FRACTAL * (Whole(height, FRACTAL) / FRACTAL);
        params.dstNdStride = matrices > 1 ? apart : 0;
        Fixpipe<float, float, CFG_ROW_MAJOR>(target, sum, params);
    }

    __aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
    {
        return (value + unit - 1) / unit * unit;
    }

    OpTiling tiling_;
    GlobalTensor<float> xGlobal;
    GlobalTensor<float> weightGlobal;
    GlobalTensor<float> yGlobal;
    LocalTensor<float> weights;
    LocalTensor<float> pixels;
    LocalTensor<float> weightStep;
    LocalTensor<float> pixelStep;
    LocalTensor<float> result;
    uint32_t turnCount = 0;
    uint32_t stepCount = 0;
    uint32_t sumCount = 0;
    uint64_t weightsKey[1] = {}; // of what it holds, one more than its number
};

extern "C" __global__ __cube__ void convolution_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR output, GM_ADDR workspace,
    OpTiling tiling)
{
    InitSocState(); // no TPipe does: on cube cores it would set events of its own
    ConvolutionKernel op;
    op.Init(x, weight, output, tiling);
    op.Process();
    PipeBarrier<PIPE_ALL>();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    convolution_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], workspace, tiling);
}
