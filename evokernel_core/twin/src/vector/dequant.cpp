// CastDequant and AddDeqRelu: integers scaled to half, int8_t or uint8_t.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "evokernel/twin/api_vector.h"
#include "vector/rounding.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kTableBytes = kDequantLanes * 8;
constexpr uint32_t kScaleMantissaDropped = 13;  // the hardware reads a scale of 10 mantissa bits
constexpr int kOffsetShift = 37;                // of an entry: scale in bits 0 to 31, then offset, then sign mode
constexpr int kSignShift = 46;
constexpr int kOffsetBits = 9;

float ShortScale(float scale) { return FloatOf(BitsOf(scale) >> kScaleMantissaDropped << kScaleMantissaDropped); }

int32_t ShortOffset(int64_t offset)
{
    const auto shift = static_cast<unsigned>(64 - kOffsetBits);
    return static_cast<int32_t>(static_cast<int64_t>(static_cast<uint64_t>(offset) << shift) >> shift);
}

DequantLane Decode(uint64_t entry)
{
    DequantLane lane;
    lane.scale = FloatOf(static_cast<uint32_t>(entry));
    lane.offset = ShortOffset(static_cast<int64_t>(entry >> kOffsetShift));
    lane.is_signed = (entry >> kSignShift & 1) != 0;
    return lane;
}

// The 16 lanes of a data block's parameters; false where the table is not in order.
bool LoadLanes(bool vector, DequantLane *lanes, At at)
{
    const Registers &registers = TheCore().registers;
    if (!vector) {
        std::fill(lanes, lanes + kDequantLanes, registers.dequant);
        return true;
    }
    if (!registers.has_table) {
        ReportError("param-limit", at,
                    "CastDequant with isVecDeq needs a table; call SetDeqScale with a tensor first.");
        return false;
    }
    const uint8_t *table = LocalRange(registers.dequant_table, kTableBytes, 32, false, "CastDequant", "vdeq", at);
    if (table == nullptr) {
        return false;
    }
    for (int i = 0; i < kDequantLanes; ++i) {
        uint64_t entry;
        std::memcpy(&entry, table + i * 8, 8);
        lanes[i] = Decode(entry);
    }
    return true;
}

struct ByteCast {
    Walk walk;
    Operand dst;  // walks blocks as the source does; each gets 16 bytes
    Operand src;
};

void StoreByte(const ByteCast &cast, const DequantLane *lanes, uint32_t half, uint32_t repeat, uint32_t lane)
{
    Core &core = TheCore();
    const uint32_t from = cast.src.Address(repeat, lane);
    const uint32_t block = cast.dst.ref.address + repeat * cast.dst.repeat +
                           lane / kDequantLanes * cast.dst.block;
    const uint32_t to = block + half + lane % kDequantLanes;
    int16_t value;
    std::memcpy(&value, core.ub + from, 2);
    const DequantLane &how = lanes[lane % kDequantLanes];
    const double scaled = RoundToInteger(static_cast<double>(static_cast<float>(value) * how.scale) + how.offset,
                                         AscendC::RoundMode::CAST_RINT);
    core.ub[to] = how.is_signed ? static_cast<uint8_t>(SaturateSigned(scaled, 8))
                                : static_cast<uint8_t>(SaturateUnsigned(scaled, 8));
    core.undefined[to] = AnyUndefined(from, 2) ? kUndefined : 0;
}

