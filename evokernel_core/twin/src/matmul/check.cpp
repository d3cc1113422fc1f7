// What can be wrong with a tiling, a combination of types, or the shape of a product.
#include "matmul/job.h"

namespace evokernel::twin::matmul {

using AscendC::Impl::Detail::PolicyKind;
using AscendC::TPosition;

namespace {

bool Misuse(At at, const char *what, int64_t value, const char *limit)
{
    ReportError("tiling-misuse", at, "The Matmul tiling has %s = %lld; %s.", what, static_cast<long long>(value), limit);
    return false;
}

bool CheckPositive(const TCubeTiling &tiling, At at)
{
    const struct {
        const char *name;
        int32_t value;
    } fields[] = {
        {"singleCoreM", tiling.singleCoreM}, {"singleCoreN", tiling.singleCoreN}, {"singleCoreK", tiling.singleCoreK},
        {"baseM", tiling.baseM},             {"baseN", tiling.baseN},             {"baseK", tiling.baseK},
        {"depthA1", tiling.depthA1},         {"depthB1", tiling.depthB1},         {"stepM", tiling.stepM},
        {"stepN", tiling.stepN},             {"stepKa", tiling.stepKa},           {"stepKb", tiling.stepKb},
    };
    for (const auto &field : fields) {
        if (field.value <= 0) {
            return Misuse(at, field.name, field.value, Word("it must be positive; fill the tiling with GetTiling"));
        }
    }
    return true;
}

bool CheckFractals(const Spec &spec, const TCubeTiling &tiling, At at)
{
    if (tiling.baseM % kRows != 0 && tiling.baseM != 1) {
        return Misuse(at, "baseM", tiling.baseM, Word("base blocks are made of whole fractals: use a multiple of 16"));
    }
    if (tiling.baseN % kRows != 0) {
        return Misuse(at, "baseN", tiling.baseN, Word("base blocks are made of whole fractals: use a multiple of 16"));
    }
    const int32_t c0 = C0OfDType(spec.a.dtype);
    if (tiling.baseK % c0 != 0) {
        return Misuse(at, "baseK", tiling.baseK, Word("use a multiple of the elements in 32 bytes"));
    }
    return true;
}

bool CheckL0(const Spec &spec, const TCubeTiling &tiling, At at)
{
    const int64_t copies_a = tiling.dbL0A == 2 && tiling.dbL0B == 2 ? 2 : 1;
    const int64_t a = BytesOf(int64_t{tiling.baseM} * tiling.baseK, spec.a.dtype) * copies_a;
    if (a > static_cast<int64_t>(SpaceBytes(Space::L0A))) {
        return Misuse(at, "baseM * baseK * dbL0A (bytes)", a, Word("L0A holds 65536 bytes; lower baseM or baseK"));
    }
    const int64_t b = BytesOf(int64_t{tiling.baseN} * tiling.baseK, spec.b.dtype) * copies_a;
    if (b > static_cast<int64_t>(SpaceBytes(Space::L0B))) {
        return Misuse(at, "baseN * baseK * dbL0B (bytes)", b, Word("L0B holds 65536 bytes; lower baseN or baseK"));
    }
    const int64_t c = int64_t{tiling.baseM} * tiling.baseN * 4 * (tiling.dbL0C == 2 ? 2 : 1);
    if (c > static_cast<int64_t>(SpaceBytes(Space::L0C))) {
        return Misuse(at, "baseM * baseN * 4 * dbL0C (bytes)", c, Word("L0C holds 131072 bytes; lower baseM, baseN or dbL0C"));
    }
    if (tiling.isBias != 0 && int64_t{tiling.baseN} * 4 > static_cast<int64_t>(SpaceBytes(Space::BT))) {
        return Misuse(at, Word("baseN with a bias"), tiling.baseN, Word("the bias table holds 256 values; lower baseN"));
    }
    return true;
}

bool CheckDepth(const TCubeTiling &tiling, At at)
{
    if (tiling.depthA1 % (tiling.stepM * tiling.stepKa) != 0) {
        return Misuse(at, "depthA1", tiling.depthA1, Word("it must be stepM * stepKa, or twice that for two copies"));
    }
    if (tiling.depthB1 % (tiling.stepN * tiling.stepKb) != 0) {
        return Misuse(at, "depthB1", tiling.depthB1, Word("it must be stepN * stepKb, or twice that for two copies"));
    }
    return true;
}

// What the tiling says that L1 holds; a matrix that lies there already takes nothing more.
bool CheckL1(const Spec &spec, const TCubeTiling &tiling, At at)
{
    const auto bytes = [&](const OperandSpec &operand, int32_t base, int32_t depth) {
        return operand.position == TPosition::TSCM ? 0
                                                   : BytesOf(int64_t{base} * tiling.baseK, operand.dtype) * depth;
    };
    const int64_t all = bytes(spec.a, tiling.baseM, tiling.depthA1) + bytes(spec.b, tiling.baseN, tiling.depthB1);
    if (all <= static_cast<int64_t>(SpaceBytes(Space::L1))) {
        return true;
    }
    ReportError("l1-capacity", at,
                "The Matmul tiling keeps depthA1 = %d and depthB1 = %d base blocks in L1, %lld bytes of %llu; lower them.",
                tiling.depthA1, tiling.depthB1, static_cast<long long>(all),
                static_cast<unsigned long long>(SpaceBytes(Space::L1)));
    return false;
}

bool CheckLarge(const Spec &spec, const TCubeTiling &tiling, At at)
{
    if (!spec.config.doMultiDataLoad) {
        return true;
    }
    const int32_t depth = Ceil(tiling.singleCoreK, tiling.baseK);
    if (depth > tiling.stepKa && tiling.stepM != 1) {
        return Misuse(at, "stepM", tiling.stepM, Word("the MDL template takes 1 where stepKa does not cover all of K"));
    }
    if (depth > tiling.stepKb && tiling.stepN != 1) {
        return Misuse(at, "stepN", tiling.stepN, Word("the MDL template takes 1 where stepKb does not cover all of K"));
    }
    const int32_t a = Ceil(depth, tiling.stepKa);
    const int32_t b = Ceil(depth, tiling.stepKb);
    if (std::max(a, b) % std::min(a, b) != 0) {
        return Misuse(at, "stepKa", tiling.stepKa,
                      "the MDL template's copies of A and B along K must be multiples of each other; change stepKa or "
                      "stepKb");
    }
    return true;
}

bool Unsupported(At at, const char *what)
{
    ReportError("dtype-unsupported", at, "Matmul on this chip has no %s.", what);
    return false;
}

bool CheckTypes(const Spec &spec, At at)
{
    const DType a = spec.a.dtype;
    const DType c = spec.c.dtype;
    const bool real = a == DType::F16 || a == DType::BF16 || a == DType::F32;
    const bool integer = a == DType::S8 || a == DType::S4;
    const bool real_c = c == DType::F16 || c == DType::BF16 || c == DType::F32 || (c == DType::S8 && a != DType::F32);
    const bool integer_c = c == DType::S32 || c == DType::F16 || (c == DType::S8 && a == DType::S8);
    if (a != spec.b.dtype || !(real || integer) || !(real ? real_c : integer_c)) {
        ReportError("dtype-unsupported", at, "Matmul does not exist for %s x %s to %s on this chip.", DTypeName(a),
                    DTypeName(spec.b.dtype), DTypeName(c));
        return false;
    }
    if (spec.a.format == CubeFormat::COLUMN_MAJOR || spec.b.format == CubeFormat::COLUMN_MAJOR ||
        spec.c.format == CubeFormat::COLUMN_MAJOR) {
        return Unsupported(at, Word("COLUMN_MAJOR format"));
    }
    if (spec.policy == PolicyKind::Unsupported) {
        return Unsupported(at, Word("policy with scales or a split result"));
    }
    if (spec.config.enableRelu) {
        return Unsupported(at, Word("enableRelu; apply Relu to the result"));
    }
    return !spec.config.intraBlockPartSum || Unsupported(at, "intraBlockPartSum");
}

}  // namespace

bool CheckTiling(const Spec &spec, const TCubeTiling &tiling, At at)
{
    return CheckTypes(spec, at) && CheckPositive(tiling, at) && CheckFractals(spec, tiling, at) &&
           CheckL0(spec, tiling, at) && CheckDepth(tiling, at) && CheckL1(spec, tiling, at) &&
           CheckLarge(spec, tiling, at);
}

namespace {

bool Missing(const Job &job, const Source &source, const char *name)
{
    if (source.kind != Source::Kind::None) {
        return false;
    }
    ReportError("call-order", job.at, "The Matmul object computes without %s; call SetTensor%s first.", name, name);
    return true;
}

bool CheckTranspose(const Job &job, const Source &source, const OperandSpec &spec, const char *name)
{
    if (source.transposed && !spec.may_transpose) {
        ReportError("tiling-misuse", job.at,
                    "SetTensor%s transposes, but its MatmulType does not say isTrans = true; set it there.", name);
    }
    return true;
}

bool CheckExtent(const Job &job, const char *name, int32_t single, int32_t org)
{
    if (org <= 0 || single <= org) {
        return true;
    }
    ReportError("tiling-misuse", job.at,
                "The Matmul object computes %d elements along %s of matrices that have %d; call SetTail or SetOrgShape.",
                single, name, org);
    return false;
}

bool CheckQuant(const Job &job)
{
    const DType c = job.spec->c.dtype;
    const bool integer = job.AccumulatorType() == DType::S32;
    const bool needed = c == DType::S8 || (integer && c == DType::F16);
    if (!needed || job.quant.kind != Quant::Kind::None) {
        return true;
    }
    ReportError("call-order", job.at, "The Matmul object quantises to %s; call SetQuantScalar or SetQuantVector first.",
                DTypeName(c));
    return false;
}

}  // namespace

bool CheckJob(const Job &job)
{
    const bool missing = Missing(job, job.a, "A") || Missing(job, job.b, "B");
    if (missing || !CheckQuant(job)) {
        return false;
    }
    CheckTranspose(job, job.a, job.spec->a, "A");
    CheckTranspose(job, job.b, job.spec->b, "B");
    const bool batch = job.spec->a.layout != LayoutMode::NONE;
    return batch || (CheckExtent(job, "M", job.m, job.org_m) && CheckExtent(job, "N", job.n, job.org_n) &&
                     CheckExtent(job, "K", job.k, job.org_ka) && CheckExtent(job, "K", job.k, job.org_kb));
}

}  // namespace evokernel::twin::matmul
