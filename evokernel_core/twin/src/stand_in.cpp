#include "stand_in.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "evokernel/twin/api.h"

namespace evokernel::twin::sampled {

namespace {

constexpr uint32_t kRemembered = 16;    // values of each place of the text
constexpr size_t kMostPlaces = 1 << 14;  // a kernel may claim any number of lines

struct Seen {
    uint64_t values[kRemembered] = {};
    uint32_t count = 0;
};

using Place = std::tuple<const char *, int, DType>;

std::map<Place, Seen> seen;
uint64_t state = 0;

// splitmix64, of which every word depends on all of the seed.
uint64_t Random()
{
    uint64_t word = state += 0x9E3779B97F4A7C15ULL;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9ULL;
    word = (word ^ word >> 27) * 0x94D049BB133111EBULL;
    return word ^ word >> 31;
}

// Bits of the fraction of a floating type and its exponent of one half; no bits for others.
struct Floating {
    int fraction;
    uint64_t half;
};

Floating FloatingOf(DType dtype)
{
    switch (dtype) {
        case DType::F16:
            return {10, 14};
        case DType::BF16:
            return {7, 126};
        case DType::F32:
            return {23, 126};
        case DType::F64:
            return {52, 1022};
        default:
            return {0, 0};
    }
}

// A value that was seen, of a fraction up to a quarter less.
uint64_t Like(uint64_t bits, const Floating &type, uint32_t width)
{
    if (type.fraction == 0) {
        return bits;
    }
    const uint64_t sign = uint64_t{1} << (8 * width - 1);
    const uint64_t magnitude = bits & (sign - 1);
    const uint64_t one = uint64_t{1} << type.fraction;
    const bool ordinary = magnitude >= one && magnitude / one < 2 * type.half + 3;  // no zero, denormal, infinity or NaN
    return ordinary ? bits - Random() % (one / 4) : bits;
}

// Where nothing was seen: a quarter to one, or a bit, which are places that every tensor has.
uint64_t Unseen(const Floating &type)
{
    return type.fraction == 0 ? Random() & 1 : ((type.half - 1) << type.fraction) + Random() % (2ULL << type.fraction);
}

void Note(const Place &place, uint64_t bits)
{
    if (seen.size() >= kMostPlaces && seen.find(place) == seen.end()) {
        return;
    }
    Seen &entry = seen[place];
    const uint64_t slot = entry.count < kRemembered ? entry.count++ : Random() % kRemembered;
    entry.values[slot] = bits;
}

uint64_t StandIn(const Place &place, uint32_t width)
{
    const Floating type = FloatingOf(std::get<DType>(place));
    const auto entry = seen.find(place);
    return entry == seen.end() ? Unseen(type) : Like(entry->second.values[Random() % entry->second.count], type, width);
}

}  // namespace

void ForgetScalars(uint64_t seed)
{
    seen.clear();
    state = seed;
}

void SeedScalars(const uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, data + i, sizeof(word));
        state ^= word;
        state = Random();
    }
}

uint64_t ScalarOf(uint64_t bits, bool known, DType dtype, At at)
{
    const Place place{at.file, at.line, dtype};
    if (known) {
        Note(place, bits);
        return bits;
    }
    return StandIn(place, DTypeBytes(dtype));
}

uint64_t ScalarOf(const uint8_t *bytes, const uint8_t *held, DType dtype, At at)
{
    const uint32_t width = DTypeBytes(dtype);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, width);
    if (std::memchr(held, 0, width) == nullptr) {
        return ScalarOf(bits, true, dtype, at);
    }
    uint64_t other = ScalarOf(bits, false, dtype, at);
    for (uint32_t i = 0; i < width; ++i) {
        if (held[i] != 0) {
            reinterpret_cast<uint8_t *>(&other)[i] = bytes[i];
        }
    }
    return other;
}

uint64_t CountOf(uint64_t count, bool known, uint64_t most, At at)
{
    const Place place{at.file, at.line, DType::U64};
    if (!known && seen.find(place) == seen.end()) {
        return most / 2;
    }
    return std::min(ScalarOf(count, known, DType::U64, at), most);
}

}  // namespace evokernel::twin::sampled
