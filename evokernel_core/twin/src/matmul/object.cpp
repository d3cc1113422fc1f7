// The interface of the Matmul object: setters, and the ways to compute one shape.
#include <map>

#include "matmul/serve.h"
#include "matmul/state.h"
#include "time/schedule.h"

namespace evokernel::twin::matmul {

namespace {

constexpr int kMaxObjects = 4;

// Static values win over those of run time.
void ApplyFixed(const MatmulApiStaticTiling &fixed, TCubeTiling *tiling)
{
#define EVK_TAKE(field)                 \
    if (fixed.field >= 0) {             \
        tiling->field = fixed.field;    \
    }
    EVK_TAKE(singleCoreM) EVK_TAKE(singleCoreN) EVK_TAKE(singleCoreK) EVK_TAKE(baseM) EVK_TAKE(baseN) EVK_TAKE(baseK)
    EVK_TAKE(depthA1) EVK_TAKE(depthB1) EVK_TAKE(stepM) EVK_TAKE(stepN) EVK_TAKE(stepKa) EVK_TAKE(stepKb)
    EVK_TAKE(isBias) EVK_TAKE(iterateOrder) EVK_TAKE(dbL0A) EVK_TAKE(dbL0B) EVK_TAKE(dbL0C)
#undef EVK_TAKE
    const auto fallback = [](int32_t *field, int32_t value) { *field = *field > 0 ? *field : value; };
    fallback(&tiling->M, fixed.M);
    fallback(&tiling->N, fixed.N);
    fallback(&tiling->Ka, fixed.Ka);
    fallback(&tiling->Kb, fixed.Kb);
}

}  // namespace

Object::Object(const Spec &spec, bool cube_only) : state_(std::make_shared<ObjectState>(spec, cube_only)) {}

Object::~Object()
{
    if (state_->machine.Begun()) {
        state_->Finish(TheCore().kind == CoreKind::Cube ? Role::Own : Role::Client, kNowhere);
    }
}

void Object::Register(At at)
{
    Core &core = TheCore();
    const bool client = core.kind == CoreKind::Vector && !state_->cube_only && !state_->spec.config.enableMixDualMaster;
    if (client && core.cubes > 0 && core.buffer_count > 0) {
        ReportWarning("call-order", at, "REGIST_MATMUL_OBJ comes after InitBuffer; the documentation asks for it before, "
                                        "so that the cube core does not wait.");
    }
    if (++core.matmul_objects > kMaxObjects) {
        ReportError("call-order", at, "A kernel registers at most %d Matmul objects; reuse one with other operands.",
                    kMaxObjects);
    }
}

void ServeIfDriven(bool cube_only, const Spec &spec, At at)
{
    Core &core = TheCore();
    if (core.kind == CoreKind::Cube && core.subs > 0 && !cube_only && !spec.config.enableMixDualMaster) {
        core.last_at = at;
        ServeAndEndCore();
    }
}

void Object::Init(const TCubeTiling *tiling, At at)
{
    ObjectState &s = *state_;
    if (tiling == nullptr && s.spec.fixed.singleCoreM < 0) {
        ReportError("call-order", at, "The Matmul object has neither a tiling nor one fixed by its configuration.");
        return;
    }
    s.tiling = tiling == nullptr ? TCubeTiling{} : *tiling;
    ApplyFixed(s.spec.fixed, &s.tiling);
    s.initialised = true;
    s.usable = CheckTiling(s.spec, s.tiling, at);
    s.org_m = s.tiling.M;
    s.org_n = s.tiling.N;
    s.org_ka = s.tiling.Ka;
    s.org_kb = s.tiling.Kb;
    s.m = s.tiling.singleCoreM;
    s.n = s.tiling.singleCoreN;
    s.k = s.tiling.singleCoreK;
    s.Changed();
}

void Object::SetOrgShape(int m, int n, int ka, int kb, int kc, At)
{
    state_->org_m = m;
    state_->org_n = n;
    state_->org_ka = ka;
    state_->org_kb = kb;
    state_->org_kc = kc;
    state_->Changed();
}

void Object::SetSingleShape(int m, int n, int k, At at) { SetTail(m, n, k, at); }

void Object::SetTail(int m, int n, int k, At)
{
    state_->m = m > 0 ? m : state_->m;
    state_->n = n > 0 ? n : state_->n;
    state_->k = k > 0 ? k : state_->k;
    state_->Changed();
}

void Object::SetSource(Side side, const Source &source, At at)
{
    ObjectState &s = *state_;
    if (side == Side::Bias && s.initialised && s.tiling.isBias == 0) {
        ReportError("tiling-misuse", at, "SetBias needs a tiling with isBias = 1; call EnableBias(true) on the host.");
        return;
    }
    (side == Side::A ? s.a : side == Side::B ? s.b : s.bias) = source;
    s.bias_set = s.bias_set || side == Side::Bias;
    s.Changed();
}

void Object::ClearBias(At)
{
    state_->bias_set = false;
    state_->Changed();
}

void Object::SetQuantScalar(uint64_t bits, At)
{
    state_->quant = Quant{};
    state_->quant.kind = Quant::Kind::Scalar;
    state_->quant.scalar = bits;
    state_->Changed();
}

void Object::SetQuantVector(const GlobalRef &tensor, At)
{
    state_->quant = Quant{};
    state_->quant.kind = Quant::Kind::Vector;
    state_->quant.global = tensor;
    state_->Changed();
}

void Object::SetQuantVector(const LocalRef &tensor, At)
{
    state_->quant = Quant{};
    state_->quant.kind = Quant::Kind::Vector;
    state_->quant.local = tensor;
    state_->quant.in_l1 = true;
    state_->Changed();
}

void Object::SetSparseIndex(const GlobalRef &tensor, At)
{
    state_->index = tensor;
    state_->Changed();
}

void Object::SetWorkspace(const GlobalRef &tensor, At) { state_->workspace = tensor; }
void Object::SetUserInfo(uint64_t bits) { state_->user_info = bits; }
void Object::SetCallbackData(uint64_t bits) { state_->callback_data = bits; }

void Object::SetHalfFloat32(bool enabled, bool to_zero)
{
    state_->half_float = enabled;
    state_->half_float_to_zero = to_zero;
    state_->Changed();
}

void Object::SetBatch(int32_t a, int32_t b, At)
{
    state_->batch_a = a;
    state_->batch_b = b;
}

AscendC::MatrixOffset Object::Offset() const
{
    const ObjectState &s = *state_;
    const int32_t lead = s.org_kc != 0 ? s.org_kc : s.org_n;
    return {s.tile.m0 * lead + s.tile.n0, s.tile.m0, s.tile.n0, s.tile.m, s.tile.n};
}

void Object::End(At at)
{
    const Role role = state_->RoleHere(at);
    if (role == Role::Idle) {
        return;
    }
    state_->waiting.clear();
    if (state_->machine.Begun() || role == Role::Client) {
        state_->Finish(role, at);
    }
    state_->Changed();
}

void Object::Wait(At at)
{
    if (state_->RoleHere(at) == Role::Client) {
        WaitForCube(at);
    }
}

}  // namespace evokernel::twin::matmul
