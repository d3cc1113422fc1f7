#include "matmul/cache.h"

namespace evokernel::twin::matmul {

using AscendC::HardEvent;

void Flag::Open(HardEvent event, At at)
{
    event_ = event;
    id_ = AllocEvent(event, at);
}

void Flag::Close(At at)
{
    if (id_ >= 0) {
        Wait(at);
        ReleaseEvent(event_, id_, at);
        id_ = -1;
    }
}

void Flag::Set(At at)
{
    Wait(at);
    SetFlag(event_, id_, at);
    pending_ = true;
}

void Flag::Wait(At at)
{
    if (pending_) {
        WaitFlag(event_, id_, at);
        pending_ = false;
    }
}

namespace {

constexpr int32_t kMaxSlots = 64;

struct Steps {
    int32_t outer, depth, slots;
};

// Norm copies base blocks one by one and keeps them all; MDL copies all the steps of a piece at once.
Steps StepsOf(const Job &job, bool left)
{
    const TCubeTiling &tiling = job.tiling;
    const MatmulConfig &config = job.spec->config;
    const int32_t depth = left ? tiling.depthA1 : tiling.depthB1;
    const bool sparse = !left && job.spec->b.sparse;
    if ((!config.doMultiDataLoad && !config.doSpecialMDL) || sparse) {
        return Steps{1, 1, std::clamp(depth, 1, kMaxSlots)};
    }
    const int32_t outer = std::max(1, left ? tiling.stepM : tiling.stepN);
    const int32_t steps = std::max(1, left ? tiling.stepKa : tiling.stepKb);
    return Steps{outer, steps, std::clamp(depth / (outer * steps), 1, kMaxSlots)};
}

uint32_t PieceBytes(const Job &job, const Operand &operand, const Steps &steps)
{
    const int32_t base = operand.left ? job.tiling.baseM : job.tiling.baseN;
    const int32_t total = operand.left ? job.m : job.n;
    const int32_t outer = std::min(base * steps.outer, Align(total, base));
    const int32_t depth = std::min(job.tiling.baseK * steps.depth, Align(job.k, job.tiling.baseK)) / operand.sparsity;
    if (operand.vector) {
        return PanelBytes(operand, 1, depth);
    }
    return operand.crossing ? PanelBytes(operand, depth, outer) : PanelBytes(operand, outer, depth);
}

// More slots than pieces hold nothing.
int32_t SlotsOf(const Job &job, const Steps &steps, bool left)
{
    const int32_t outer = Ceil(left ? job.RowBlocks() : job.ColumnBlocks(), steps.outer);
    return std::max(1, std::min<int32_t>(steps.slots, outer * Ceil(job.DepthBlocks(), steps.depth)));
}

bool IsLocal(const Job &job, bool left) { return (left ? job.a : job.b).kind == Source::Kind::Local; }

}  // namespace

uint32_t PanelCache::Bytes(const Job &job, bool left)
{
    if (IsLocal(job, left)) {
        return 0;
    }
    const Steps steps = StepsOf(job, left);
    return PieceBytes(job, OperandOf(job, left), steps) * static_cast<uint32_t>(SlotsOf(job, steps, left));
}

uint32_t PanelCache::Open(const Job &job, bool left, uint32_t address)
{
    const Steps steps = StepsOf(job, left);
    operand_ = OperandOf(job, left);
    total_ = left ? job.m : job.n;
    base_ = left ? job.tiling.baseM : job.tiling.baseN;
    step_ = steps.outer;
    step_k_ = steps.depth;
    slots_.clear();
    current_ = nullptr;
    if (IsLocal(job, left)) {
        return address;
    }
    slots_.resize(static_cast<size_t>(SlotsOf(job, steps, left)));
    for (Slot &slot : slots_) {
        slot.address = address;
        address += PieceBytes(job, operand_, steps);
    }
    copied_.Open(HardEvent::MTE2_MTE1, job.at);
    for (Flag &flag : freed_) {
        flag.Open(HardEvent::MTE1_MTE2, job.at);
    }
    return address;
}

void PanelCache::Close(At at)
{
    if (current_ != nullptr) {
        Release(*current_, at);  // the next owner of these bytes waits for the last reader, too
    }
    copied_.Close(at);
    for (int i = 0; i < 2; ++i) {
        freed_[i].Close(at);
        freed_slot_[i] = nullptr;
    }
    slots_.clear();
    current_ = nullptr;
}

PanelCache::Piece PanelCache::PieceOf(const Job &job, int32_t outer, int32_t depth) const
{
    const int32_t piece_outer = outer / step_;
    const int32_t piece_depth = depth / step_k_;
    const int32_t outer0 = piece_outer * step_ * base_;
    const int32_t base_k = job.tiling.baseK / operand_.sparsity;
    const int32_t depth0 = piece_depth * step_k_ * base_k;
    const int32_t width = std::min(step_ * base_, total_ - outer0);
    const int32_t length = std::min(step_k_ * base_k, job.k / operand_.sparsity - depth0);
    const int64_t key = (int64_t{piece_outer} << 32) | piece_depth;
    return operand_.crossing ? Piece{key, depth0, outer0, length, width} : Piece{key, outer0, depth0, width, length};
}

void PanelCache::Release(Slot &slot, At at)
{
    const size_t flag = FlagOf(slot);
    freed_[flag].Set(at);
    if (freed_slot_[flag] != nullptr) {
        freed_slot_[flag]->free = true;
    }
    freed_slot_[flag] = &slot;
}

void PanelCache::WaitUntilFree(Slot &slot, At at)
{
    const size_t flag = FlagOf(slot);
    if (!slot.free && freed_slot_[flag] == &slot) {
        freed_[flag].Wait(at);
        freed_slot_[flag] = nullptr;
    }
    slot.free = true;
}

PanelCache::Slot &PanelCache::Fetch(const Job &job, const Piece &piece)
{
    Slot *oldest = nullptr;
    for (Slot &slot : slots_) {
        if (slot.key == piece.key) {
            slot.stamp = ++clock_;
            return slot;
        }
        const bool usable = &slot != current_ || slots_.size() == 1;
        if (usable && (oldest == nullptr || slot.stamp < oldest->stamp)) {
            oldest = &slot;
        }
    }
    WaitUntilFree(*oldest, job.at);
    LoadPanel(job, operand_, oldest->address, piece.row, piece.column, piece.rows, piece.columns);
    copied_.Set(job.at);
    copied_.Wait(job.at);
    oldest->key = piece.key;
    oldest->stamp = ++clock_;
    oldest->free = true;
    return *oldest;
}

Panel PanelCache::InLocal(const Job &job, int32_t outer, int32_t depth) const
{
    const int32_t rows = operand_.crossing ? job.tiling.singleCoreK
                                           : operand_.left ? job.tiling.singleCoreM : job.tiling.singleCoreN;
    Panel panel;
    panel.address = operand_.source->local.address;
    panel.layout = operand_.Layout();
    panel.fractal_rows = PanelFractalRows(operand_, rows, operand_.crossing ? total_ : job.k);
    panel.row = operand_.crossing ? depth * job.tiling.baseK : outer * base_;
    panel.column = operand_.crossing ? outer * base_ : depth * job.tiling.baseK;
    return panel;
}

Panel PanelCache::Get(const Job &job, int32_t outer, int32_t depth)
{
    operand_.source = operand_.left ? &job.a : &job.b;
    operand_.spec = operand_.left ? &job.spec->a : &job.spec->b;
    if (slots_.empty()) {
        return InLocal(job, outer, depth);
    }
    const Piece piece = PieceOf(job, outer, depth);
    if (current_ != nullptr && current_->key != piece.key) {
        Release(*current_, job.at);
        current_ = slots_.size() == 1 ? current_ : nullptr;
    }
    Slot &slot = Fetch(job, piece);
    slot.free = false;
    current_ = &slot;
    Panel panel;
    panel.address = slot.address;
    panel.layout = operand_.Layout();
    panel.fractal_rows = PanelFractalRows(operand_, piece.rows, piece.columns);
    const int32_t outer_part = outer % step_ * base_;
    const int32_t depth_part = depth % step_k_ * job.tiling.baseK;
    panel.row = operand_.crossing ? depth_part : outer_part;
    panel.column = operand_.crossing ? outer_part : depth_part;
    if (operand_.vector) {
        panel.row = 0;
        panel.column = depth_part;
    }
    return panel;
}

void PanelCache::Prefetch(const Job &job, int32_t outer, int32_t depth)
{
    if (slots_.size() > 1) {
        Fetch(job, PieceOf(job, outer, depth));
    }
}

}  // namespace evokernel::twin::matmul
