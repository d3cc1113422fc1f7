// The sentences about what is not in order.
#include <cstring>

#include "synchronisation/race_state.h"

namespace evokernel::twin::race {

namespace {

const Site &Of(uint32_t site) { return TheDetector().sites[site]; }

const char *Verb(Clash clash) { return clash == Clash::ReadAfterWrite ? Word("reads") : Word("writes"); }
const char *Participle(Clash clash) { return clash == Clash::WriteAfterRead ? Word("read") : Word("written"); }

// Writing the same bytes twice is right in either order, if they are the same for every input.
const char *Remark(Weight weight)
{
    return weight == Weight::Harmless
               ? Word("; it leaves them as they are here, but where it does not, the order decides")
           : weight == Weight::Overwritten ? Word("; nothing reads the first copy, but which one stays is open")
                                           : "";
}

Wording BytesOf(uint64_t start, uint64_t end, const char *memory)
{
    return Wording("bytes %llu to %llu of %s", static_cast<unsigned long long>(start),
                 static_cast<unsigned long long>(end - 1), memory);
}

}  // namespace

Wording PlaceOf(const CoreState &core, uint32_t site)
{
    const At here = Of(core.current.site).at;
    const At there = Of(site).at;
    const bool same = here.file == there.file ||
                      (here.file != nullptr && there.file != nullptr && std::strcmp(here.file, there.file) == 0);
    return same || there.file == nullptr ? Wording("line %d", there.line)
                                         : Wording("line %d of %s", there.line, there.file);
}

Wording NameOf(uint32_t core)
{
    const CoreName &name = TheDetector().names[core];
    const unsigned long long index = name.index;
    return name.kind == CoreKind::Cube ? Wording("cube core %llu", index) : Wording("vector core %llu", index);
}

Wording LocalBytes(Space space, uint64_t start, uint64_t end) { return BytesOf(start, end, SpaceName(space)); }

Wording GlobalBytes(uint64_t start, uint64_t end)
{
    const Allocation *block = Gm().Find(reinterpret_cast<const uint8_t *>(static_cast<uintptr_t>(start)));
    const uint64_t base = block == nullptr ? 0 : static_cast<uint64_t>(reinterpret_cast<uintptr_t>(block->base));
    return BytesOf(start - base, end - base, block == nullptr ? Word("global memory") : block->name.c_str());
}

void ReportSync(const CoreState &core, const Access &earlier, Clash clash, const Wording &bytes,
                Weight weight)
{
    const Site &now = Of(core.current.site);
    const std::string from = PipeName(earlier.pipe);
    const std::string to = PipeName(core.current.pipe);
    const Wording there = PlaceOf(core, earlier.site);
    const std::string cure = from == to ? "PipeBarrier<PIPE_" + from + ">" : "SetFlag/WaitFlag " + from + "_" + to;
    const Wording here("line %d", now.at.line);
    const Wording where = there == here ? Wording("the two calls of %s", here.c_str())
                                      : Wording("%s and %s", there.c_str(), here.c_str());
    (weight == Weight::Wrong ? ReportError : ReportWarning)(
        "missing-sync", now.at, "%s %s %s, which %s of %s may still be %s%s; put %s between %s.", now.api, Verb(clash),
        bytes.c_str(), Of(earlier.site).api, there.c_str(), clash == Clash::WriteAfterRead ? Word("reading") : Word("writing"),
        Remark(weight), cure.c_str(), where.c_str());
}

void ReportInserted(const CoreState &core, const Access &earlier, const Wording &bytes)
{
    const Site &now = Of(core.current.site);
    ReportWarning("missing-sync", now.at,
                  "%s reads %s, which %s of %s writes. PipeBarrier<PIPE_V> does not hold up the scalar unit, "
                  "so this relies on --cce-auto-sync. Put SetFlag/WaitFlag V_S between the two.",
                  now.api, bytes.c_str(), Of(earlier.site).api, PlaceOf(core, earlier.site).c_str());
}

void ReportRace(const CoreState &core, const Access &earlier, Clash clash, const Wording &bytes,
                Weight weight)
{
    const Site &now = Of(core.current.site);
    (weight == Weight::Wrong ? ReportError : ReportWarning)(
        "cross-core-race", now.at,
        "%s on %s %s %s, which are %s by %s of %s on %s, and nothing orders the two%s. Put SyncAll or a flag "
        "between, or give each core its own bytes.",
        now.api, NameOf(core.id).c_str(), Verb(clash), bytes.c_str(), Participle(clash), Of(earlier.site).api,
        PlaceOf(core, earlier.site).c_str(), NameOf(earlier.core).c_str(), Remark(weight));
}

void Doubtful(CoreState &core, const Doubt &doubt)
{
    core.doubts.push_back(doubt);
    core.doubts.back().before.assign(doubt.place, doubt.place + (doubt.end - doubt.start));
}

void Settle(CoreState &core)
{
    for (const Doubt &doubt : core.doubts) {
        const bool global = doubt.space == kGlobal;
        const bool same = std::memcmp(doubt.place, doubt.before.data(), doubt.before.size()) == 0;
        const bool again = !global && doubt.wrote && doubt.earlier.site == core.current.site;
        const Weight weight = same ? Weight::Harmless : again ? Weight::Overwritten : Weight::Wrong;
        const Wording bytes = global ? GlobalBytes(doubt.start, doubt.end)
                                   : LocalBytes(static_cast<Space>(doubt.space), doubt.start, doubt.end);
        const Clash clash = ClashOf(doubt.wrote, true);
        (doubt.earlier.core == core.id ? ReportSync : ReportRace)(core, doubt.earlier, clash, bytes, weight);
    }
    core.doubts.clear();
}

}  // namespace evokernel::twin::race
