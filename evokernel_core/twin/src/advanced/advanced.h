// One call of a high-level function: its checks, its cost in basic instructions and its operands as numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "core.h"

namespace evokernel::twin {

constexpr uint32_t kHalfTypes = 1U << static_cast<int>(DType::F16);
constexpr uint32_t kFloatTypes = 1U << static_cast<int>(DType::F32);
constexpr uint32_t kBfloatTypes = 1U << static_cast<int>(DType::BF16);
constexpr uint32_t kRealTypes = kHalfTypes | kFloatTypes;

constexpr uint32_t TypeBit(DType type) { return 1U << static_cast<int>(type); }
constexpr uint64_t AlignTo(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Numbers of a tensor, from element `first` on, as float (integers of 32 bits lose nothing below 2^24).
std::vector<float> Numbers(const LocalRef &tensor, uint64_t first, uint64_t count);
void SetNumbers(const LocalRef &tensor, uint64_t first, const float *values, uint64_t count);
float NumberAt(const LocalRef &tensor, uint64_t index);
void SetNumber(const LocalRef &tensor, uint64_t index, float value);
// The value as the tensor's type holds it.
float RoundTo(DType type, float value);

bool Undefined(const LocalRef &tensor, uint64_t first, uint64_t count);
void MarkElements(const LocalRef &tensor, uint64_t first, uint64_t count, bool undefined);

// The tree that the reduction instructions build: adjacent pairs first.
float PairSum(std::vector<float> values);

class Advanced {
public:
    Advanced(const char *name, At at) : name_(name), at_(at) {}

    const char *Name() const { return name_; }
    At Place() const { return at_; }

    // Cost: `times` instructions over so many elements of so many bytes; Slow is the rate of Exp, Ln, Sqrt, Div.
    void Simple(uint64_t elements, uint32_t width, int times = 1) const;
    void Slow(uint64_t elements, uint32_t width, int times = 1) const;
    // Rows of n elements, each reduced to one: repeats are reduced until one result is left.
    void ReduceRows(uint64_t rows, uint64_t n, uint32_t width) const;

    // Checks. Each keeps in mind that the call may not go on.
    void Type(const LocalRef &tensor, uint32_t types, const char *operand);
    void Same(const LocalRef &tensor, const LocalRef &other, const char *operand);
    void In(const LocalRef &tensor, uint64_t elements, const char *operand);
    void Out(const LocalRef &tensor, uint64_t elements, const char *operand);
    void Blocks(uint64_t bytes, const char *what);  // a row must be whole blocks of 32 bytes
    void Apart(const LocalRef &a, uint64_t a_elements, const char *a_name, const LocalRef &b, uint64_t b_elements,
               const char *b_name);
    // A temporary of the caller, or (null) one that the framework takes from what the kernel left of UB.
    void Temporary(const LocalRef *buffer, uint64_t minimum);
    // The temporary may not lie over an operand; what it held is lost.
    void Spoil(const LocalRef *buffer, uint64_t bytes);
    void Fail(const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));

    // Whether the call may go on: in a sampled run also whether its sources hold any value; else its results hold none.
    bool Good();

private:
    struct Range {
        uint32_t begin;
        uint32_t end;
        const char *operand;
        bool write;
    };
    void Claim(const LocalRef &tensor, uint64_t elements, bool write, const char *operand);

    const char *name_;
    At at_;
    bool good_ = true;
    std::vector<Range> ranges_;
};

bool TimingOnly();

}  // namespace evokernel::twin
