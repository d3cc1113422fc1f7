#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t PANELS = 2; // panels in L1: some are filled while one is used
constexpr uint32_t SLOTS = 2; // steps in L0: one is filled while the other is used
constexpr uint32_t BASE_N = PARTS * PART_N;
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t C0 = BLOCK_BYTES / sizeof(float); // columns of a fractal
constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result
constexpr uint32_t WEIGHT_ROWS = BASE_M; // output channels whose weights stay in L1
constexpr uint32_t WEIGHT_DEPTH = 576; // all of their depth, in whole fractals

// Where a tile lies: its first output channel, image, plane, row and column, and its extent.
struct Tile {
    uint64_t group;
    uint64_t output;
    uint64_t image;
    uint64_t plane;
    uint64_t row;
    uint64_t column;
    uint32_t outputs;
    uint32_t rows;
    uint32_t width;
    uint32_t pitch; // columns from row to row in L1 and L0
    uint32_t columns; // of all rows, without the gap behind the last
};

__aicore__ inline uint32_t Part(uint64_t left, uint64_t most)
{
    return left < most ? left : most;
}

__aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}

__aicore__ inline Tile TileAt(const OpTiling &tiling, uint64_t index)
{
    Tile tile;
    const uint64_t ofOutputs = tiling.batch * tiling.tilesOfImage;
    const uint64_t down = index / ofOutputs % tiling.tilesM;
    uint64_t rest = index % ofOutputs + index / (ofOutputs * tiling.tilesM) * ofOutputs;
    const uint64_t across = rest % tiling.tilesW;
    rest /= tiling.tilesW;
    const uint64_t below = rest % tiling.tilesRows;
    rest /= tiling.tilesRows;
    tile.plane = rest % tiling.outD;
    rest /= tiling.outD;
    tile.image = rest % tiling.batch;
    tile.group = rest / tiling.batch;
    tile.output = down * tiling.tileM;
    tile.row = below * tiling.tileRows;
    tile.column = across * tiling.tileW;
    tile.outputs = Part(tiling.outputs - tile.output, tiling.tileM);
    tile.rows = Part(tiling.outH - tile.row, tiling.tileRows);
    tile.width = Part(tiling.outW - tile.column, tiling.tileW);
    tile.pitch = tiling.pitch > 0 ? tiling.pitch : Whole(tile.width, FRACTAL);
    tile.columns = (tile.rows - 1) * tile.pitch + tile.width;
    return tile;
}

// Pixels of one result in L0C: some rows of a tile, or a part of its only row.
struct Pixels {
    uint32_t row;
    uint32_t column;
    uint32_t rows;
    uint32_t width;
};

// Those from column `first` of the product on.
__aicore__ inline Pixels PixelsAt(const OpTiling &tiling, const Tile &tile, uint32_t first)
{
    if (tile.width > tiling.partColumns) {
        return {0, first, 1, Part(tile.width - first, tiling.partColumns)};
    }
    const uint32_t row = first / tile.pitch;
    return {row, 0, Part(tile.rows - row, tiling.partRows), tile.width};
}

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
        weightPanel = inL1.Alloc<TPosition::A1, float, WEIGHT_ROWS * WEIGHT_DEPTH>();
        pixelPanel = inL1.Alloc<TPosition::B1, float, PANELS * BASE_N * PANEL_K>();
        weightStep = inL0A.Alloc<TPosition::A2, float, SLOTS * BASE_M * BASE_K>();
        pixelStep = inL0B.Alloc<TPosition::B2, float, SLOTS * PART_N * BASE_K>();
        result = inL0C.Alloc<TPosition::CO1, float, PARTS * BASE_M * PART_N>();
    }

    __aicore__ inline void Process()
    {
        for (uint32_t panel = 0; panel < PANELS; ++panel) {
            SetFlag<HardEvent::MTE1_MTE2>(panel);
        }
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            SetFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t part = 0; part < PARTS; ++part) {
            SetFlag<HardEvent::FIX_M>(part);
        }
        loadIndex = GetBlockIdx();
        for (uint64_t tile = GetBlockIdx(); tile < tiling_.tiles; tile += GetBlockNum()) {
            ComputeTile(TileAt(tiling_, tile));
        }
        for (uint32_t panel = 0; panel < PANELS; ++panel) {
            WaitFlag<HardEvent::MTE1_MTE2>(panel);
        }
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            WaitFlag<HardEvent::M_MTE1>(slot);
        }
        for (uint32_t part = 0; part < PARTS; ++part) {
            WaitFlag<HardEvent::FIX_M>(part);
        }
    }