void ToBytes(const LocalRef &dst, const LocalRef &src, const Dequant &how, const Form &form, At at)
{
    const char *name = "CastDequant";
    ByteCast cast;
    if (!ResolveWalk(form, 2, Api::CastDequant, at, &cast.walk)) {
        return;
    }
    cast.src = MakeOperand(src, cast.walk, form, form.src0_block, form.src0_repeat);
    LocalRef blocks = dst;
    blocks.dtype = DType::S16;
    cast.dst = MakeOperand(blocks, cast.walk, form, form.dst_block, form.dst_repeat);
    const Operand *sources[] = {&cast.src};
    RunVector(name, WalkCycles(cast.walk, SimpleRate(2), &cast.dst, sources, 1), at);
    DequantLane lanes[kDequantLanes];
    if (TheCore().timing || !LoadLanes(how.vector, lanes, at)) {
        return;
    }
    if (!how.vector && lanes[0].is_signed != (dst.dtype == DType::S8)) {
        ReportError("param-limit", at, "CastDequant to %s needs SetDeqScale with signMode %s.", DTypeName(dst.dtype),
                    dst.dtype == DType::S8 ? "true" : "false");
        return;
    }
    if (!(CheckOperand(cast.dst, cast.walk, 32, true, name, "dst", at) &
          CheckOperand(cast.src, cast.walk, 32, false, name, "src", at))) {
        return;
    }
    CheckOverlap(cast.dst, cast.src, cast.walk, false, name, at);
    for (uint32_t r = 0; r < cast.walk.repeats; ++r) {
        for (uint32_t lane = 0; lane < cast.walk.LastLane(r); ++lane) {
            if (cast.walk.Active(r, lane)) {
                StoreByte(cast, lanes, how.half_block ? kDequantLanes : 0, r, lane);
            }
        }
    }
}

uint64_t Encode(const DequantLane &lane)
{
    constexpr uint64_t offset_mask = (uint64_t{1} << kOffsetBits) - 1;
    return BitsOf(lane.scale) | (static_cast<uint64_t>(lane.offset) & offset_mask) << kOffsetShift |
           (lane.is_signed ? uint64_t{1} << kSignShift : 0);
}

}  // namespace

void Dequantize(const LocalRef &dst, const LocalRef &src, const Dequant &how, const Form &form, At at)
{
    if (!CheckTypes(Api::CastDequant, {dst.dtype, src.dtype}, at)) {
        return;
    }
    if (dst.dtype == DType::F16) {
        return Cast(dst, src, AscendC::RoundMode::CAST_RINT, form, at);
    }
    ToBytes(dst, src, how, form, at);
}

void AddDequantize(const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, const Form &form, At at)
{
    const char *name = "AddDeqRelu";
    Walk walk;
    if (!ResolveWalk(form, 4, Api::AddDeqRelu, at, &walk)) {
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    const Operand a = MakeOperand(src0, walk, form, form.src0_block, form.src0_repeat);
    const Operand b = MakeOperand(src1, walk, form, form.src1_block, form.src1_repeat);
    const Operand *sources[] = {&a, &b};
    RunVector(name, WalkCycles(walk, SimpleRate(4), &to, sources, 2), at);
    if (TheCore().timing || !CheckTypes(Api::AddDeqRelu, {dst.dtype, src0.dtype, src1.dtype}, at)) {
        return;
    }
    if (!(CheckOperand(to, walk, 32, true, name, "dst", at) & CheckOperand(a, walk, 32, false, name, "src0", at) &
          CheckOperand(b, walk, 32, false, name, "src1", at))) {
        return;
    }
    CheckOverlap(to, a, walk, false, name, at);
    CheckOverlap(to, b, walk, false, name, at);
    Propagate(to, sources, 2, walk);
    alignas(64) int32_t left[kRepeatBytes / 4];
    alignas(64) int32_t right[kRepeatBytes / 4];
    alignas(64) uint16_t out[kRepeatBytes / 4];
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        LoadTile(a, walk, r, left);
        LoadTile(b, walk, r, right);
        for (uint32_t lane = 0; lane < walk.LastLane(r); ++lane) {
            const auto wide = static_cast<uint32_t>(left[lane]) + static_cast<uint32_t>(right[lane]);
            const auto sum = static_cast<int32_t>(wide);
            out[lane] = HalfBits(std::max(0.0F, static_cast<float>(sum) * TheCore().deq_scale));
        }
        StoreTile(to, walk, r, out);
    }
}

void SetDequant(float scale, int16_t offset, bool is_signed)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.registers.dequant = DequantLane{ShortScale(scale), ShortOffset(offset), is_signed};
}

void SetDequantVector(const LocalRef &table, const float *scales, const int16_t *offsets, const bool *is_signed, At at)
{
    Core &core = TheCore();
    LocalRef words = table;
    words.dtype = DType::U64;
    for (int i = 0; i < kDequantLanes; ++i) {
        LocalSet(words, i, Encode(DequantLane{ShortScale(scales[i]), offsets[i], is_signed[i]}), at);
    }
    core.registers.dequant_table = words;
    core.registers.has_table = true;
}

}  // namespace evokernel::twin
