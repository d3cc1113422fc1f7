#include "synchronisation/race_shadow.h"

#include <algorithm>
#include <iterator>

namespace evokernel::twin::race {

namespace {

// Cores that read one place and of which nothing is known: more than run at once cannot wait for each other.
constexpr size_t kMaxOthers = 128;

void Remember(Accesses &others, const Access &access)
{
    for (size_t i = 0; i < others.Size(); ++i) {
        const Access &other = others[i];
        if (other.core == access.core && other.pipe == access.pipe && other.atomic == access.atomic &&
            other.unit == access.unit) {
            others[i] = access;
            return;
        }
    }
    if (others.Size() < kMaxOthers) {
        others.Append(access);
    }
}

bool SameOthers(const Accesses &a, const Accesses &b)
{
    bool same = a.Size() == b.Size();
    for (size_t i = 0; same && i < a.Size(); ++i) {
        same = a[i].SameEpoch(b[i]);
    }
    return same;
}

}  // namespace

Shadow::Spans::iterator Shadow::First(uint64_t start)
{
    if (found_ && (*found_)->first <= start && start < (*found_)->second.end) {
        return *found_;
    }
    auto span = spans_.upper_bound(start);
    if (span != spans_.begin()) {
        const auto before = std::prev(span);
        if (before->second.end > start) {
            found_ = before;
            return before;
        }
    }
    return span;
}

Shadow::Spans::iterator Shadow::Split(Spans::iterator span, uint64_t at)
{
    const auto rest = spans_.emplace_hint(std::next(span), at, Span{span->second.end, span->second.cell});
    span->second.end = at;
    return rest;
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
    for (size_t i = 0; i < cell.others.Size(); ++i) {
        cell.others[i].serial = std::max(cell.others[i].serial, right->second.cell.others[i].serial);
    }
    left->second.end = right->second.end;
    spans_.erase(right);
    return true;
}

void Shadow::Write(uint64_t start, uint64_t end, const Access &access, bool in_order)
{
    auto span = First(start);
    found_.reset();
    if (span != spans_.end() && span->first < start) {
        span = Split(span, start);
    }
    while (span != spans_.end() && span->second.end < end) {
        span = spans_.erase(span);
    }
    if (span == spans_.end() || span->first >= end) {
        span = spans_.emplace_hint(span, start, Span{end, Cell{access, {}}});
    } else {
        if (span->second.end > end) {
            Split(span, end);
        }
        if (span->first > start) {
            const auto behind = spans_.erase(span);
            span = spans_.emplace_hint(behind, start, Span{end, Cell{access, {}}});
        } else {
            span->second.cell.writer = access;
            span->second.cell.others.Clear();
        }
    }
    Join(span, in_order);
    if (span != spans_.begin()) {
        Join(std::prev(span), in_order);
    }
}

void Shadow::Add(uint64_t start, uint64_t end, const Access &access)
{
    auto span = First(start);
    found_.reset();
    if (span != spans_.end() && span->first < start) {
        span = Split(span, start);
    }
    auto left = span == spans_.begin() ? spans_.end() : std::prev(span);
    for (uint64_t place = start; place < end; ++span) {
        if (span == spans_.end() || span->first > place) {
            const uint64_t stop = span == spans_.end() ? end : std::min(end, span->first);
            span = spans_.emplace_hint(span, place, Span{stop, Cell{}});
        } else if (span->second.end > end) {
            Split(span, end);
        }
        Remember(span->second.cell.others, access);
        place = span->second.end;
    }
    left = left == spans_.end() ? spans_.begin() : left;
    while (left != spans_.end() && left->first < end) {
        if (!Join(left, false)) {
            ++left;
        }
    }
}

}  // namespace evokernel::twin::race
