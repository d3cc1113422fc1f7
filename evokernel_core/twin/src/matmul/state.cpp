#include "matmul/state.h"

#include "copies/tscm.h"
#include "evokernel/twin/cube_api.h"
#include "matmul/serve.h"
#include "time/schedule.h"

namespace evokernel::twin::matmul {

using AscendC::TPosition;

Scratch::~Scratch()
{
    if (base_ != nullptr) {
        Gm().Release(base_);
    }
}

GlobalRef Scratch::Take(uint64_t bytes, DType dtype)
{
    if (bytes > bytes_) {
        if (base_ != nullptr) {
            Gm().Release(base_);
        }
        base_ = Gm().Allocate(Wording("Matmul workspace"), bytes, Kind::Workspace, TheCore().timing)->base;
        bytes_ = bytes;
    }
    GlobalRef ref;
    ref.address = base_;
    ref.bytes = bytes;
    ref.dtype = dtype;
    return ref;
}

Role ObjectState::RoleHere(At at) const
{
    if (TheCore().kind == CoreKind::Cube) {
        return Role::Own;
    }
    if (spec.config.enableMixDualMaster) {
        return Role::Idle;
    }
    if (cube_only) {
        ReportError("wrong-core", at, "A Matmul object with ASCENDC_CUBE_ONLY works on cube cores; put it inside "
                                      "if ASCEND_IS_AIC, or leave the macro out.");
        return Role::Idle;
    }
    return Role::Client;
}

bool ObjectState::Ready(At at)
{
    if (!initialised) {
        ReportError("call-order", at, "The Matmul object has no tiling; call REGIST_MATMUL_OBJ with one, or Init.");
    }
    return initialised && usable;
}

namespace {

// What is left of L1 beside them.
void SetL1Room(Job *job)
{
    const Core &core = TheCore();
    const auto l1 = static_cast<uint32_t>(SpaceBytes(Space::L1));
    job->l1_begin = core.used[static_cast<int>(Space::L1)];
    job->l1_end = l1;
    if (core.kind == CoreKind::Cube) {
        return;
    }
    job->l1_end = l1 - 256;  // the library's own in mixed launches
    const Core *first = PeerOf(core, CoreKind::Vector, 0);
    const Core *second = PeerOf(core, CoreKind::Vector, 1);
    job->l1_begin = first == nullptr ? 0 : first->used[static_cast<int>(Space::L1)];
    if (second != nullptr && second->used[static_cast<int>(Space::L1)] > 0) {
        job->l1_end = l1 / 2;
    }
}

}  // namespace

// A vector core's buffer goes through global memory; its L1 tensors lie in the cube core's L1 already.
void ObjectState::Stage(Source *source, const OperandSpec &operand, int64_t rows, int64_t columns, Scratch *scratch,
                        At at)
{
    if (source->kind != Source::Kind::Local || TheCore().kind == CoreKind::Cube) {
        return;
    }
    if (SpaceOf(source->local) == Space::L1) {
        source->local = InCubeL1(source->local);
        return;
    }
    if (operand.format == CubeFormat::NZ) {
        rows = Align(static_cast<int32_t>(rows), kRows);
        columns = Align(static_cast<int32_t>(columns), C0OfDType(operand.dtype));
    }
    const auto bytes = static_cast<uint64_t>(BytesOf(rows * columns, operand.dtype));
    const GlobalRef to = scratch->Take(bytes, operand.dtype == DType::S4 ? DType::S8 : operand.dtype);
    Burst burst;
    burst.length = static_cast<uint32_t>((bytes + 31) / 32 * 32);
    const GlobalRef whole = scratch->Take(burst.length, to.dtype);
    const int8_t produced = AllocEvent(AscendC::HardEvent::V_MTE3, at);
    SetFlag(AscendC::HardEvent::V_MTE3, produced, at);
    WaitFlag(AscendC::HardEvent::V_MTE3, produced, at);
    ReleaseEvent(AscendC::HardEvent::V_MTE3, produced, at);
    CopyOut(whole, source->local, burst, at);
    TheCore().time.ScalarWaits(Pipe::MTE3);
    source->kind = Source::Kind::Global;
    source->global = whole;
    source->global.dtype = operand.dtype;
}

Job ObjectState::MakeJob(At at)
{
    Job made;
    made.spec = &spec;
    made.tiling = tiling;
    made.m = m;
    made.n = n;
    made.k = k;
    made.org_m = org_m;
    made.org_n = org_n;
    made.org_ka = org_ka;
    made.org_kb = org_kb;
    made.org_kc = org_kc;
    made.a = a;
    made.b = b;
    made.bias = bias;
    made.has_bias = bias_set;
    made.quant = quant;
    made.index = index;
    made.user_info = user_info;
    made.callback_data = callback_data;
    made.half_float = half_float;
    made.half_float_to_zero = half_float_to_zero;
    made.serial = serial;
    made.at = at;
    const bool staged_a = a.kind == Source::Kind::Local && SpaceOf(a.local) == Space::UB;
    const bool staged_b = b.kind == Source::Kind::Local && SpaceOf(b.local) == Space::UB;
    Stage(&made.a, spec.a, a.transposed ? k : m, a.transposed ? m : k, &scratch_a, at);
    Stage(&made.b, spec.b, b.transposed ? n : k, b.transposed ? k : n, &scratch_b, at);
    Stage(&made.bias, spec.bias, 1, n, &scratch_bias, at);
    if (staged_a) {
        made.org_m = m;
        made.org_ka = k;
    }
    if (staged_b) {
        made.org_n = n;
        made.org_kb = k;
        made.org_kc = org_kc != 0 ? org_kc : org_n;
    }
    if (spec.a.format == CubeFormat::VECTOR || spec.a.format == CubeFormat::SCALAR ||
        a.kind == Source::Kind::Scalar) {
        made.m = 1;
    }
    SetL1Room(&made);
    return made;
}

bool ObjectState::NextTile(const Job &current, Tile *next, int32_t *number)
{
    while (cursor < current.Tiles()) {
        *number = cursor++;
        *next = TileAt(current, *number);
        if (!next->skipped) {
            return true;
        }
    }
    return false;
}

void ObjectState::OnCube(Role role, std::function<void()> work, At at)
{
    if (role == Role::Own) {
        work();
    } else {
        PostToCube(std::move(work), at);
    }
}

void ObjectState::Finish(Role role, At at)
{
    auto self = shared_from_this();
    OnCube(role, [self, at] { self->machine.End(at); }, at);
}

// A base block from the library's memory to the place that the kernel gave in its unified buffer.
void ObjectState::CopyToLocal(const Job &current, const Tile &block, const Target &target, const GlobalRef &from,
                              At at)
{
    const DType dtype = spec.c.dtype;
    const int64_t size = DTypeBytes(dtype);
    LocalRef to = target.local;
    if (spec.c.format == CubeFormat::NZ) {
        const int64_t lanes = size == 1 ? 32 : 16;
        const int64_t rows = Align(block.m, kRows);
        const int64_t all_rows = target.sequential ? rows : Align(current.m, kRows);
        Burst burst;
        burst.count = static_cast<uint32_t>(Ceil(block.n, static_cast<int32_t>(lanes)));
        burst.length = static_cast<uint32_t>(rows * lanes * size);
        burst.src_stride = burst.length;
        burst.dst_stride = static_cast<uint32_t>(all_rows * lanes * size);
        const int64_t skip = target.sequential ? 0 : block.n0 / lanes * all_rows * lanes + block.m0 * lanes;
        to.address += static_cast<uint32_t>(skip * size);
        return CopyIn(to, from, burst, at);
    }
    const int64_t row = (block.n * size + 31) / 32 * 32;
    const int64_t pitch = ((target.sequential ? current.tiling.baseN : current.n) * size + 31) / 32 * 32;
    AscendC::DataCopyExtParams params;
    params.blockCount = static_cast<uint16_t>(block.m);
    params.blockLen = static_cast<uint32_t>(block.n * size);
    params.srcStride = static_cast<uint32_t>((current.tiling.baseN - block.n) * size);
    params.dstStride = static_cast<uint32_t>((pitch - row) / 32);
    if (!target.sequential) {
        to.address += static_cast<uint32_t>(block.m0 * pitch + block.n0 * size);
    }
    CopyPadIn(to, from, params, Padding{}, at);
}

}  // namespace evokernel::twin::matmul
