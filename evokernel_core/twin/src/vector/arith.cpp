#include "vector/arith.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "vector/convert.h"

namespace evokernel::twin {

const char *VecOpName(VecOp op)
{
    static const char *const names[] = {
        "Add",   "Sub",  "Mul",  "Div",       "Max",       "Min",        "AddRelu", "SubRelu",   "And",         "Or",
        "Exp",   "Ln",   "Abs",  "Sqrt",      "Rsqrt",     "Reciprocal", "Relu",    "Not",       "Adds",        "Muls",
        "Maxs",  "Mins", "LeakyRelu", "ShiftLeft", "ShiftRight", "Axpy", "MulAddDst", "FusedMulAdd", "MulAddRelu",
    };
    return names[static_cast<int>(op)];
}

bool ReadsDst(VecOp op)
{
    return op == VecOp::Axpy || op == VecOp::MulAddDst || op == VecOp::FusedMulAdd || op == VecOp::MulAddRelu;
}

bool HasTwoSources(VecOp op)
{
    return op <= VecOp::Or || op == VecOp::MulAddDst || op == VecOp::FusedMulAdd || op == VecOp::MulAddRelu;
}

bool HasScalar(VecOp op) { return op >= VecOp::Adds && op <= VecOp::Axpy; }

namespace {

bool IsFloat(DType type) { return type == DType::F16 || type == DType::F32; }

bool SameTypeSupported(VecOp op, DType type)
{
    switch (op) {
        case VecOp::Add:
        case VecOp::Sub:
        case VecOp::Mul:
        case VecOp::Max:
        case VecOp::Min:
        case VecOp::Adds:
        case VecOp::Muls:
        case VecOp::Maxs:
        case VecOp::Mins:
            return IsFloat(type) || type == DType::S16 || type == DType::S32;
        case VecOp::Relu:
            return IsFloat(type) || type == DType::S32;
        case VecOp::AddRelu:
        case VecOp::SubRelu:
            return IsFloat(type) || type == DType::S16;
        case VecOp::And:
        case VecOp::Or:
        case VecOp::Not:
            return type == DType::S16 || type == DType::U16;
        case VecOp::ShiftLeft:
        case VecOp::ShiftRight:
            return type == DType::S16 || type == DType::U16 || type == DType::S32 || type == DType::U32;
        default:
            return IsFloat(type);
    }
}

// Rsqrt and Reciprocal are documented as low precision: half results are not within 1e-3 and float
// results not within 1e-4 of the true value. The twin keeps as many bits as these statements leave.
constexpr int kApproximateBitsHalf = 9;
constexpr int kApproximateBitsFloat = 13;

float KeepBits(float value, int bits)
{
    if (!std::isfinite(value) || value == 0) {
        return value;
    }
    const int dropped = 24 - bits;
    uint32_t raw = BitsOf(value);
    raw += 1U << (dropped - 1);
    raw &= ~((1U << dropped) - 1);
    return FloatOf(raw);
}

template <typename F> void Map1(const float *a, float *d, size_t n, F f)
{
    for (size_t i = 0; i < n; ++i) {
        d[i] = f(a[i]);
    }
}

template <typename F> void Map2(const float *a, const float *b, float *d, size_t n, F f)
{
    for (size_t i = 0; i < n; ++i) {
        d[i] = f(a[i], b[i]);
    }
}

float PropagateMax(float x, float y) { return x != x ? x : y != y ? y : (x < y ? y : x); }
float PropagateMin(float x, float y) { return x != x ? x : y != y ? y : (y < x ? y : x); }

void FloatBinary(VecOp op, const float *a, const float *b, float *d, size_t n)
{
    switch (op) {
        case VecOp::Add:
            return Map2(a, b, d, n, [](float x, float y) { return x + y; });
        case VecOp::Sub:
            return Map2(a, b, d, n, [](float x, float y) { return x - y; });
        case VecOp::Mul:
            return Map2(a, b, d, n, [](float x, float y) { return x * y; });
        case VecOp::Div:
            return Map2(a, b, d, n, [](float x, float y) { return x / y; });
        case VecOp::Max:
            return Map2(a, b, d, n, PropagateMax);
        case VecOp::Min:
            return Map2(a, b, d, n, PropagateMin);
        case VecOp::AddRelu:
            return Map2(a, b, d, n, [](float x, float y) { return x + y < 0 ? 0.0F : x + y; });
        case VecOp::SubRelu:
            return Map2(a, b, d, n, [](float x, float y) { return x - y < 0 ? 0.0F : x - y; });
        default:
            return;
    }
}

void FloatFused(VecOp op, const float *a, const float *b, float *d, float s, size_t n)
{
    const auto multiply_add = [](float x, float y, float z) {
        return static_cast<float>(static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z));
    };
    for (size_t i = 0; i < n; ++i) {
        switch (op) {
            case VecOp::Axpy:
                d[i] = multiply_add(s, a[i], d[i]);
                break;
            case VecOp::MulAddDst:
                d[i] = multiply_add(a[i], b[i], d[i]);
                break;
            case VecOp::FusedMulAdd:
                d[i] = multiply_add(a[i], d[i], b[i]);
                break;
            default: {
                const float sum = multiply_add(a[i], d[i], b[i]);
                d[i] = sum < 0 ? 0.0F : sum;
            }
        }
    }
}

void FloatUnary(VecOp op, const float *a, float *d, float s, size_t n, int approximate_bits)
{
    switch (op) {
        case VecOp::Exp:
            return Map1(a, d, n, [](float x) { return std::exp(x); });
        case VecOp::Ln:
            return Map1(a, d, n, [](float x) { return std::log(x); });
        case VecOp::Abs:
            return Map1(a, d, n, [](float x) { return std::fabs(x); });
        case VecOp::Sqrt:
            return Map1(a, d, n, [](float x) { return std::sqrt(x); });
        case VecOp::Rsqrt:
            return Map1(a, d, n, [=](float x) { return KeepBits(1.0F / std::sqrt(x), approximate_bits); });
        case VecOp::Reciprocal:
            return Map1(a, d, n, [=](float x) { return KeepBits(1.0F / x, approximate_bits); });
        case VecOp::Relu:
            return Map1(a, d, n, [](float x) { return x < 0 ? 0.0F : x; });
        case VecOp::Adds:
            return Map1(a, d, n, [=](float x) { return x + s; });
        case VecOp::Muls:
            return Map1(a, d, n, [=](float x) { return x * s; });
        case VecOp::Maxs:
            return Map1(a, d, n, [=](float x) { return PropagateMax(x, s); });
        case VecOp::Mins:
            return Map1(a, d, n, [=](float x) { return PropagateMin(x, s); });
        case VecOp::LeakyRelu:
            return Map1(a, d, n, [=](float x) { return x < 0 ? x * s : x; });
        default:
            return;
    }
}

bool CanOverflow(VecOp op)
{
    switch (op) {
        case VecOp::Add:
        case VecOp::Sub:
        case VecOp::Mul:
        case VecOp::Exp:
        case VecOp::Adds:
        case VecOp::Muls:
        case VecOp::AddRelu:
        case VecOp::SubRelu:
        case VecOp::Axpy:
        case VecOp::MulAddDst:
        case VecOp::FusedMulAdd:
        case VecOp::MulAddRelu:
            return true;
        default:
            return false;
    }
}

// Largest magnitude bits: infinity or NaN compare at or above 0x7F800000.
bool AnyInfinity(const float *values, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; ++i) {
        found |= static_cast<uint32_t>((BitsOf(values[i]) & 0x7FFFFFFFu) == 0x7F800000u);
    }
    return found != 0;
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

void ComputeFloat(const VecCall &call, const float *a, const float *b, float *d, size_t n, int approximate_bits)
{
    const float s = static_cast<float>(call.scalar.value);
    if (ReadsDst(call.op)) {
        FloatFused(call.op, a, b, d, s, n);
    } else if (HasTwoSources(call.op)) {
        FloatBinary(call.op, a, b, d, n);
    } else {
        FloatUnary(call.op, a, d, s, n, approximate_bits);
    }
}

bool FloatLanes(const VecCall &call, const Lanes &lanes)
{
    const auto *a = static_cast<const float *>(lanes.src0);
    const auto *b = static_cast<const float *>(lanes.src1);
    auto *d = static_cast<float *>(lanes.dst);
    ComputeFloat(call, a, b, d, lanes.n, kApproximateBitsFloat);
    if (!CanOverflow(call.op) || !AnyInfinity(d, lanes.n)) {
        return false;
    }
    // In place, the sources are gone; a NaN or infinity that came in cannot be told from one made here.
    const bool in_place = a == d || b == d || ReadsDst(call.op);
    return !in_place && Overflowed(a, b, d, lanes.n);
}

// Sources and destination of 16 bits (or a float destination), computed in float.
bool HalfLanes(const VecCall &call, const Lanes &lanes)
{
    float a[kChunk];
    float b[kChunk];
    float d[kChunk];
    const bool float_dst = call.dst.dtype == DType::F32;
    HalfToFloat(static_cast<const uint16_t *>(lanes.src0), a, lanes.n);
    if (lanes.src1 != nullptr) {
        HalfToFloat(static_cast<const uint16_t *>(lanes.src1), b, lanes.n);
    }
    if (ReadsDst(call.op)) {
        if (float_dst) {
            std::memcpy(d, lanes.dst, lanes.n * sizeof(float));
        } else {
            HalfToFloat(static_cast<const uint16_t *>(lanes.dst), d, lanes.n);
        }
    }
    ComputeFloat(call, a, lanes.src1 == nullptr ? nullptr : b, d, lanes.n, kApproximateBitsHalf);
    if (float_dst) {
        std::memcpy(lanes.dst, d, lanes.n * sizeof(float));
        return false;
    }
    FloatToHalf(d, static_cast<uint16_t *>(lanes.dst), lanes.n);
    if (!CanOverflow(call.op)) {
        return false;
    }
    HalfToFloat(static_cast<const uint16_t *>(lanes.dst), d, lanes.n);
    return AnyInfinity(d, lanes.n) && Overflowed(a, lanes.src1 == nullptr ? nullptr : b, d, lanes.n);
}

template <typename T> T ShiftedRight(T value, int64_t bits, bool round)
{
    if (bits <= 0) {
        return value;
    }
    const int64_t wide = static_cast<int64_t>(value);
    return static_cast<T>(round ? (wide + (int64_t{1} << (bits - 1))) >> bits : wide >> bits);
}

template <typename T> void IntegerLanes(const VecCall &call, const Lanes &lanes)
{
    using U = std::make_unsigned_t<T>;
    const auto *a = static_cast<const T *>(lanes.src0);
    const auto *b = static_cast<const T *>(lanes.src1);
    auto *d = static_cast<T *>(lanes.dst);
    const T s = static_cast<T>(call.scalar.integer);
    const auto add = [](T x, T y) { return static_cast<T>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y))); };
    const auto subtract = [](T x, T y) {
        return static_cast<T>(static_cast<U>(static_cast<U>(x) - static_cast<U>(y)));
    };
    const auto multiply = [](T x, T y) {
        return static_cast<T>(static_cast<U>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)));
    };
    const auto relu = [](T x) { return x < T(0) ? T(0) : x; };
    for (size_t i = 0; i < lanes.n; ++i) {
        switch (call.op) {
            case VecOp::Add: d[i] = add(a[i], b[i]); break;
            case VecOp::Sub: d[i] = subtract(a[i], b[i]); break;
            case VecOp::Mul: d[i] = multiply(a[i], b[i]); break;
            case VecOp::Max: d[i] = std::max(a[i], b[i]); break;
            case VecOp::Min: d[i] = std::min(a[i], b[i]); break;
            case VecOp::AddRelu: d[i] = relu(add(a[i], b[i])); break;
            case VecOp::SubRelu: d[i] = relu(subtract(a[i], b[i])); break;
            case VecOp::And: d[i] = static_cast<T>(a[i] & b[i]); break;
            case VecOp::Or: d[i] = static_cast<T>(a[i] | b[i]); break;
            case VecOp::Not: d[i] = static_cast<T>(~a[i]); break;
            case VecOp::Relu: d[i] = relu(a[i]); break;
            case VecOp::Adds: d[i] = add(a[i], s); break;
            case VecOp::Muls: d[i] = multiply(a[i], s); break;
            case VecOp::Maxs: d[i] = std::max(a[i], s); break;
            case VecOp::Mins: d[i] = std::min(a[i], s); break;
            case VecOp::ShiftLeft: d[i] = static_cast<T>(static_cast<uint64_t>(a[i]) << call.scalar.integer); break;
            case VecOp::ShiftRight: d[i] = ShiftedRight(a[i], call.scalar.integer, call.flag); break;
            default: break;
        }
    }
}

}  // namespace

bool SupportsTypes(VecOp op, DType dst, DType src)
{
    if ((op == VecOp::Axpy || op == VecOp::MulAddDst) && dst == DType::F32 && src == DType::F16) {
        return true;
    }
    return dst == src && SameTypeSupported(op, src);
}

bool ComputeLanes(const VecCall &call, const Lanes &lanes)
{
    switch (call.src0.dtype) {
        case DType::F32:
            return FloatLanes(call, lanes);
        case DType::F16:
            return HalfLanes(call, lanes);
        case DType::S16:
            IntegerLanes<int16_t>(call, lanes);
            return false;
        case DType::U16:
            IntegerLanes<uint16_t>(call, lanes);
            return false;
        case DType::S32:
            IntegerLanes<int32_t>(call, lanes);
            return false;
        case DType::U32:
            IntegerLanes<uint32_t>(call, lanes);
            return false;
        default:
            return false;
    }
}

}  // namespace evokernel::twin
