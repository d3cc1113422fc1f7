#include "vector/convert.h"

#include <cstring>

#include "evokernel/twin/half.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define EVK_F16C 1
#endif

namespace evokernel::twin {

namespace {

#ifdef EVK_F16C
// Asked of the processor itself: clang 14 does not know "f16c" by name, and Zig lacks what
// __builtin_cpu_supports needs.
bool CpuHasF16c()
{
    constexpr unsigned kSaved = 6;       // the system saves the SSE and AVX registers
    constexpr unsigned kAvx2 = 1U << 5;  // leaf 7, b
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_F16C) == 0 || (c & bit_OSXSAVE) == 0) {
        return false;
    }
    unsigned low = 0;
    unsigned high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & kSaved) == kSaved && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kAvx2) != 0;
}

bool HasF16c()
{
    static const bool has = CpuHasF16c();
    return has;
}

__attribute__((target("avx2,f16c"))) size_t WideHalfToFloat(const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
    }
    return i;
}

__attribute__((target("avx2,f16c"))) size_t WideFloatToHalf(const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i), bits);
    }
    return i;
}
#endif

}  // namespace

void HalfToFloat(const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;
#ifdef EVK_F16C
    i = HasF16c() ? WideHalfToFloat(from, to, n) : 0;
#endif
    for (; i < n; ++i) {
        to[i] = HalfValue(from[i]);
    }
}

void FloatToHalf(const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;
#ifdef EVK_F16C
    i = HasF16c() ? WideFloatToHalf(from, to, n) : 0;
#endif
    for (; i < n; ++i) {
        to[i] = HalfBits(from[i]);
    }
}

void BfloatToFloat(const uint16_t *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        to[i] = BfloatValue(from[i]);
    }
}

void FloatToBfloat(const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        to[i] = BfloatBits(from[i]);
    }
}

}  // namespace evokernel::twin
