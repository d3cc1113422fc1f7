#include "synchronisation/race_shadow.h"

#include <algorithm>
#include <iterator>

namespace evokernel::twin::race {

namespace {

// Cores that read one place and of which nothing is known: more than run at once cannot wait for each other.
constexpr size_t kMaxOthers = 128;

void Remember(std::vector<Access> &others, const Access &access)
{
    for (Access &other : others) {
        if (other.core == access.core && other.pipe == access.pipe && other.atomic == access.atomic &&
            other.unit == access.unit) {
            other = access;
            return;
        }
    }
    if (others.size() < kMaxOthers) {
        others.push_back(access);
    }
}

bool SameOthers(const std::vector<Access> &a, const std::vector<Access> &b)
{
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                              [](const Access &x, const Access &y) { return x.SameEpoch(y); });
}

}  // namespace

Shadow::Spans::iterator Shadow::First(uint64_t start)
{
    auto span = spans_.upper_bound(start);
    if (span != spans_.begin()) {
        const auto before = std::prev(span);
        if (before->second.end > start) {
            return before;
        }
    }
    return span;
}

void Shadow::Split(uint64_t at)
{
    const auto span = First(at);
    if (span == spans_.end() || span->first >= at) {
        return;
    }
    spans_.emplace_hint(std::next(span), at, Span{span->second.end, span->second.cell});
    span->second.end = at;
}

// Joins a span with the next one where both tell the same. Instructions of one pipe that may overlap
// stay apart, because one that touches a place twice must not be taken for another.
bool Shadow::Join(Spans::iterator left, bool in_order)
{
    const auto right = std::next(left);
    if (right == spans_.end() || left->second.end != right->first) {
        return false;
    }
    const Access &a = left->second.cell.writer;
    const Access &b = right->second.cell.writer;
    if (!a.SameEpoch(b) || !(in_order || a.serial == b.serial) ||
        !SameOthers(left->second.cell.others, right->second.cell.others)) {
        return false;
    }
    Cell &cell = left->second.cell;
    if (b.serial > cell.writer.serial) {
        cell.writer = b;
    }
    for (size_t i = 0; i < cell.others.size(); ++i) {
        cell.others[i].serial = std::max(cell.others[i].serial, right->second.cell.others[i].serial);
    }
    left->second.end = right->second.end;
    spans_.erase(right);
    return true;
}

void Shadow::Write(uint64_t start, uint64_t end, const Access &access, bool in_order)
{
    auto span = spans_.find(start);
    if (span != spans_.end() && span->second.end == end) {
        span->second.cell.writer = access;
        span->second.cell.others.clear();
    } else {
        Split(start);
        Split(end);
        auto stale = spans_.lower_bound(start);
        while (stale != spans_.end() && stale->first < end) {
            stale = spans_.erase(stale);
        }
        span = spans_.emplace_hint(stale, start, Span{end, Cell{access, {}}});
    }
    Join(span, in_order);
    if (span != spans_.begin()) {
        Join(std::prev(span), in_order);
    }
}

void Shadow::Add(uint64_t start, uint64_t end, const Access &access)
{
    Split(start);
    Split(end);
    uint64_t place = start;
    auto span = spans_.lower_bound(start);
    while (place < end) {
        if (span == spans_.end() || span->first > place) {
            const uint64_t stop = span == spans_.end() ? end : std::min(end, span->first);
            span = spans_.emplace_hint(span, place, Span{stop, Cell{}});
        }
        Remember(span->second.cell.others, access);
        place = span->second.end;
        ++span;
    }
    span = spans_.lower_bound(start);
    while (span != spans_.end() && span->first < end) {
        if (!Join(span, false)) {
            ++span;
        }
    }
    span = spans_.lower_bound(start);
    if (span != spans_.begin()) {
        Join(std::prev(span), false);
    }
}

}  // namespace evokernel::twin::race
