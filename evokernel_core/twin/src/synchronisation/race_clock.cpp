#include "synchronisation/race_clock.h"

#include <algorithm>

namespace evokernel::twin::race {

namespace {

constexpr size_t kKept = 16;  // releases that can be outstanding: a flag between cores counts to 15

int Of(Pipe pipe) { return static_cast<int>(pipe); }

}  // namespace

void Raise(Clock &clock, const Clock &other)
{
    for (size_t p = 0; p < clock.size(); ++p) {
        clock[p] = std::max(clock[p], other[p]);
    }
}

bool CoreState::Knows(Pipe pipe, const Access &access) const
{
    const auto from = static_cast<size_t>(access.pipe);
    if (access.core == id) {
        return known[Of(pipe)][from] >= access.epoch;
    }
    return remote != nullptr && access.core < remote->size() && (*remote)[access.core][from] >= access.epoch;
}

// The scalar unit issues every instruction: what it waited for is over when the others begin.
void CoreState::Inherit(Pipe pipe) { Raise(known[Of(pipe)], known[Of(Pipe::S)]); }

Clock CoreState::Release(Pipe pipe)
{
    Inherit(pipe);
    const auto p = static_cast<size_t>(pipe);
    Clock clock = known[p];
    clock[p] = now[p]++;
    return clock;
}

void CoreState::Acquire(Pipe pipe, const Clock &clock) { Raise(known[Of(pipe)], clock); }

void CoreState::OrderAll()
{
    for (Clock &clock : known) {
        clock = now;
    }
    for (uint32_t &epoch : now) {
        ++epoch;
    }
}

Knowledge CoreState::Publish(Pipe pipe)
{
    if (pipe == Pipe::S) {
        OrderAll();
        return Knowledge{id, known[Of(Pipe::S)], remote};
    }
    Clock clock = Release(pipe);
    clock[0] = now[0]++;
    return Knowledge{id, clock, remote};
}

void CoreState::Take(const Knowledge &knowledge)
{
    auto merged = remote == nullptr ? std::make_shared<Remote>() : std::make_shared<Remote>(*remote);
    const size_t theirs = knowledge.remote == nullptr ? 0 : knowledge.remote->size();
    merged->resize(std::max({merged->size(), theirs, size_t{knowledge.core} + 1, size_t{id} + 1}));
    for (size_t core = 0; core < theirs; ++core) {
        Raise((*merged)[core], (*knowledge.remote)[core]);
    }
    Raise((*merged)[knowledge.core], knowledge.clock);
    Acquire(Pipe::S, (*merged)[id]);
    remote = std::move(merged);
}

void Channels::Release(const void *channel, const Knowledge &knowledge)
{
    Releases &releases = channels_[channel][knowledge.core];
    if (releases.last.size() < kKept) {
        releases.last.resize(kKept);
    }
    releases.last[releases.count % kKept] = knowledge;
    ++releases.count;
}

void Channels::Acquire(const void *channel, CoreState &core)
{
    const uint32_t turn = ++core.acquired[channel];
    for (const auto &[from, releases] : channels_[channel]) {
        uint32_t which = std::min(turn, releases.count);
        if (which + kKept <= releases.count) {
            which = static_cast<uint32_t>(releases.count - kKept + 1);
        }
        core.Take(releases.last[(which - 1) % kKept]);
    }
}

}  // namespace evokernel::twin::race