private:
    // One tile of the result: panels of weights and pixels pass through L1, steps of them through L0.
    __aicore__ inline void ComputeTile(const Tile &tile)
    {
        const uint32_t columns = Whole(tile.columns, FRACTAL);
        for (uint64_t start = 0; start < tiling_.depth; start += PANEL_K) {
            LoadAhead();
            const uint32_t depth = Part(tiling_.depth - start, PANEL_K);
            const uint32_t slot = panelCount % PANELS;
            WaitFlag<HardEvent::MTE2_MTE1>(slot);
            uint32_t count = resultCount;
            for (uint32_t first = 0; first < columns; first += tiling_.partColumns) {
                const uint32_t part = count++ % PARTS;
                const uint32_t width = Part(columns - first, tiling_.partColumns);
                if (start == 0) {
                    WaitFlag<HardEvent::FIX_M>(part);
                }
                for (uint32_t step = 0; step < depth; step += BASE_K) {
                    Multiply(slot, part, tile.outputs, first, width, depth, start, step);
                }
                if (start + depth == tiling_.depth) {
                    SetFlag<HardEvent::M_FIX>(part);
                    WaitFlag<HardEvent::M_FIX>(part);
                    Store(tile, part, first);
                    SetFlag<HardEvent::FIX_M>(part);
                }
            }
            SetFlag<HardEvent::MTE1_MTE2>(slot);
            ++panelCount;
            resultCount = start + depth == tiling_.depth ? count : resultCount;
        }
    }

    // Panels of this tile and of those behind it into every slot of L1 that is free.
    __aicore__ inline void LoadAhead()
    {
        while (loadIndex < tiling_.tiles && loadCount < panelCount + PANELS) {
            if (loadStart == 0) {
                loadTile = TileAt(tiling_, loadIndex);
            }
            if (!HasWeights(loadTile)) {
                if (loadCount > panelCount) { // the panels in L1 need the old ones
                    return;
                }
                KeepWeights(loadTile);
            }
            LoadPanel(loadTile, loadStart, loadCount % PANELS);
            ++loadCount;
            loadStart += PANEL_K;
            if (loadStart >= tiling_.depth) {
                loadStart = 0;
                loadIndex += GetBlockNum();
            }
        }
    }

    __aicore__ inline void LoadPanel(const Tile &tile, uint64_t start, uint32_t slot)
    {
        const uint32_t depth = Part(tiling_.depth - start, PANEL_K);
        WaitFlag<HardEvent::MTE1_MTE2>(slot);
        LoadPixels(pixelPanel[slot * BASE_N * PANEL_K], tile, start, depth);
        SetFlag<HardEvent::MTE2_MTE1>(slot);
    }

    __aicore__ inline bool HasWeights(const Tile &tile)
    {
        return hasWeights && keptOutput == tile.group * tiling_.outputs + tile.output;
    }

    // Weights of the tile's output channels.
    __aicore__ inline void KeepWeights(const Tile &tile)
    {
        for (uint32_t panel = 0; panel < PANELS; ++panel) { // nothing reads the old ones any more
            WaitFlag<HardEvent::MTE1_MTE2>(panel);
        }
        LoadWeights(weightPanel, tile, 0, tiling_.depth);
        for (uint32_t panel = 0; panel < PANELS; ++panel) {
            SetFlag<HardEvent::MTE1_MTE2>(panel);
        }
        hasWeights = true;
        keptOutput = tile.group * tiling_.outputs + tile.output;
    }

    // Rows of weights into fractals.
    __aicore__ inline void LoadWeights(LocalTensor<float> panel, const Tile &tile, uint64_t start, uint32_t depth)
    {
        const uint64_t offset = (tile.group * tiling_.outputs + tile.output) * tiling_.depth + start;
        Nd2NzParams params;
        params.ndNum = 1;
        params.nValue = tile.outputs;
        params.dValue = depth;
        params.srcDValue = tiling_.depth;
        params.dstNzC0Stride = Whole(tile.outputs, FRACTAL);
        params.dstNzNStride = 1;
        if (tiling_.depth <= MOST_PITCH) {
            DataCopy(panel, weightGlobal[offset], params);
            return;
        }
        params.nValue = 1;
        params.srcDValue = depth;
        for (uint32_t row = 0; row < tile.outputs; ++row) { // too far apart for one copy
            DataCopy(panel[row * C0], weightGlobal[offset + row * tiling_.depth], params);
        }
    }

    // One row of the panel for each channel and tap: the pixels that the tap meets.
    __aicore__ inline void LoadPixels(LocalTensor<float> panel, const Tile &tile, uint64_t start, uint32_t depth)
    {
        const uint64_t base = (tile.image * 1 + tile.group) * tiling_.channels * tiling_.channelStride +
                              tile.plane * STRIDE_D * tiling_.planeStride + tile.row * STRIDE_H * tiling_.rowStride +
                              tile.column;
        const uint32_t height = Whole(depth, FRACTAL);
        for (uint32_t row = 0; row < depth;) {
            const uint32_t taps = Part(tiling_.run - (start + row) % tiling_.run, depth - row);
            CopyTaps(panel[row * C0], xGlobal[base + TapOffset(start + row)], tile, taps, height);
            row += taps;
        }
    }

    // Taps at equal distances: rows of the panel below each other.
    __aicore__ inline void CopyTaps(LocalTensor<float> panel, GlobalTensor<float> source, const Tile &tile,
                                    uint32_t taps, uint32_t height)
    {
        Nd2NzParams params;
        params.dstNzC0Stride = height;
        if (tile.rows == 1 || tiling_.pitch > 0) { // one run of memory
            params.dValue = tile.columns;
            params.ndNum = 1;
            params.nValue = taps;
            params.srcDValue = taps > 1 ? tiling_.runStep : tile.columns;
            params.dstNzNStride = 1;
        } else {
            params.dValue = tile.width;
            params.ndNum = taps;
            params.srcNdMatrixStride = taps > 1 ? tiling_.runStep : 0;
            params.dstNzMatrixStride = C0;
            params.nValue = tile.rows;
            params.srcDValue = tiling_.rowStride * STRIDE_H;
            params.dstNzNStride = tile.pitch / C0 * height;
        }
        DataCopy(panel, source, params);
    }

    // Where a channel's tap lies from the first pixel on.
    __aicore__ inline uint64_t TapOffset(uint64_t place)
    {
        const uint64_t channel = place / TAPS;
        const uint32_t tap = place % TAPS;
        const uint32_t behind = tap / (KERNEL_H * KERNEL_W);
        const uint32_t down = tap / KERNEL_W % KERNEL_H;
        const uint64_t across = tap % KERNEL_W * tiling_.tapStepW;
        return channel * tiling_.channelStride + behind * tiling_.tapStepD + down * tiling_.tapStepH + across;
    }

    // One step: from L1 into L0A and L0B, and the product into L0C.
    __aicore__ inline void Multiply(uint32_t panel, uint32_t part, uint32_t outputs, uint32_t first, uint32_t columns,
                                    uint32_t depth, uint64_t start, uint32_t step)
    {
        const uint32_t slot = stepCount++ % SLOTS;
        const uint32_t length = Part(depth - step, BASE_K);
        LocalTensor<float> a = weightStep[slot * BASE_M * BASE_K];
        LocalTensor<float> b = pixelStep[slot * PART_N * BASE_K];
        WaitFlag<HardEvent::M_MTE1>(slot);
        LoadLeft(a, weightPanel, outputs, tiling_.depth, start + step, length);
        LoadRight(b, pixelPanel[panel * BASE_N * PANEL_K + first * Whole(depth, FRACTAL)], columns, depth, step, length);
        SetFlag<HardEvent::MTE1_M>(slot);
        WaitFlag<HardEvent::MTE1_M>(slot);
        MmadParams params;
        params.m = outputs > 1 ? outputs : 2; // a single row would be taken for a vector
        params.n = columns;
        params.k = length;
        params.cmatrixInitVal = start == 0 && step == 0;
        Mmad(result[part * BASE_M * PART_N], a, b, params);
        if (Whole(outputs, FRACTAL) / FRACTAL * (Whole(columns, FRACTAL) / FRACTAL) < FEW_FRACTALS) {
            PipeBarrier<PIPE_M>();
        }
        SetFlag<HardEvent::M_MTE1>(slot);
    }

    __aicore__ inline void LoadLeft(LocalTensor<float> target, LocalTensor<float> panel, uint32_t outputs,
                                    uint32_t depth, uint32_t step, uint32_t length)
    {
        LoadData3DParamsV2<float> params;
        params.l1H = 1;
        params.l1W = Whole(outputs, FRACTAL);
        params.channelSize = Whole(depth, C0);
        params.kExtension = Whole(length, C0);
        params.mExtension = Whole(outputs, FRACTAL);
        params.kStartPt = step;
        LoadData(target, panel, params);
    }

    // Rows of the panel run along the depth: they are turned on the way.
    __aicore__ inline void LoadRight(LocalTensor<float> target, LocalTensor<float> panel, uint32_t columns,
                                     uint32_t depth, uint32_t step, uint32_t length)
    {
        LoadData3DParamsV2<float> params;
        params.l1H = 1;
        params.l1W = Whole(depth, FRACTAL);
        params.channelSize = Whole(columns, FRACTAL);
        params.kExtension = Whole(columns, FRACTAL);
        params.mExtension = Whole(length, FRACTAL);
        params.mStartPt = step;
        LoadData(target, panel, params);
    }

    // One result, without the gaps between rows.
    __aicore__ inline void Store(const Tile &tile, uint32_t part, uint32_t first)
    {
        const Pixels pixels = PixelsAt(tiling_, tile, first);
        const uint32_t height = Whole(tile.outputs, FRACTAL);
        FixpipeParamsV220 params;
        params.nSize = pixels.width;
        params.mSize = tile.outputs;
        params.srcStride = height;
        params.ndNum = pixels.rows;
        params.srcNdStride = tile.pitch / FRACTAL * (height / FRACTAL);
        params.dstNdStride = pixels.rows > 1 ? pixels.width : 0;
        params.dstStride = tiling_.pixels;
        const uint64_t channel = (tile.image * 1 + tile.group) * tiling_.outputs + tile.output;
        const uint64_t row = tile.plane * tiling_.outH + tile.row + pixels.row;
        const uint64_t offset = channel * tiling_.pixels + row * tiling_.outW + tile.column + pixels.column;
        Fixpipe<float, float, CFG_ROW_MAJOR>(yGlobal[offset], result[part * BASE_M * PART_N], params);
    }

    OpTiling tiling_;
    GlobalTensor<float> xGlobal;
    GlobalTensor<float> weightGlobal;
    GlobalTensor<float> yGlobal;
    LocalTensor<float> weightPanel;
    LocalTensor<float> pixelPanel;
    LocalTensor<float> weightStep;
    LocalTensor<float> pixelStep;
    LocalTensor<float> result;
    Tile loadTile{}; // of the panel that is loaded next
    uint64_t loadIndex = 0;
    uint64_t loadStart = 0;
    uint64_t loadCount = 0; // panels that were loaded, and those that were used
    uint64_t panelCount = 0;
    uint32_t stepCount = 0;
    uint32_t resultCount = 0;
    bool hasWeights = false;
    uint64_t keptOutput = 0;
};

extern "C" __global__ __cube__ void convolution_kernel(GM_ADDR x, GM_ADDR weight, GM_ADDR output, GM_ADDR workspace, OpTiling tiling)
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
