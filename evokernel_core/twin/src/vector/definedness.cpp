// Which lanes of a destination hold a value, from which lanes of its sources do.
#include <algorithm>
#include <cstring>
#include <vector>

#include "sampled.h"
#include "vector/walk.h"

namespace evokernel::twin {

void ClearOperand(const Operand &operand, const Walk &walk)
{
    if (walk.full && operand.Dense(walk.lanes)) {
        return sampled::Clear(Space::UB, operand.ref.address, walk.elements * operand.width);
    }
    const uint32_t per_block = kBlockBytes / operand.width;
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        const uint32_t last = walk.LastLane(r);
        for (uint32_t lane = 0; lane < last; lane += walk.full ? per_block : 1) {
            if (walk.full || walk.Active(r, lane)) {
                const uint32_t lanes = walk.full ? std::min(per_block, last - lane) : 1;
                sampled::Clear(Space::UB, operand.Address(r, lane), lanes * operand.width);
            }
        }
    }
}

bool LeavesEmpty(const Operand &dst, const Operand *const *sources, int count, const Walk &walk)
{
    const auto empty = [&](const Operand *source) { return EmptyOperand(*source, walk); };
    if (dst.ref.dtype == DType::S4 || !std::any_of(sources, sources + count, empty)) {
        return false;
    }
    ClearOperand(dst, walk);
    return true;
}

namespace {

bool LaneUndefined(const Operand *const *sources, int count, uint32_t repeat, uint32_t lane)
{
    for (int i = 0; i < count; ++i) {
        if (AnyUndefined(sources[i]->Address(repeat, lane), sources[i]->width)) {
            return true;
        }
    }
    return false;
}

// Adds the states of a run of elements: one is undefined where any of its bytes is.
template <typename T> void AddStates(const uint8_t *shadow, uint64_t n, uint8_t *states)
{
    for (uint64_t i = 0; i < n; ++i) {
        T bytes;
        std::memcpy(&bytes, shadow + i * sizeof(T), sizeof(T));
        states[i] = bytes != 0 ? kUndefined : states[i];
    }
}

template <typename T> void PutStates(const uint8_t *states, uint64_t n, uint8_t *shadow)
{
    for (uint64_t i = 0; i < n; ++i) {
        const T bytes = states[i] != 0 ? static_cast<T>(~T{0}) : T{0};
        std::memcpy(shadow + i * sizeof(T), &bytes, sizeof(T));
    }
}

// Runs of elements without gaps: all states are read before one is written.
void PropagateDense(const Operand &dst, const Operand *const *sources, int count, const Walk &walk)
{
    static std::vector<uint8_t> states;
    states.assign(walk.elements, 0);
    uint8_t *shadow = TheCore().undefined;
    for (int i = 0; i < count; ++i) {
        const uint8_t *from = shadow + sources[i]->ref.address;
        switch (sources[i]->width) {
            case 1: AddStates<uint8_t>(from, walk.elements, states.data()); break;
            case 2: AddStates<uint16_t>(from, walk.elements, states.data()); break;
            case 4: AddStates<uint32_t>(from, walk.elements, states.data()); break;
            default: AddStates<uint64_t>(from, walk.elements, states.data()); break;
        }
    }
    uint8_t *to = shadow + dst.ref.address;
    switch (dst.width) {
        case 1: PutStates<uint8_t>(states.data(), walk.elements, to); break;
        case 2: PutStates<uint16_t>(states.data(), walk.elements, to); break;
        case 4: PutStates<uint32_t>(states.data(), walk.elements, to); break;
        default: PutStates<uint64_t>(states.data(), walk.elements, to); break;
    }
}

// A result's bit is undefined where that bit of a source is, as in masks that are combined.
void PropagateBits(const Operand &dst, const Operand *const *sources, int count, const Walk &walk)
{
    static std::vector<uint8_t> states;
    states.assign(walk.elements * dst.width, 0);
    uint8_t *shadow = TheCore().undefined;
    for (int i = 0; i < count; ++i) {
        const uint8_t *from = shadow + sources[i]->ref.address;
        for (size_t byte = 0; byte < states.size(); ++byte) {
            states[byte] |= from[byte];
        }
    }
    std::memcpy(shadow + dst.ref.address, states.data(), states.size());
}

}  // namespace

void Propagate(const Operand &dst, const Operand *const *sources, int count, const Walk &walk, bool bitwise)
{
    Core &core = TheCore();
    const auto all_defined = [&](const Operand *source) { return AllDefined(*source, walk); };
    const bool defined = std::all_of(sources, sources + count, all_defined);
    const bool dense = walk.full && dst.Dense(walk.lanes);
    if (defined && dense) {
        MarkDefined(dst.ref.address, walk.elements * dst.width);
        return;
    }
    const auto runs_on = [&](const Operand *source) {
        return source->Dense(walk.lanes) && source->ref.dtype != DType::S4;
    };
    if (dense && dst.ref.dtype != DType::S4 && std::all_of(sources, sources + count, runs_on)) {
        return (bitwise ? PropagateBits : PropagateDense)(dst, sources, count, walk);
    }
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        uint8_t states[kMaxLanes];
        const uint32_t last = walk.LastLane(r);
        for (uint32_t lane = 0; lane < last; ++lane) {
            const bool undefined = !defined && walk.Active(r, lane) && LaneUndefined(sources, count, r, lane);
            states[lane] = undefined ? kUndefined : 0;
        }
        for (uint32_t lane = 0; lane < last; ++lane) {
            if (walk.Active(r, lane)) {
                std::memset(core.undefined + dst.Address(r, lane), states[lane], dst.width);
            }
        }
    }
}

}  // namespace evokernel::twin
