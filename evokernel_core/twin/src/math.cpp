// High-level functions of one or two operands. Results are computed in double and rounded once;
// time is charged as the sequence of basic instructions that such a function takes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert.h"
#include "walk.h"

namespace evokernel::twin {

namespace {

// How a function is charged: instructions at the simple rate and at that of Exp, Ln, Sqrt and Div.
struct Recipe {
    const char *name;
    int simple;
    int slow;
};

// Counted from the usual formulas (range reduction, polynomial, selection); assumed, not published.
Recipe RecipeOf(Math op)
{
    switch (op) {
        case Math::Tanh: return {"Tanh", 5, 2};
        case Math::Sigmoid: return {"Sigmoid", 2, 2};
        case Math::Erf: return {"Erf", 22, 1};
        case Math::Erfc: return {"Erfc", 24, 2};
        case Math::Gelu: return {"Gelu", 7, 2};
        case Math::FasterGelu: return {"FasterGelu", 4, 2};
        case Math::FasterGeluV2: return {"FasterGeluV2", 9, 0};
        case Math::Silu: return {"Silu", 2, 2};
        case Math::Swish: return {"Swish", 3, 2};
        case Math::Log: return {"Log", 0, 1};
        case Math::Log2: return {"Log2", 1, 1};
        case Math::Log10: return {"Log10", 1, 1};
        case Math::Sin: return {"Sin", 24, 0};
        case Math::Cos: return {"Cos", 25, 0};
        case Math::Tan: return {"Tan", 24, 1};
        case Math::Asin: return {"Asin", 20, 1};
        case Math::Acos: return {"Acos", 21, 1};
        case Math::Atan: return {"Atan", 24, 2};
        case Math::Sinh: return {"Sinh", 4, 2};
        case Math::Cosh: return {"Cosh", 4, 2};
        case Math::Asinh: return {"Asinh", 6, 2};
        case Math::Acosh: return {"Acosh", 4, 2};
        case Math::Atanh: return {"Atanh", 4, 2};
        case Math::Ceil: return {"Ceil", 1, 0};
        case Math::Floor: return {"Floor", 1, 0};
        case Math::Round: return {"Round", 1, 0};
        case Math::Trunc: return {"Trunc", 1, 0};
        case Math::Frac: return {"Frac", 2, 0};
        case Math::Sign: return {"Sign", 5, 0};
        case Math::ClampMax: return {"ClampMax", 1, 0};
        case Math::ClampMin: return {"ClampMin", 1, 0};
        case Math::Power: return {"Power", 20, 2};
        case Math::PowerScalar: return {"Power", 20, 2};
        case Math::ScalarPower: return {"Power", 20, 2};
    }
    return {"", 0, 0};
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

double Evaluate(Math op, double x, double y, double s)
{
    switch (op) {
        case Math::Tanh: return std::tanh(x);
        case Math::Sigmoid: return 1 / (1 + std::exp(-x));
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
    }
    return 0;
}

bool CheckTypes(Math op, DType type, const char *name, At at)
{
    const bool power = op == Math::Power || op == Math::PowerScalar || op == Math::ScalarPower;
    const bool known = type == DType::F16 || type == DType::F32 || (power && type == DType::S32);
    if (!known) {
        ReportError("dtype-unsupported", at, "%s supports half and float, not %s.", name, DTypeName(type));
    }
    return known;
}

void CheckApart(const LocalRef &dst, const LocalRef &src, uint64_t bytes, const char *name, At at)
{
    if (dst.address < src.address + bytes && src.address < dst.address + bytes) {
        ReportError("overlap", at, "%s does not allow dst and src to share memory; bytes %u and %u of UB overlap.",
                    name, dst.address, src.address);
    }
}

double Load(DType type, uint32_t address)
{
    const uint8_t *from = TheCore().ub + address;
    uint32_t bits = 0;
    std::memcpy(&bits, from, DTypeBytes(type));
    if (type == DType::F16) {
        return HalfValue(static_cast<uint16_t>(bits));
    }
    return type == DType::F32 ? static_cast<double>(FloatOf(bits)) : static_cast<double>(static_cast<int32_t>(bits));
}

void Store(DType type, uint32_t address, double value)
{
    uint8_t *to = TheCore().ub + address;
    if (type == DType::F16) {
        const uint16_t bits = HalfBits(static_cast<float>(value));
        std::memcpy(to, &bits, sizeof(bits));
    } else if (type == DType::F32) {
        const float rounded = static_cast<float>(value);
        std::memcpy(to, &rounded, sizeof(rounded));
    } else {
        const int32_t whole = static_cast<int32_t>(value);
        std::memcpy(to, &whole, sizeof(whole));
    }
}

void Charge(const Recipe &recipe, const Walk &walk, uint32_t width, At at)
{
    const double simple = walk.repeats * walk.lanes / SimpleRate(width);
    const double slow = walk.repeats * walk.lanes / CurrentChip().transcendental;
    for (int i = 0; i < recipe.simple; ++i) {
        RunVector(recipe.name, simple, at);
    }
    for (int i = 0; i < recipe.slow; ++i) {
        RunVector(recipe.name, slow, at);
    }
}

}  // namespace

void MathCall(Math op, const LocalRef &dst, const LocalRef &src0, const LocalRef *src1, Scalar scalar, int64_t count,
              At at)
{
    const Recipe recipe = RecipeOf(op);
    const uint32_t width = DTypeBytes(dst.dtype);
    Walk walk;
    if (!ResolveWalk(Form::Count(count), width, recipe.name, at, &walk)) {
        return;
    }
    Charge(recipe, walk, width, at);
    if (TheCore().timing || !CheckTypes(op, dst.dtype, recipe.name, at)) {
        return;
    }
    const Form form = Form::Count(count);
    const Operand to = MakeOperand(dst, walk, form, 1, 8);
    const Operand a = MakeOperand(src0, walk, form, 1, 8);
    const Operand b = src1 != nullptr ? MakeOperand(*src1, walk, form, 1, 8) : a;
    if (!(CheckOperand(to, walk, 32, true, recipe.name, "dst", at) &
          CheckOperand(a, walk, 32, false, recipe.name, "src", at) &
          CheckOperand(b, walk, 32, false, recipe.name, "src1", at))) {
        return;
    }
    CheckApart(dst, src0, walk.elements * width, recipe.name, at);
    const Operand *sources[] = {&a, &b};
    Propagate(to, sources, 2, walk);
    for (uint64_t i = 0; i < walk.elements; ++i) {
        const uint32_t step = static_cast<uint32_t>(i) * width;
        const double x = Load(dst.dtype, src0.address + step);
        const double y = src1 != nullptr ? Load(dst.dtype, src1->address + step) : 0;
        const double s = dst.dtype == DType::S32 ? static_cast<double>(scalar.integer) : scalar.value;
        Store(dst.dtype, dst.address + step, Evaluate(op, x, y, s));
    }
}

}  // namespace evokernel::twin
