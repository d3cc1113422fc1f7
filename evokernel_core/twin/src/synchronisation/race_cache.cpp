// The data caches of the scalar units: GlobalTensor.GetValue and SetValue work on lines of 64 bytes that
// reach global memory, or are read from it again, only after DataCacheCleanAndInvalid.
#include <algorithm>
#include <map>

#include "synchronisation/race_state.h"

namespace evokernel::twin::race {

namespace {

constexpr uint64_t kLineBytes = 64;

// What one core stored in a line with SetValue.
struct Stores {
    Access last;
    uint64_t mask = 0;  // bytes of the line
    bool dirty = false;
};

using Lines = std::map<uint64_t, std::vector<Stores>>;

Lines &TheLines()
{
    static Lines lines;
    return lines;
}

uint64_t MaskOf(uint64_t line, uint64_t start, uint64_t end)
{
    const uint64_t base = line * kLineBytes;
    const uint64_t from = std::max(start, base) - base;
    const uint64_t to = std::min(end, base + kLineBytes) - base;
    const uint64_t ones = to - from == kLineBytes ? ~uint64_t{0} : (uint64_t{1} << (to - from)) - 1;
    return ones << from;
}

At Here(const CoreState &core) { return TheDetector().sites[core.current.site].at; }
const char *Api(const CoreState &core) { return TheDetector().sites[core.current.site].api; }

bool Mine(const CoreState &core, const Access &access) { return access.core == core.id; }

void ReportStale(const CoreState &core, const Stores &stores, uint64_t start, uint64_t end)
{
    ReportError("stale-cache", Here(core),
                "%s reads %s, but what SetValue of %s stored there is still in the data cache of %s; call "
                "DataCacheCleanAndInvalid after SetValue.",
                Api(core), GlobalBytes(start, end).c_str(), PlaceOf(core, stores.last.site).c_str(),
                NameOf(stores.last.core).c_str());
}

void ReportLine(const CoreState &core, const Stores &stores, uint64_t start, uint64_t end)
{
    ReportError("cache-line-race", Here(core),
                "%s on %s writes %s, in a 64-byte line that SetValue of %s changes on %s. A data cache writes "
                "whole lines back, so one of the two is lost. Give each core its own lines.",
                Api(core), NameOf(core.id).c_str(), GlobalBytes(start, end).c_str(),
                PlaceOf(core, stores.last.site).c_str(), NameOf(stores.last.core).c_str());
}

void ReportFlush(const CoreState &core, const Stores &stores, uint64_t start, uint64_t end)
{
    ReportError("cache-line-race", Here(core),
                "%s writes %s, in a 64-byte line that SetValue of %s left in the data cache; its write-back will "
                "overwrite them. Call DataCacheCleanAndInvalid before.",
                Api(core), GlobalBytes(start, end).c_str(), PlaceOf(core, stores.last.site).c_str());
}

// A copy engine's access: it sees global memory, not what waits in a data cache.
void CopyMeets(CoreState &core, uint64_t line, const Stores &stores, uint64_t start, uint64_t end, bool write)
{
    const bool ordered = Mine(core, stores.last) || Over(core, stores.last);
    const bool overlaps = (stores.mask & MaskOf(line, start, end)) != 0;
    if (!stores.dirty || (!ordered && overlaps)) {
        return;  // written back, or a race of the bytes themselves
    }
    if (write) {
        (Mine(core, stores.last) ? ReportFlush : ReportLine)(core, stores, start, end);
    } else if (ordered && overlaps) {
        ReportStale(core, stores, start, end);
    }
}

void ScalarMeets(CoreState &core, uint64_t line, const Stores &stores, uint64_t start, uint64_t end, bool write)
{
    if (Mine(core, stores.last)) {
        return;
    }
    const bool ordered = Over(core, stores.last);
    const bool overlaps = (stores.mask & MaskOf(line, start, end)) != 0;
    if (write && (ordered ? stores.dirty : !overlaps)) {
        ReportLine(core, stores, start, end);
    } else if (!write && ordered && overlaps && stores.dirty) {
        ReportStale(core, stores, start, end);
    }
}

// The line was loaded before somebody changed the bytes behind the cache's back.
void CheckHeld(CoreState &core, const Line &line, uint64_t start, uint64_t end)
{
    const auto check = [&](const Access &writer) {
        const bool own_store = Mine(core, writer) && writer.pipe == Pipe::S;
        if (writer.Nobody() || own_store || writer.serial <= line.since ||
            (!Mine(core, writer) && !Over(core, writer))) {
            return;
        }
        ReportError("stale-cache", Here(core),
                    "%s reads %s from a data cache line that it holds since before %s of %s wrote them; call "
                    "DataCacheCleanAndInvalid before reading again.",
                    Api(core), GlobalBytes(start, end).c_str(), TheDetector().sites[writer.site].api,
                    PlaceOf(core, writer.site).c_str());
    };
    TheDetector().global.Look(start, end, [&](uint64_t, uint64_t, const Cell &cell) {
        check(cell.writer);
        for (size_t i = 0; i < cell.others.Size(); ++i) {
            const Access &other = cell.others[i];
            if (other.atomic) {
                check(other);
            }
        }
    });
}

void Remember(CoreState &core, uint64_t line, uint64_t start, uint64_t end)
{
    std::vector<Stores> &all = TheLines()[line];
    auto mine = std::find_if(all.begin(), all.end(), [&](const Stores &s) { return Mine(core, s.last); });
    if (mine == all.end()) {
        mine = all.insert(all.end(), Stores{});
    }
    mine->last = core.current;
    mine->mask |= MaskOf(line, start, end);
    mine->dirty = true;
}

template <typename Visit> void EachStores(uint64_t start, uint64_t end, Visit visit)
{
    Lines &lines = TheLines();
    for (auto at = lines.lower_bound(start / kLineBytes); at != lines.end() && at->first * kLineBytes < end; ++at) {
        for (const Stores &stores : at->second) {
            visit(at->first, stores);
        }
    }
}

void CleanStores(CoreState &core, std::vector<Stores> &all)
{
    for (Stores &stores : all) {
        stores.dirty = stores.dirty && !Mine(core, stores.last);
    }
}

}  // namespace

bool VisitCaches(CoreState &core, uint64_t start, uint64_t end, bool write)
{
    if (core.current.pipe != Pipe::S || core.uncached) {
        EachStores(start, end, [&](uint64_t line, const Stores &stores) {
            CopyMeets(core, line, stores, start, end, write);
        });
        return core.uncached && !write;
    }
    EachStores(start, end, [&](uint64_t line, const Stores &stores) {
        ScalarMeets(core, line, stores, start, end, write);
    });
    bool polls = !write;
    for (uint64_t number = start / kLineBytes; number * kLineBytes < end; ++number) {
        Line &line = core.lines[number];
        const bool loads = !line.held || line.loader == core.current.serial;  // a poll may look twice
        if (!write && !loads) {
            CheckHeld(core, line, start, end);
        }
        polls = polls && loads && (line.cleaned || core.all_cleaned);
        if (loads) {
            line = Line{line.cleaned, true, core.current.serial, TheDetector().serial};
        }
        if (write) {
            Remember(core, number, start, end);
        }
    }
    return polls;
}

void CleanLines(Core &core, const uint8_t *address)
{
    CoreState *state = core.race;
    if (state == nullptr) {
        return;
    }
    if (address == nullptr) {
        state->all_cleaned = true;
        for (auto &[number, line] : state->lines) {
            line.held = false;
            const auto stores = TheLines().find(number);
            if (stores != TheLines().end()) {
                CleanStores(*state, stores->second);
            }
        }
        return;
    }
    const uint64_t number = reinterpret_cast<uintptr_t>(address) / kLineBytes;
    Line &line = state->lines[number];
    line.held = false;
    line.cleaned = true;
    const auto stores = TheLines().find(number);
    if (stores != TheLines().end()) {
        CleanStores(*state, stores->second);
    }
}

void ForgetCaches() { TheLines().clear(); }

}  // namespace evokernel::twin::race
