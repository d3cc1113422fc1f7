// High-level functions of one or two operands. Results are computed in double and rounded once;
// time is charged as the sequence of basic instructions that such a function takes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_math.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kWord = 256;  // bytes of one repeat: the least that a temporary holds of each live value

// How a function is charged: instructions at the simple rate and at that of Exp, Ln, Sqrt and Div; and how
// many temporaries of the operand's size it keeps alive.
struct Recipe {
    const char *name;
    int simple;
    int slow;
    int live;
};

// Counted from the usual formulas (range reduction, polynomial, selection); assumed, not published.
Recipe RecipeOf(Math op)
{
    switch (op) {
        case Math::Tanh: return {"Tanh", 5, 2, 1};
        case Math::Sigmoid: return {"Sigmoid", 2, 2, 1};
        case Math::Erf: return {"Erf", 22, 1, 3};
        case Math::Erfc: return {"Erfc", 24, 2, 7};
        case Math::Gelu: return {"Gelu", 7, 2, 2};
        case Math::FasterGelu: return {"FasterGelu", 4, 2, 1};
        case Math::FasterGeluV2: return {"FasterGeluV2", 9, 0, 2};
        case Math::Silu: return {"Silu", 2, 2, 0};
        case Math::Swish: return {"Swish", 3, 2, 0};
        case Math::Log: return {"Log", 0, 1, 0};
        case Math::Log2: return {"Log2", 1, 1, 1};
        case Math::Log10: return {"Log10", 1, 1, 0};
        case Math::Sin: return {"Sin", 24, 0, 3};
        case Math::Cos: return {"Cos", 25, 0, 3};
        case Math::Tan: return {"Tan", 24, 1, 4};
        case Math::Asin: return {"Asin", 20, 1, 2};
        case Math::Acos: return {"Acos", 21, 1, 2};
        case Math::Atan: return {"Atan", 24, 2, 5};
        case Math::Sinh: return {"Sinh", 4, 2, 1};
        case Math::Cosh: return {"Cosh", 4, 2, 2};
        case Math::Asinh: return {"Asinh", 6, 2, 3};
        case Math::Acosh: return {"Acosh", 4, 2, 1};
        case Math::Atanh: return {"Atanh", 4, 2, 1};
        case Math::Ceil: return {"Ceil", 1, 0, 1};
        case Math::Floor: return {"Floor", 1, 0, 1};
        case Math::Round: return {"Round", 1, 0, 1};
        case Math::Trunc: return {"Trunc", 1, 0, 1};
        case Math::Frac: return {"Frac", 2, 0, 1};
        case Math::Sign: return {"Sign", 5, 0, 3};
        case Math::ClampMax: return {"ClampMax", 1, 0, 1};
        case Math::ClampMin: return {"ClampMin", 1, 0, 1};
        case Math::Power:
        case Math::PowerScalar:
        case Math::ScalarPower: return {"Power", 20, 2, 4};
        case Math::Exp: return {"Exp", 4, 1, 3};
        case Math::Fmod: return {"Fmod", 3, 1, 1};
        case Math::Lgamma: return {"Lgamma", 40, 3, 7};
        case Math::Digamma: return {"Digamma", 46, 4, 7};
        case Math::Xor: return {"Xor", 4, 0, 1};
        case Math::Axpy: return {"Axpy", 2, 0, 1};
        case Math::GeGLU: return {"GeGLU", 8, 2, 3};
        case Math::ReGlu: return {"ReGlu", 2, 0, 1};
        case Math::SwiGLU: return {"SwiGLU", 3, 2, 2};
    }
    return {"", 0, 0, 0};
}

bool IsPower(Math op) { return op == Math::Power || op == Math::PowerScalar || op == Math::ScalarPower; }

uint32_t TypesOf(Math op)
{
    if (op == Math::Xor) {
        return TypeBit(DType::S16) | TypeBit(DType::U16);
    }
    return kRealTypes | (IsPower(op) ? TypeBit(DType::S32) : 0) | (op == Math::ReGlu ? kBfloatTypes : 0);
}

// Whether source and destination may be one buffer.
bool InPlace(Math op)
{
    return op == Math::Trunc || op == Math::Round || op == Math::Gelu || op == Math::FasterGelu ||
           op == Math::FasterGeluV2;
}

double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

double GeluTanh(double x)
{
    constexpr double scale = 0.7978845608028654;  // sqrt(2 / pi)
    return 0.5 * x * (1 + std::tanh(scale * (x + 0.044715 * x * x * x)));
}

// FastGeluV2 as published: x (sgn(x) (a (min(|x| / sqrt 2, -b) + b)^2 + 0.5) + 0.5), a = -0.1444, b = -1.769.
double GeluV2(double x)
{
    const double scaled = 0.7071067811865476 * x;
    const double clipped = std::min(std::fabs(scaled), 1.769) - 1.769;
    return x * (SignOf(x) * (-0.1444 * clipped * clipped + 0.5) + 0.5);
}

