// Who touched which bytes last: a map of byte ranges that split where an access ends inside one and
// grow together where neighbours tell the same.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <utility>
#include <optional>
#include <vector>

#include "time/pipeline.h"

namespace evokernel::twin::race {

constexpr uint32_t kNobody = ~uint32_t{0};

// One access. `epoch` counts the times that something waited for the pipe: accesses of one epoch
// complete together for everybody else.
struct Access {
    uint32_t core = kNobody;
    uint32_t epoch = 0;
    uint64_t serial = 0;  // of the instruction, over the whole run
    uint32_t site = 0;
    Pipe pipe = Pipe::S;
    bool atomic = false;
    bool unit = false;  // carries the unit flag of L0C

    bool Nobody() const { return core == kNobody; }
    bool SameEpoch(const Access &other) const
    {
        return core == other.core && epoch == other.epoch && pipe == other.pipe && atomic == other.atomic &&
               unit == other.unit;
    }
};

// Accesses of one place, of which there are one or two nearly always: these lie in the cell itself.
class Accesses {
public:
    size_t Size() const { return size_; }
    const Access &operator[](size_t i) const { return i < kFew ? few_[i] : more_[i - kFew]; }
    Access &operator[](size_t i) { return i < kFew ? few_[i] : more_[i - kFew]; }
    void Clear()
    {
        size_ = 0;
        more_.clear();
    }
    void Append(const Access &access)
    {
        if (size_ < kFew) {
            few_[size_] = access;
        } else {
            more_.push_back(access);
        }
        ++size_;
    }

private:
    static constexpr size_t kFew = 2;
    std::array<Access, kFew> few_;
    size_t size_ = 0;
    std::vector<Access> more_;
};

// The last write and the reads since then. Atomic writes without a plain one between are kept as
// `others` beside the reads, because they do not exclude each other.
struct Cell {
    Access writer;
    Accesses others;
};

// Where the nodes of maps lie that come and go with every instruction: what was given back is handed out next.
template <typename T> struct Nodes {
    using value_type = T;

    Nodes() = default;
    template <typename U> Nodes(const Nodes<U> &) {}
    T *allocate(size_t count)
    {
        if (count != 1 || free == nullptr) {
            return static_cast<T *>(::operator new(count * sizeof(T)));
        }
        Free *node = free;
        free = node->next;
        return reinterpret_cast<T *>(node);
    }
    void deallocate(T *node, size_t count)
    {
        if (count != 1) {
            return ::operator delete(node);
        }
        free = ::new (static_cast<void *>(node)) Free{free};
    }
    template <typename U> bool operator==(const Nodes<U> &) const { return true; }
    template <typename U> bool operator!=(const Nodes<U> &) const { return false; }

private:
    struct Free {
        Free *next;
    };
    static inline Free *free = nullptr;
};

class Shadow {
public:
    struct Span {
        uint64_t end;
        Cell cell;
    };

    // Calls visit(start, end, cell) for each span that meets [start, end).
    template <typename Visit> void Look(uint64_t start, uint64_t end, Visit visit)
    {
        for (auto span = First(start); span != spans_.end() && span->first < end; ++span) {
            visit(std::max(start, span->first), std::min(end, span->second.end), span->second.cell);
        }
    }

    // Makes the bytes hold this write and nothing else.
    void Write(uint64_t start, uint64_t end, const Access &access, bool in_order);

    // Adds the access to the bytes' others.
    void Add(uint64_t start, uint64_t end, const Access &access);

    void Clear()
    {
        spans_.clear();
        found_.reset();
    }

private:
    using Spans = std::map<uint64_t, Span, std::less<>, Nodes<std::pair<const uint64_t, Span>>>;

    Spans::iterator First(uint64_t start);
    // The part of a span from a place inside it on.
    Spans::iterator Split(Spans::iterator span, uint64_t at);
    bool Join(Spans::iterator left, bool in_order);

    Spans spans_;
    std::optional<Spans::iterator> found_;  // the span that the last search ended in, until spans change
};

}  // namespace evokernel::twin::race
