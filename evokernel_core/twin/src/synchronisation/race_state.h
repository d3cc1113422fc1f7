// What the parts of the race detector share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core.h"
#include "synchronisation/race_clock.h"

namespace evokernel::twin::race {

struct Site {
    const char *api;
    At at;
};

struct CoreName {
    CoreKind kind;
    int64_t index;
};

struct Detector {
    bool auto_sync = true;
    uint64_t serial = 0;
    std::vector<Site> sites;
    std::vector<CoreName> names;                        // by core id
    std::unordered_map<uint32_t, CoreState *> live;     // cores that run
    std::vector<std::unique_ptr<CoreState>> idle;
    Shadow global;
    Channels channels;
};
Detector &TheDetector();

uint32_t SiteOf(const char *api, At at);

// Which bytes, in words: "bytes 0 to 63 of UB".
Wording LocalBytes(Space space, uint64_t start, uint64_t end);
Wording GlobalBytes(uint64_t start, uint64_t end);

// What the earlier access and the current one did to the bytes.
enum class Clash { WriteAfterWrite, ReadAfterWrite, WriteAfterRead };
// Harmless: the write leaves the bytes as they were. Overwritten: nothing read the first of two copies.
enum class Weight { Wrong, Harmless, Overwritten };
void ReportSync(const CoreState &core, const Access &earlier, Clash clash, const Wording &bytes,
                Weight weight = Weight::Wrong);
// A read by the scalar unit that only a barrier of the compiler orders.
void ReportInserted(const CoreState &core, const Access &earlier, const Wording &bytes);
void ReportRace(const CoreState &core, const Access &earlier, Clash clash, const Wording &bytes,
                Weight weight = Weight::Wrong);

// Whether a write clashes is known when it is done: until then it waits in `doubts`.
void Doubtful(CoreState &core, const Doubt &doubt);
void Settle(CoreState &core);

inline Clash ClashOf(bool wrote, bool writes)
{
    return !writes ? Clash::ReadAfterWrite : wrote ? Clash::WriteAfterWrite : Clash::WriteAfterRead;
}
Wording PlaceOf(const CoreState &core, uint32_t site);
Wording NameOf(uint32_t core);

// Whether an access of another core is over for this one.
inline bool Over(const CoreState &core, const Access &access) { return core.Knows(core.current.pipe, access); }

// The data caches: before an access of global memory enters the shadow. Returns whether the access is a
// scalar load through a line that the core gave up on purpose: such loads poll what other cores write.
bool VisitCaches(CoreState &core, uint64_t start, uint64_t end, bool write);
void ForgetCaches();

}  // namespace evokernel::twin::race