// Recurrence up to 6, then the asymptotic series; reflection below 0.
double Digamma(double x)
{
    if (x <= 0 && x == std::floor(x)) {
        return std::nan("");
    }
    constexpr double pi = 3.14159265358979323846;
    if (x < 0) {
        return Digamma(1 - x) - pi / std::tan(pi * x);
    }
    double result = 0;
    for (; x < 6; x += 1) {
        result -= 1 / x;
    }
    const double r = 1 / (x * x);
    return result + std::log(x) - 0.5 / x -
           r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132)))));
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Evaluate(Math op, double x, double y, double s)
{
    switch (op) {
        case Math::Tanh: return std::tanh(x);
        case Math::Sigmoid: return Sigmoid(x);
        case Math::Erf: return std::erf(x);
        case Math::Erfc: return std::erfc(x);
        case Math::Gelu: return GeluTanh(x);
        case Math::FasterGelu: return x / (1 + std::exp(-1.702 * x));
        case Math::FasterGeluV2: return GeluV2(x);
        case Math::Silu: return x / (1 + std::exp(-x));
        case Math::Swish: return x / (1 + std::exp(-s * x));
        case Math::Log: return std::log(x);
        case Math::Log2: return std::log2(x);
        case Math::Log10: return std::log10(x);
        case Math::Sin: return std::sin(x);
        case Math::Cos: return std::cos(x);
        case Math::Tan: return std::tan(x);
        case Math::Asin: return std::asin(x);
        case Math::Acos: return std::acos(x);
        case Math::Atan: return std::atan(x);
        case Math::Sinh: return std::sinh(x);
        case Math::Cosh: return std::cosh(x);
        case Math::Asinh: return std::asinh(x);
        case Math::Acosh: return std::acosh(x);
        case Math::Atanh: return std::atanh(x);
        case Math::Ceil: return std::ceil(x);
        case Math::Floor: return std::floor(x);
        case Math::Round: return std::nearbyint(x);
        case Math::Trunc: return std::trunc(x);
        case Math::Frac: return x - std::trunc(x);
        case Math::Sign: return SignOf(x);
        case Math::ClampMax: return x > s ? s : x;
        case Math::ClampMin: return x < s ? s : x;
        case Math::Power: return std::pow(x, y);
        case Math::PowerScalar: return std::pow(x, s);
        case Math::ScalarPower: return std::pow(s, x);
        case Math::Exp: return std::exp(x);
        case Math::Fmod: return std::fmod(x, y);
        case Math::Lgamma: return std::lgamma(x);
        case Math::Digamma: return Digamma(x);
        case Math::GeGLU: return x * GeluTanh(y);
        case Math::ReGlu: return x * (y > 0 ? y : 0);
        case Math::SwiGLU: return x * y * Sigmoid(s * y);
        case Math::Axpy:
        case Math::Xor: return 0;  // not of this shape: see Compute
    }
    return 0;
}

// e^x as e^floor(x) times the Taylor polynomial of the fraction.
double TaylorExp(double x, int terms)
{
    if (terms == 0 || !std::isfinite(x)) {
        return std::exp(x);
    }
    const double whole = std::floor(x);
    double sum = 1;
    double term = 1;
    for (int i = 1; i <= terms; ++i) {
        term *= (x - whole) / i;
        sum += term;
    }
    return std::exp(whole) * sum;
}

void XorBits(const MathCallArguments &call)
{
    uint8_t *ub = TheCore().ub;
    for (uint64_t i = 0; i < static_cast<uint64_t>(call.count) * sizeof(uint16_t); ++i) {
        ub[call.dst.address + i] = ub[call.src0.address + i] ^ ub[call.src1->address + i];
    }
}

// Whole powers of 32-bit integers by squaring, wrapping as the multiplications do.
void IntegerPower(const MathCallArguments &call)
{
    const auto load = [](uint32_t address, int64_t i) {
        int32_t value;
        std::memcpy(&value, TheCore().ub + address + i * 4, 4);
        return value;
    };
    for (int64_t i = 0; i < call.count; ++i) {
        const int32_t x = load(call.src0.address, i);
        const int32_t s = static_cast<int32_t>(call.scalar.integer);
        const int32_t base = call.op == Math::ScalarPower ? s : x;
        const int32_t power =
            call.op == Math::Power ? load(call.src1->address, i) : (call.op == Math::ScalarPower ? x : s);
        int32_t result;
        if (power < 0) {
            result = base == 1 ? 1 : (base == -1 ? (power % 2 == 0 ? 1 : -1) : 0);
        } else {
            uint32_t product = 1;
            uint32_t square = static_cast<uint32_t>(base);
            for (uint32_t left = static_cast<uint32_t>(power); left != 0; left >>= 1U, square *= square) {
                product *= (left & 1U) != 0 ? square : 1;
            }
            result = static_cast<int32_t>(product);
        }
        std::memcpy(TheCore().ub + call.dst.address + i * 4, &result, 4);
    }
}

