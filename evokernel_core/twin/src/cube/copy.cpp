// DataCopy on the matrix side: ND matrices to NZ in L1, L1 to the bias table and the Fixpipe buffer, and UB to L1.
#include <algorithm>
#include <cstring>
#include <vector>

#include "copies/tscm.h"
#include "cube/gm.h"
#include "cube/space.h"
#include "matmul/serve.h"
#include "vector/convert.h"
#include "sampled.h"

namespace evokernel::twin {

namespace {

// One ND matrix after the other, row by row: `source(matrix, row)` gives the offset of a row.
struct Nd2Nz {
    uint32_t matrices;
    uint32_t rows;
    uint32_t row_bytes;
    uint64_t src_row;     // bytes
    uint64_t src_matrix;
    uint64_t dst_block;   // bytes between the 32-byte blocks of one row
    uint64_t dst_row;
    uint64_t dst_matrix;

    uint64_t SourceExtent() const { return (matrices - 1) * src_matrix + (rows - 1) * src_row + row_bytes; }
    uint64_t TargetExtent() const
    {
        const uint64_t blocks = CeilDiv(row_bytes, kC0Bytes);
        return (matrices - 1) * dst_matrix + (rows - 1) * dst_row + (blocks - 1) * dst_block + kC0Bytes;
    }
};

Nd2Nz Geometry(const AscendC::Nd2NzParams &params, uint32_t width)
{
    return Nd2Nz{params.ndNum,
                 params.nValue,
                 params.dValue * width,
                 uint64_t{params.srcDValue} * width,
                 uint64_t{params.srcNdMatrixStride} * width,
                 uint64_t{params.dstNzC0Stride} * kC0Bytes,
                 uint64_t{params.dstNzNStride} * kC0Bytes,
                 uint64_t{params.dstNzMatrixStride} * width};
}

bool CheckNd2Nz(Api api, const AscendC::Nd2NzParams &params, DType dst, DType src, At at)
{
    const Checked row(api, Word("DataCopy with Nd2NzParams"));
    bool good = CheckTypes(row, {dst, src}, at);
    good = CheckLimit(row, "ndNum", params.ndNum, at) && good;
    good = CheckLimit(row, "nValue", params.nValue, at) && good;
    good = CheckLimit(row, "dValue", params.dValue, at) && good;
    good = CheckLimit(row, "srcNdMatrixStride", params.srcNdMatrixStride, at) && good;
    good = CheckLimit(row, "srcDValue", params.srcDValue, at) && good;
    good = CheckLimit(row, "dstNzC0Stride", params.dstNzC0Stride, at) && good;
    good = CheckLimit(row, "dstNzNStride", params.dstNzNStride, at) && good;
    if (params.ndNum > 1) {  // the step from matrix to matrix of one matrix is not read
        good = CheckLimit(row, "dstNzMatrixStride", params.dstNzMatrixStride, at) && good;
    }
    return good;
}

// The blocks of one row, the last one filled up with zeros.
void PlaceRow(const uint8_t *row, const uint8_t *shadow, const Nd2Nz &geometry, const Cells &to, uint64_t target)
{
    for (uint32_t done = 0; done < geometry.row_bytes; done += kC0Bytes, target += geometry.dst_block) {
        const uint32_t length = std::min(kC0Bytes, geometry.row_bytes - done);
        std::memcpy(to.data + target, row + done, length);
        std::memcpy(to.undefined + target, shadow + done, length);
        std::memset(to.data + target + length, 0, kC0Bytes - length);
        std::memset(to.undefined + target + length, 0, kC0Bytes - length);
    }
}

// What the copy writes: whole columns where rows lie one after the other, else block by block.
void TouchTarget(const Nd2Nz &geometry, const Cells &to)
{
    Touches writes(to.space, true);
    const uint32_t blocks = CeilDiv(geometry.row_bytes, kC0Bytes);
    for (uint32_t matrix = 0; matrix < geometry.matrices; ++matrix) {
        for (uint32_t block = 0; block < blocks; ++block) {
            const uint64_t start = matrix * geometry.dst_matrix + block * geometry.dst_block;
            if (geometry.dst_row == kC0Bytes) {
                writes.Add(to.address + start, uint64_t{geometry.rows} * kC0Bytes);
                continue;
            }
            for (uint32_t row = 0; row < geometry.rows; ++row) {
                writes.Add(to.address + start + row * geometry.dst_row, kC0Bytes);
            }
        }
    }
    writes.Tell();
}

void AccountRows(const GlobalRef &src, const Nd2Nz &geometry, const char *api, At at)
{
    const auto stride = static_cast<uint32_t>(geometry.src_row);
    Burst burst{geometry.rows, geometry.row_bytes, stride, stride};
    if (geometry.matrices > 1 && geometry.src_matrix == geometry.rows * geometry.src_row) {
        burst.count *= geometry.matrices;
        return AccountGlobal(Pipe::MTE2, true, src, burst, stride, 0, api, at);
    }
    GlobalRef matrix = src;
    for (uint32_t i = 0; i < geometry.matrices; ++i) {
        AccountGlobal(Pipe::MTE2, true, matrix, burst, stride, 0, api, at);
        matrix.address += geometry.src_matrix;
    }
}

}  // namespace

namespace {

// In sampled runs: whether no row that is read holds a value; what is written then holds none.
bool SourceEmpty(const GlobalRef &src, const Nd2Nz &geometry, const char *api, At at)
{
    const Allocation *block = Gm().Check(src, src.address, geometry.SourceExtent(), false, api, at);
    for (uint32_t i = 0; block != nullptr && i < geometry.matrices * geometry.rows; ++i) {
        const auto offset = static_cast<uint64_t>(src.address - block->base) +
                            i / geometry.rows * geometry.src_matrix + i % geometry.rows * geometry.src_row;
        if (!sampled::Empty(*block, offset, geometry.row_bytes)) {
            return false;
        }
    }
    return block != nullptr;
}

void ClearTarget(const Nd2Nz &geometry, const LocalRef &dst)
{
    const uint32_t blocks = CeilDiv(geometry.row_bytes, kC0Bytes);
    for (uint32_t i = 0; i < geometry.matrices * blocks; ++i) {
        const uint64_t start = dst.address + i / blocks * geometry.dst_matrix + i % blocks * geometry.dst_block;
        if (geometry.dst_row == kC0Bytes) {
            sampled::Clear(SpaceOf(dst), start, uint64_t{geometry.rows} * kC0Bytes);
            continue;
        }
        for (uint32_t row = 0; row < geometry.rows; ++row) {
            sampled::Clear(SpaceOf(dst), start + row * geometry.dst_row, kC0Bytes);
        }
    }
}

}  // namespace

void CopyNd2Nz(const LocalRef &dst, const GlobalRef &src, const AscendC::Nd2NzParams &params, At at)
{
    constexpr const char *api = "DataCopy";
    if (params.ndNum == 0 || params.nValue == 0 || params.dValue == 0 ||
        PostedToCube(dst, [=](const LocalRef &seen) { CopyNd2Nz(seen, src, params, at); }, at)) {
        return;
    }
    const Nd2Nz geometry = Geometry(params, DTypeBytes(src.dtype));
    AccountRows(src, geometry, api, at);
    Cells to;
    const Api row = SpaceOf(dst) == Space::L1 ? Api::DataCopyNd2Nz : Api::DataCopyNd2NzToUb;
    if (sampled::active && SourceEmpty(src, geometry, api, at)) {
        return ClearTarget(geometry, dst);
    }
    if (TheCore().timing || !CheckNd2Nz(row, params, dst.dtype, src.dtype, at) ||
        !OpenCells(dst, geometry.TargetExtent(), kC0Bytes, true, api, "dst", at,
                   SpaceBit(Space::L1) | SpaceBit(Space::UB), &to)) {
        return;
    }
    Allocation *block = Gm().Check(src, src.address, geometry.SourceExtent(), false, api, at);
    if (block == nullptr) {
        return;
    }
    TouchTarget(geometry, to);
    std::vector<uint8_t> shadow(geometry.row_bytes);
    for (uint32_t matrix = 0; matrix < geometry.matrices; ++matrix) {
        for (uint32_t row = 0; row < geometry.rows; ++row) {
            const uint8_t *from = src.address + matrix * geometry.src_matrix + row * geometry.src_row;
            ShadowFromGlobal(*block, from, shadow.data(), geometry.row_bytes);
            PlaceRow(from, shadow.data(), geometry, to, matrix * geometry.dst_matrix + row * geometry.dst_row);
            TouchGm(from, geometry.row_bytes, false);
        }
    }
}

void CopyDn2Nz(At at)
{
    ReportError("dtype-unsupported", at, "DataCopy with Dn2NzParams does not exist on this chip; use Nd2NzParams.");
}

void CheckEnhanced(const AscendC::DataCopyEnhancedParams &params, At at)
{
    const bool plain = (params.blockMode == AscendC::BlockMode::BLOCK_MODE_NORMAL ||
                        params.blockMode == AscendC::BlockMode::BLOCK_MODE_MATRIX) &&
                       params.deqScale == AscendC::DeqScale::DEQ_NONE && !params.isRelu;
    if (!plain) {
        ReportError("dtype-unsupported", at,
                    "DataCopy converts nothing by DataCopyEnhancedParams on this chip; use Fixpipe for what leaves L0C.");
    }
}

bool IsCubePosition(const LocalRef &tensor) { return SpaceOf(tensor) != Space::UB; }

namespace {

// A copy inside the core in blocks. On this chip the gap into the Fixpipe buffer runs from head to head.
struct LocalBlocks {
    uint32_t count;
    uint32_t src_bytes;
    uint32_t dst_bytes;
    uint64_t src_step;
    uint64_t dst_step;
};

LocalBlocks TableBlocks(const AscendC::DataCopyParams &params, Space target, bool widens)
{
    const uint32_t unit = target == Space::FB ? 128 : 64;
    LocalBlocks blocks;
    blocks.count = params.blockCount;
    blocks.dst_bytes = params.blockLen * unit;
    blocks.src_bytes = widens ? blocks.dst_bytes / 2 : blocks.dst_bytes;
    const bool head_to_head = target == Space::FB;
    blocks.src_step = params.srcGap * 32u + (head_to_head ? 0 : blocks.src_bytes);
    blocks.dst_step = params.dstGap * unit + (head_to_head ? 0 : blocks.dst_bytes);
    return blocks;
}

void CopyBlock(const Cells &from, uint64_t source, const Cells &to, uint64_t target, const LocalBlocks &blocks)
{
    from.Touched(source, blocks.src_bytes, false);
    to.Touched(target, blocks.dst_bytes, true);
    if (blocks.src_bytes == blocks.dst_bytes) {
        std::memcpy(to.data + target, from.data + source, blocks.src_bytes);
        std::memcpy(to.undefined + target, from.undefined + source, blocks.src_bytes);
    } else {
        const uint32_t elements = blocks.src_bytes / 2;
        std::vector<uint16_t> halves(elements);
        std::vector<float> floats(elements);
        std::memcpy(halves.data(), from.data + source, blocks.src_bytes);
        HalfToFloat(halves.data(), floats.data(), elements);
        std::memcpy(to.data + target, floats.data(), blocks.dst_bytes);
        for (uint32_t i = 0; i < blocks.dst_bytes; ++i) {
            to.undefined[target + i] = from.undefined[source + i / 4 * 2 + i % 2];
        }
    }
}

bool CheckTable(const LocalRef &dst, const LocalRef &src, At at)
{
    const Checked row = SpaceOf(dst) == Space::BT ? Checked(Api::DataCopyToBias, Word("DataCopy to the bias table"))
                                                  : Checked(Api::DataCopyToFixpipe, Word("DataCopy to the Fixpipe buffer"));
    return CheckTypes(row, {dst.dtype, src.dtype}, at);
}

bool Widens(const LocalRef &dst, const LocalRef &src) { return src.dtype == DType::F16 && dst.dtype == DType::F32; }

void CopyToTable(const LocalRef &dst, const LocalRef &src, const LocalBlocks &blocks, At at)
{
    constexpr const char *api = "DataCopy";
    const Space target = SpaceOf(dst);
    // MTE1 fills the bias table, FIX its own buffer.
    RunCube(target == Space::BT ? Pipe::MTE1 : Pipe::FIX, api,
            CurrentChip().load_overhead + blocks.count * blocks.dst_bytes / CurrentChip().l1_table_rate, at);
    if (TheCore().timing || !CheckTable(dst, src, at)) {
        return;
    }
    Cells from;
    Cells to;
    if (!OpenCells(src, (blocks.count - 1) * blocks.src_step + blocks.src_bytes, kC0Bytes, false, api, "src", at,
                   SpaceBit(Space::L1), &from) ||
        !OpenCells(dst, (blocks.count - 1) * blocks.dst_step + blocks.dst_bytes, target == Space::FB ? 128 : 64, true,
                   api, "dst", at, SpaceBit(Space::BT) | SpaceBit(Space::FB), &to)) {
        return;
    }
    for (uint32_t i = 0; i < blocks.count; ++i) {
        CopyBlock(from, i * blocks.src_step, to, i * blocks.dst_step, blocks);
    }
}

// UB and L1 belong to different cores: the rows go through global memory, and the cube core takes them from there.
void HandOver(const LocalRef &dst, std::vector<uint8_t> data, std::vector<uint8_t> shadow, const Nd2Nz &geometry, At at)
{
    PostToCube(
        [=]() {
            Core &core = TheCore();
            BeginInstruction(Pipe::MTE2, "DataCopy", at);
            core.time.Run(Pipe::MTE2, static_cast<double>(data.size()) / CurrentChip().load_hit_rate, "DataCopy", at.line,
                          at.file);
            Cells to;
            if (core.timing || !OpenCells(dst, geometry.TargetExtent(), kC0Bytes, true, "DataCopy", "dst", at,
                                          SpaceBit(Space::L1), &to)) {
                return;
            }
            TouchTarget(geometry, to);
            for (uint32_t row = 0; row < geometry.rows; ++row) {
                PlaceRow(data.data() + uint64_t{row} * geometry.row_bytes,
                         shadow.data() + uint64_t{row} * geometry.row_bytes, geometry, to, row * geometry.dst_row);
            }
        },
        at);
}

void CopyUbToL1(const LocalRef &dst, const LocalRef &src, const Nd2Nz &geometry, At at)
{
    constexpr const char *api = "DataCopy";
    const uint64_t bytes = uint64_t{geometry.rows} * geometry.row_bytes;
    RunCube(Pipe::MTE3, api, CurrentChip().store_latency + bytes / CurrentChip().store_rate, at);
    std::vector<uint8_t> data(bytes);
    std::vector<uint8_t> shadow(bytes);
    if (!TheCore().timing) {
        Cells from;
        if (!OpenCells(src, geometry.SourceExtent(), kC0Bytes, false, api, "src", at, SpaceBit(Space::UB), &from)) {
            return;
        }
        for (uint32_t row = 0; row < geometry.rows; ++row) {
            const uint64_t target = uint64_t{row} * geometry.row_bytes;
            std::memcpy(data.data() + target, from.data + row * geometry.src_row, geometry.row_bytes);
            std::memcpy(shadow.data() + target, from.undefined + row * geometry.src_row, geometry.row_bytes);
            from.Touched(row * geometry.src_row, geometry.row_bytes, false);
        }
    }
    HandOver(dst, std::move(data), std::move(shadow), geometry, at);
}

bool CheckWay(const LocalRef &dst, const LocalRef &src, At at)
{
    if (SpaceOf(src) == Space::UB && SpaceOf(dst) == Space::L1) {
        return true;
    }
    ReportError("dtype-unsupported", at, "DataCopy has no way from %s to %s on this chip.", SpaceName(SpaceOf(src)),
                SpaceName(SpaceOf(dst)));
    return false;
}

}  // namespace

void CopyLocalDense(const LocalRef &dst, const LocalRef &src, uint32_t bytes, At at)
{
    if (bytes == 0) {
        return;
    }
    if (SpaceOf(dst) == Space::BT || SpaceOf(dst) == Space::FB) {
        return CopyToTable(dst, src, LocalBlocks{1, bytes, bytes, 0, 0}, at);
    }
    if (CheckWay(dst, src, at)) {
        CopyUbToL1(dst, src, Nd2Nz{1, 1, bytes, 0, 0, kC0Bytes, 0, 0}, at);
    }
}

void CopyLocalParams(const LocalRef &dst, const LocalRef &src, const AscendC::DataCopyParams &params, At at)
{
    if (params.blockCount == 0 || params.blockLen == 0) {
        return;
    }
    const Space target = SpaceOf(dst);
    if (target == Space::BT || target == Space::FB) {
        return CopyToTable(dst, src, TableBlocks(params, target, Widens(dst, src)), at);
    }
    if (!CheckWay(dst, src, at)) {
        return;
    }
    const uint32_t length = params.blockLen * 32u;
    // Blocks of any length stay dense: a row whose 32-byte pieces follow each other.
    CopyUbToL1(dst, src, Nd2Nz{1, params.blockCount, length, length + params.srcGap * 32u, 0, kC0Bytes,
                               length + params.dstGap * 32u, 0}, at);
}

void CopyLocalNd2Nz(const LocalRef &dst, const LocalRef &src, const AscendC::Nd2NzParams &params, At at)
{
    if (!CheckNd2Nz(Api::DataCopyNd2NzFromUb, params, dst.dtype, src.dtype, at)) {
        return;
    }
    CopyUbToL1(dst, src, Geometry(params, DTypeBytes(src.dtype)), at);
}

void CopyPadUbToL1(const LocalRef &dst, const LocalRef &src, const AscendC::DataCopyExtParams &rows,
                   const AscendC::Nd2NzParams &params, At at)
{
    if (!CheckNd2Nz(Api::DataCopyNd2NzFromUb, params, dst.dtype, src.dtype, at)) {
        return;
    }
    Nd2Nz geometry = Geometry(params, DTypeBytes(src.dtype));
    geometry.src_row = (rows.blockLen + 31) / 32 * 32 + rows.srcStride * 32u;
    CopyUbToL1(dst, src, geometry, at);
}

}  // namespace evokernel::twin
