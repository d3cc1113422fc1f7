#include "vector/arith.h"

#include <cmath>
#include <cstring>

#include "vector/convert.h"
#include "vector/execute.h"

namespace evokernel::twin {

namespace {

// Rsqrt and Reciprocal are documented as low precision: half results are not within 1e-3 and float
// results not within 1e-4 of the true value. The twin keeps as many bits as these statements leave.
constexpr int kApproximateBitsHalf = 9;
constexpr int kApproximateBitsFloat = 13;

// Whether the instruction takes a first source of that type.
constexpr bool Takes(Api api, DType type)
{
    const ApiRow &row = RowOf(api);
    for (int i = 0; i < row.rules; ++i) {
        const TypeRule &rule = kTypeRules[row.first_rule + i];
        if (rule.types[rule.sources == 0 ? 0 : 1] == type) {
            return true;
        }
    }
    return false;
}

// The operands of a call in the type in which it is computed.
template <typename T> struct Numbers {
    const T *a;
    const T *b;
    T *d;
    size_t n;
    T scalar;
    int64_t bits;
    bool round;
    int kept;
};

template <Api kApi, typename T, typename F> void Each(const Numbers<T> &numbers, F f)
{
    constexpr ApiRow row = RowOf(kApi);
    for (size_t i = 0; i < numbers.n; ++i) {
        Lane<T> lane{numbers.a[i], T{}, T{}, numbers.scalar, numbers.bits, numbers.round, numbers.kept};
        if constexpr (row.Has(kTwoSources)) {
            lane.b = numbers.b[i];
        }
        if constexpr (row.Has(kReadsDst)) {
            lane.d = numbers.d[i];
        }
        numbers.d[i] = f(lane);
    }
}

// Largest magnitude bits: infinity or NaN compare at or above 0x7F800000.
bool AnyInfinity(const float *values, size_t n)
{
    uint32_t infinite = 0;
    for (size_t i = 0; i < n; ++i) {
        infinite |= static_cast<uint32_t>((BitsOf(values[i]) & 0x7FFFFFFFu) == 0x7F800000u);
    }
    return infinite != 0;
}

bool Overflowed(const float *a, const float *b, const float *d, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        if (std::isinf(d[i]) && std::isfinite(a[i]) && (b == nullptr || std::isfinite(b[i]))) {
            return true;
        }
    }
    return false;
}

template <Api kApi, typename F> bool FloatLanes(const VecCall &call, const Lanes &lanes, F f)
{
    constexpr ApiRow row = RowOf(kApi);
    const auto *a = static_cast<const float *>(lanes.src0);
    const auto *b = static_cast<const float *>(lanes.src1);
    auto *d = static_cast<float *>(lanes.dst);
    const auto scalar = static_cast<float>(call.scalar.value);
    Each<kApi>(Numbers<float>{a, b, d, lanes.n, scalar, 0, false, kApproximateBitsFloat}, f);
    if (!row.Has(kOverflows) || !AnyInfinity(d, lanes.n)) {
        return false;
    }
    // In place, the sources are gone; a NaN or infinity that came in cannot be told from one made here.
    const bool in_place = a == d || b == d || row.Has(kReadsDst);
    return !in_place && Overflowed(a, b, d, lanes.n);
}

// Sources and destination of 16 bits (or a float destination), computed in float.
template <Api kApi, typename F> bool HalfLanes(const VecCall &call, const Lanes &lanes, F f)
{
    constexpr ApiRow row = RowOf(kApi);
    float a[kChunk];
    float b[kChunk];
    float d[kChunk];
    const bool float_dst = call.dst.dtype == DType::F32;
    HalfToFloat(static_cast<const uint16_t *>(lanes.src0), a, lanes.n);
    if (lanes.src1 != nullptr) {
        HalfToFloat(static_cast<const uint16_t *>(lanes.src1), b, lanes.n);
    }
    if (row.Has(kReadsDst)) {
        if (float_dst) {
            std::memcpy(d, lanes.dst, lanes.n * sizeof(float));
        } else {
            HalfToFloat(static_cast<const uint16_t *>(lanes.dst), d, lanes.n);
        }
    }
    const auto scalar = static_cast<float>(call.scalar.value);
    Each<kApi>(Numbers<float>{a, b, d, lanes.n, scalar, 0, false, kApproximateBitsHalf}, f);
    if (float_dst) {
        std::memcpy(lanes.dst, d, lanes.n * sizeof(float));
        return false;
    }
    FloatToHalf(d, static_cast<uint16_t *>(lanes.dst), lanes.n);
    if (!row.Has(kOverflows)) {
        return false;
    }
    HalfToFloat(static_cast<const uint16_t *>(lanes.dst), d, lanes.n);
    return AnyInfinity(d, lanes.n) && Overflowed(a, lanes.src1 == nullptr ? nullptr : b, d, lanes.n);
}

template <Api kApi, typename T, typename F> bool IntegerLanes(const VecCall &call, const Lanes &lanes, F f)
{
    Each<kApi>(Numbers<T>{static_cast<const T *>(lanes.src0), static_cast<const T *>(lanes.src1),
                          static_cast<T *>(lanes.dst), lanes.n, static_cast<T>(call.scalar.integer),
                          call.scalar.integer, call.flag, 0}, f);
    return false;
}

// Only what the table gives the instruction is compiled.
template <Api kApi, typename F> bool LanesOf(const VecCall &call, const Lanes &lanes, F f)
{
    switch (call.src0.dtype) {
        case DType::F32:
            if constexpr (Takes(kApi, DType::F32)) {
                return FloatLanes<kApi>(call, lanes, f);
            }
            return false;
        case DType::F16:
            if constexpr (Takes(kApi, DType::F16)) {
                return HalfLanes<kApi>(call, lanes, f);
            }
            return false;
        case DType::S16:
            if constexpr (Takes(kApi, DType::S16)) {
                return IntegerLanes<kApi, int16_t>(call, lanes, f);
            }
            return false;
        case DType::U16:
            if constexpr (Takes(kApi, DType::U16)) {
                return IntegerLanes<kApi, uint16_t>(call, lanes, f);
            }
            return false;
        case DType::S32:
            if constexpr (Takes(kApi, DType::S32)) {
                return IntegerLanes<kApi, int32_t>(call, lanes, f);
            }
            return false;
        case DType::U32:
            if constexpr (Takes(kApi, DType::U32)) {
                return IntegerLanes<kApi, uint32_t>(call, lanes, f);
            }
            return false;
        default:
            return false;
    }
}

}  // namespace

bool ComputeLanes(const VecCall &call, const Lanes &lanes)
{
    switch (call.op) {
#define EVK_LANE(Name)   \
    case Api::Name:      \
        return LanesOf<Api::Name>(call, lanes, [](const auto &lane) { return execute::Name(lane); });
        EVK_LANE_INSTRUCTIONS(EVK_LANE)
#undef EVK_LANE
        default:
            return false;
    }
}

}  // namespace evokernel::twin