void Compute(const MathCallArguments &call)
{
    const auto n = static_cast<uint64_t>(call.count);
    if (call.op == Math::Xor) {
        return XorBits(call);
    }
    if (call.dst.dtype == DType::S32) {
        return IntegerPower(call);
    }
    std::vector<float> x = Numbers(call.src0, 0, n);
    const double s = call.scalar.value;
    if (call.op == Math::Axpy) {
        const std::vector<float> old = Numbers(call.dst, 0, n);
        for (uint64_t i = 0; i < n; ++i) {
            x[i] = static_cast<float>(s * x[i] + old[i]);
        }
    } else if (call.op == Math::Exp) {
        for (float &value : x) {
            value = static_cast<float>(TaylorExp(value, call.terms));
        }
    } else {
        const std::vector<float> y = call.src1 != nullptr ? Numbers(*call.src1, 0, n) : std::vector<float>(n);
        for (uint64_t i = 0; i < n; ++i) {
            x[i] = static_cast<float>(Evaluate(call.op, x[i], y[i], s));
        }
    }
    SetNumbers(call.dst, 0, x.data(), n);
}

// An element of the result is as undefined as what it was made of. Marks are read before the results land.
std::vector<uint8_t> UndefinedElements(const MathCallArguments &call)
{
    const auto n = static_cast<uint64_t>(call.count);
    const bool none = !Undefined(call.src0, 0, n) && (call.src1 == nullptr || !Undefined(*call.src1, 0, n)) &&
                      (call.op != Math::Axpy || !Undefined(call.dst, 0, n));
    std::vector<uint8_t> marks;
    for (uint64_t i = 0; i < n && !none; ++i) {
        marks.push_back(Undefined(call.src0, i, 1) || (call.src1 != nullptr && Undefined(*call.src1, i, 1)) ||
                        (call.op == Math::Axpy && Undefined(call.dst, i, 1)));
    }
    return marks;
}

void MarkResult(const LocalRef &dst, uint64_t n, const std::vector<uint8_t> &marks)
{
    MarkElements(dst, 0, n, false);
    for (uint64_t i = 0; i < marks.size(); ++i) {
        if (marks[i] != 0) {
            MarkElements(dst, i, 1, true);
        }
    }
}

void CheckOperands(Advanced *check, const MathCallArguments &call)
{
    const auto n = static_cast<uint64_t>(call.count);
    check->Type(call.dst, TypesOf(call.op), "dst");
    const bool mixed = call.op == Math::Axpy && call.dst.dtype == DType::F32 && call.src0.dtype == DType::F16;
    if (!mixed) {
        check->Same(call.src0, call.dst, "src");
    }
    check->In(call.src0, n, "src");
    if (call.src1 != nullptr) {
        check->Same(*call.src1, call.dst, "src1");
        check->In(*call.src1, n, "src1");
    }
    check->Out(call.dst, n, "dst");
    if (!InPlace(call.op)) {
        check->Apart(call.dst, n, "dst", call.src0, n, "src");
        if (call.src1 != nullptr) {
            check->Apart(call.dst, n, "dst", *call.src1, n, "src1");
        }
    }
}

}  // namespace

void MathCall(const MathCallArguments &call, At at)
{
    const Recipe recipe = RecipeOf(call.op);
    const uint32_t width = DTypeBytes(call.dst.dtype);
    if (call.count <= 0) {
        return;
    }
    Advanced check(recipe.name, at);
    check.Simple(static_cast<uint64_t>(call.count), width, recipe.simple + 2 * call.terms);
    check.Slow(static_cast<uint64_t>(call.count), width, recipe.slow);
    if (TimingOnly()) {
        return;
    }
    CheckOperands(&check, call);
    uint32_t most = 0;
    uint32_t least = 0;
    MathTemporary(call.op, static_cast<uint64_t>(call.count), DTypeBytes(call.src0.dtype), &most, &least);
    check.Temporary(call.temporary, least);
    if (!check.Good()) {
        return;
    }
    const std::vector<uint8_t> marks = UndefinedElements(call);
    Compute(call);
    MarkResult(call.dst, static_cast<uint64_t>(call.count), marks);
}

uint32_t MathLiveNodes(Math op, uint32_t type_size)
{
    const auto live = static_cast<uint32_t>(RecipeOf(op).live);
    return type_size == 2 && op != Math::Xor ? 2 * live : live;  // half is computed in float
}

void MathTemporary(Math op, uint64_t elements, uint32_t type_size, uint32_t *most, uint32_t *least)
{
    const uint32_t live = MathLiveNodes(op, type_size);
    *least = live * kWord;
    *most = static_cast<uint32_t>(live * AlignTo(std::max<uint64_t>(elements, 1) * type_size, kWord));
}

}  // namespace evokernel::twin
