// Tiling data and keys: reads are checked against what the host put there.
#include "evokernel/twin/tiling_data.h"

#include "hazards.h"
#include "memory.h"

namespace evokernel::twin {

namespace {

struct Key {
    bool given = false;
    uint64_t value = 0;
};

Key &TheKey()
{
    static Key key;
    return key;
}

const uint8_t *Checked(const volatile void *source, uint64_t bytes, const char *type, At at)
{
    const auto *address = static_cast<const uint8_t *>(const_cast<const void *>(source));
    const Allocation *block = address == nullptr ? nullptr : Gm().Find(address);
    if (block == nullptr) {
        ReportError("tiling-misuse", at, "The tiling data of %s is not in device memory; copy it there before the launch.",
                    type);
        return nullptr;
    }
    const uint64_t left = block->bytes - static_cast<uint64_t>(address - block->base);
    if (left < bytes) {
        ReportError("tiling-misuse", at,
                    "%s has %llu bytes, but the launch gives %llu bytes of tiling data; both sides need one structure.",
                    type, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(left));
        return nullptr;
    }
    return block->mapping == nullptr ? nullptr : address;
}

}  // namespace

void ReadTiling(void *target, const volatile void *source, uint64_t bytes, const char *type, At at)
{
    const uint8_t *address = Checked(source, bytes, type, at);
    if (address == nullptr) {
        std::memset(target, 0, bytes);
        return;
    }
    std::memcpy(target, address, bytes);
}

void *TilingInPlace(const volatile void *source, uint64_t bytes, const char *type, At at)
{
    Checked(source, bytes, type, at);
    return const_cast<void *>(source);
}

uint64_t TilingKey(At at)
{
    if (!TheKey().given) {
        ReportError("tiling-misuse", at, "The kernel asks for its tiling key, but the launch has none; give \"tiling_key\".");
    }
    return TheKey().value;
}

void SetTilingKey(uint64_t key) { TheKey() = {true, key}; }

}  // namespace evokernel::twin
