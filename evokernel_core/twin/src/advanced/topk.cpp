// TopK: the k highest or lowest elements of each row and their indices.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "evokernel/twin/api_vector.h"
#include "vector/convert.h"
#include "vector/sort.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr int32_t kGroup = 32;
constexpr int32_t kLongestRow = 4096;

bool CheckShape(const TopKCall &call, At at)
{
    if (call.src.dtype != DType::F16 && call.src.dtype != DType::F32) {
        ReportError("dtype-unsupported", at, "TopK supports half and float on this chip, not %s.",
                    DTypeName(call.src.dtype));
        return false;
    }
    const bool row = call.inner > 0 && call.inner % kGroup == 0 && call.inner <= kLongestRow;
    if (!row || call.n < 1 || call.n > call.inner || (call.small && call.inner != kGroup)) {
        ReportError("param-limit", at,
                    "TopK needs rows of a multiple of 32 elements (%s), of which 1 to all count; inner is %d, n is %d.",
                    call.small ? Word("32 in small mode") : Word("at most 4096"), call.inner, call.n);
        return false;
    }
    if (call.k < 1 || call.k > call.n) {
        ReportError("param-limit", at, "TopK takes 1 to n = %d elements of a row, not %d.", call.n, call.k);
        return false;
    }
    if (call.small && call.has_finish) {
        ReportError("param-limit", at,
                    "TopK in small mode takes no rows that are finished; isHasfinish must be false.");
        return false;
    }
    return true;
}

// The steps that the interface is made of: indices, negation, sorting, merging, taking the first k.
void Charge(const TopKCall &call, At at)
{
    const Chip &chip = CurrentChip();
    const uint32_t width = DTypeBytes(call.src.dtype);
    const double row = call.inner;
    const double rows = call.rows;
    const double batch = call.small ? rows : 1;
    const int calls = call.small ? 1 : call.rows;
    if (!call.given_index) {
        RunVector("TopK", row * 4 / kRepeatBytes, at);
    }
    for (int i = 0; i < calls; ++i) {
        if (!call.largest) {
            RunVector("TopK", 2 * batch * row * width / kRepeatBytes, at);
        }
        RunVector("TopK", SortCycles(batch * row), at);
        for (int32_t length = kGroup; length < call.inner; length *= 4) {
            RunVector("TopK", SortCycles(row), at);
        }
        const double lanes = batch * call.k * (4.0 / width);
        RunVector("TopK", 2 * lanes / (width == 2 ? chip.gather_mask_b16 : chip.gather_mask_b32), at);
    }
}

bool Usable(const TopKCall &call, uint32_t value_row, uint32_t index_row, At at)
{
    const auto rows = static_cast<uint64_t>(call.rows);
    const auto inner = static_cast<uint64_t>(call.inner);
    const uint32_t width = DTypeBytes(call.src.dtype);
    const uint64_t before_last = rows - 1;
    const auto k = static_cast<uint64_t>(call.k);
    bool usable = LocalRange(call.src, rows * inner * width, 32, false, "TopK", "srcLocal", at) != nullptr;
    usable = LocalRange(call.values, (before_last * value_row + k) * width, 32, true, "TopK", "dstValueLocal", at) !=
                 nullptr && usable;
    usable = LocalRange(call.indices, (before_last * index_row + k) * 4, 32, true, "TopK", "dstIndexLocal", at) !=
                 nullptr && usable;
    if (call.given_index) {
        usable = LocalRange(call.src_index, (call.small ? rows : 1) * inner * 4, 32, false, "TopK", "srcIndexLocal",
                            at) != nullptr && usable;
    }
    if (call.has_finish) {
        usable = LocalRange(call.finish, rows, 32, false, "TopK", "finishLocal", at) != nullptr && usable;
    }
    return usable;
}

// Positions of a row in the order of the result.
std::vector<uint32_t> Ordered(const TopKCall &call, int32_t row)
{
    const uint32_t width = DTypeBytes(call.src.dtype);
    const uint8_t *base = TheCore().ub + call.src.address + static_cast<uint32_t>(row * call.inner) * width;
    const float sign = call.largest ? 1.0F : -1.0F;
    std::vector<uint32_t> order(static_cast<size_t>(call.inner));
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return ScoreBefore(sign * PairScore(base + a * width, call.src.dtype),
                           sign * PairScore(base + b * width, call.src.dtype));
    });
    return order;
}

void Store(const TopKCall &call, int32_t row, const std::vector<uint32_t> &order, uint32_t value_row,
           uint32_t index_row)
{
    Core &core = TheCore();
    const uint32_t width = DTypeBytes(call.src.dtype);
    const auto start = static_cast<uint32_t>(row * call.inner);
    const bool finished = call.has_finish && core.ub[call.finish.address + static_cast<uint32_t>(row)] != 0;
    for (uint32_t i = 0; i < static_cast<uint32_t>(call.k); ++i) {
        const uint32_t from = call.src.address + (start + order[i]) * width;
        const uint32_t value = call.values.address + (static_cast<uint32_t>(row) * value_row + i) * width;
        const uint32_t place = call.indices.address + (static_cast<uint32_t>(row) * index_row + i) * 4;
        std::memcpy(core.ub + value, core.ub + from, width);
        std::memcpy(core.undefined + value, core.undefined + from, width);
        const uint32_t entry = call.src_index.address + ((call.small ? start : 0) + order[i]) * 4;
        auto index = static_cast<int32_t>(order[i]);
        if (call.given_index) {
            std::memcpy(&index, core.ub + entry, 4);
        }
        index = finished ? call.n : index;
        std::memcpy(core.ub + place, &index, 4);
        MarkDefined(place, 4);
    }
}

}  // namespace

void TopKRows(const TopKCall &call, At at)
{
    if (call.rows <= 0 || !CheckShape(call, at)) {
        return;
    }
    Charge(call, at);
    Core &core = TheCore();
    if (core.timing) {
        return;
    }
    if (call.tmp != nullptr && uint64_t{call.tmp->address} + call.tmp_bytes > call.tmp->limit) {
        ReportError("temp-buffer", at,
                    "TopK needs %u bytes of temporary space, but gets %u; take the size from GetTopKMaxMinTmpSize.",
                    call.tmp_bytes, call.tmp->limit - call.tmp->address);
    }
    const uint32_t per_block = kBlockBytes / DTypeBytes(call.src.dtype);
    const auto k = static_cast<uint32_t>(call.k);
    const uint32_t value_row = call.small ? k : (k + per_block - 1) / per_block * per_block;
    const uint32_t index_row = call.small ? k : (k + 7) / 8 * 8;
    if (!Usable(call, value_row, index_row, at)) {
        return;
    }
    const uint64_t bytes = static_cast<uint64_t>(call.rows) * static_cast<uint64_t>(call.inner) *
                           DTypeBytes(call.src.dtype);
    if (AnyUndefined(call.src.address, bytes)) {
        ReportUndefined("TopK", call.src, bytes, at);
    }
    for (int32_t row = 0; row < call.rows; ++row) {
        Store(call, row, Ordered(call, row), value_row, index_row);
    }
}

}  // namespace evokernel::twin
