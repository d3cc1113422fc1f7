// Values as bytes, the same for both sides. What comes from the candidate is checked as it is read: a boolean
// becomes one, an enumeration has one of its values, a reference names a memory that exists.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "evokernel/twin/at.h"
#include "evokernel/twin/enums.h"
#include "evokernel/twin/refs.h"
#include "judge/wire.h"

namespace evokernel::twin::wire {

// What the two sides do differently: each is linked with its own.
[[noreturn]] void Violation(const char *what);       // the message cannot be meant
uint32_t NumberOf(const char *name);                 // names travel once; 0 stands for null
const char *NameOf(uint32_t number);
uint64_t ToWire(const volatile void *address);       // of the device
void *FromWire(uint64_t address);

// Every field of every message passes here: a call each would cost more than the work. As part of a shared library the
// compiler does not inline them by itself.
#define EVK_ALWAYS __attribute__((always_inline))
#define EVK_INLINE EVK_ALWAYS inline

class Writer {
public:
    Writer(uint8_t *begin, size_t capacity) : begin_(begin), capacity_(capacity) {}

    EVK_INLINE void Bytes(const void *data, size_t count)
    {
        if (count > capacity_ - size_) {
            Violation("a message is too large");
        }
        std::memcpy(begin_ + size_, data, count);
        size_ += count;
    }
    template <typename T> EVK_INLINE void Raw(const T &value) { Bytes(&value, sizeof(T)); }
    size_t Size() const { return size_; }
    size_t Left() const { return capacity_ - size_; }
    void Clear() { size_ = 0; }
    void Rewind(size_t size) { size_ = size; }

private:
    uint8_t *begin_;
    size_t capacity_;
    size_t size_ = 0;
};

// References that a structure names by their addresses; they last as long as the message.
class Named {
public:
    LocalRef *Next()
    {
        if (count_ == kMost) {
            Violation("a message names too many tensors");
        }
        return &refs_[count_++];
    }
    void Forget() { count_ = 0; }

private:
    static constexpr int kMost = 16;

    LocalRef refs_[kMost];
    int count_ = 0;
};

// Small, so that who reads many fields does so from a copy that the compiler has in registers.
class Reader {
public:
    Reader(const uint8_t *begin, size_t size, Named *named = nullptr) : next_(begin), end_(begin + size), named_(named) {}

    EVK_INLINE void Bytes(void *to, size_t count) { std::memcpy(to, Take(count), count); }
    EVK_INLINE const uint8_t *Take(size_t count)
    {
        if (count > static_cast<size_t>(end_ - next_)) {
            Violation("a message ends too early");
        }
        const uint8_t *here = next_;
        next_ += count;
        return here;
    }
    template <typename T> EVK_INLINE T Raw()
    {
        T value;
        Bytes(&value, sizeof(T));
        return value;
    }
    bool Done() const { return next_ == end_; }

    LocalRef *Name()
    {
        if (named_ == nullptr) {
            Violation("a tensor is named where none can be");
        }
        return named_->Next();
    }

private:
    const uint8_t *next_;
    const uint8_t *end_;
    Named *named_;
};

// Specialised for each structure (EVK_FIELDS) and enumeration (EVK_ENUM) that travels.
template <typename T> struct Fields;
template <typename T> struct EnumRange;
template <typename T> struct IsBytes : std::false_type {};  // a structure of integers only: as its bytes

template <typename T> EVK_INLINE void Encode(Writer &writer, const T &value);
template <typename T> EVK_INLINE void Decode(Reader &reader, T &value);

// As its bytes: the places in it are checked by who reads it.
EVK_INLINE void Encode(Writer &writer, const LocalRef &value) { writer.Raw(value); }
EVK_INLINE void Decode(Reader &reader, LocalRef &value);

EVK_INLINE void Encode(Writer &writer, const At &value)
{
    writer.Raw(NumberOf(value.file));
    writer.Raw(value.line);
}
EVK_INLINE void Decode(Reader &reader, At &value)
{
    value.file = NameOf(reader.Raw<uint32_t>());
    value.line = reader.Raw<int>();
}

namespace detail {

template <typename T> EVK_INLINE void EncodePointer(Writer &writer, T *value)
{
    if constexpr (std::is_same_v<T, const char>) {
        writer.Raw(NumberOf(value));
    } else if constexpr (std::is_same_v<T, const LocalRef>) {
        writer.Raw(static_cast<uint8_t>(value != nullptr));
        if (value != nullptr) {
            Encode(writer, *value);
        }
    } else if constexpr (std::is_function_v<T>) {
        writer.Raw(reinterpret_cast<uint64_t>(value));  // a number to who may not call it
    } else {
        static_assert(std::is_same_v<T, uint8_t>, "Pointers travel as device addresses only.");
        writer.Raw(ToWire(value));
    }
}

template <typename T> EVK_INLINE void DecodePointer(Reader &reader, T *&value)
{
    if constexpr (std::is_same_v<T, const char>) {
        value = NameOf(reader.Raw<uint32_t>());
    } else if constexpr (std::is_same_v<T, const LocalRef>) {
        LocalRef *named = reader.Raw<uint8_t>() != 0 ? reader.Name() : nullptr;
        if (named != nullptr) {
            Decode(reader, *named);
        }
        value = named;
    } else if constexpr (std::is_function_v<T>) {
        value = reinterpret_cast<T *>(reader.Raw<uint64_t>());
    } else {
        static_assert(std::is_same_v<T, uint8_t>, "Pointers travel as device addresses only.");
        value = static_cast<uint8_t *>(FromWire(reader.Raw<uint64_t>()));
    }
}

// Counts and positions are multiplied with widths and strides: none is so large that this runs over.
EVK_INLINE void CheckCount(int64_t value)
{
    constexpr int64_t most = int64_t{1} << 40;
    if (value < -most || value > most) {
        Violation("a count is larger than any memory");
    }
}

template <typename T> EVK_INLINE void DecodeEnum(Reader &reader, T &value)
{
    using Number = std::underlying_type_t<T>;
    const Number number = reader.Raw<Number>();
    if (static_cast<int64_t>(number) < static_cast<int64_t>(EnumRange<T>::first) ||
        static_cast<int64_t>(number) > static_cast<int64_t>(EnumRange<T>::last)) {
        Violation("an enumeration has a value that it does not know");
    }
    value = static_cast<T>(number);
}

}  // namespace detail

template <typename T> EVK_INLINE void Encode(Writer &writer, const T &value)
{
    if constexpr (std::is_same_v<T, bool>) {
        writer.Raw(static_cast<uint8_t>(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || IsBytes<T>::value) {
        writer.Raw(value);
    } else if constexpr (std::is_pointer_v<T>) {
        detail::EncodePointer(writer, value);
    } else if constexpr (std::is_array_v<T>) {
        for (const auto &element : value) {
            Encode(writer, element);
        }
    } else {
        Fields<T>::Visit(value, [&writer](const auto &...fields) EVK_ALWAYS { (Encode(writer, fields), ...); });
    }
}

template <typename T> EVK_INLINE void Decode(Reader &reader, T &value)
{
    if constexpr (std::is_same_v<T, bool>) {
        value = reader.Raw<uint8_t>() != 0;
    } else if constexpr (std::is_enum_v<T>) {
        detail::DecodeEnum(reader, value);
    } else if constexpr (std::is_same_v<T, int64_t>) {
        reader.Bytes(&value, sizeof(T));
        detail::CheckCount(value);
    } else if constexpr (std::is_arithmetic_v<T> || IsBytes<T>::value) {
        reader.Bytes(&value, sizeof(T));
    } else if constexpr (std::is_pointer_v<T>) {
        detail::DecodePointer(reader, value);
    } else if constexpr (std::is_array_v<T>) {
        for (auto &element : value) {
            Decode(reader, element);
        }
    } else {
        Fields<T>::Visit(value, [&reader](auto &...fields) EVK_ALWAYS { (Decode(reader, fields), ...); });
    }
}

void EncodeText(Writer &writer, const std::string &text);
std::string DecodeText(Reader &reader);

EVK_INLINE void Decode(Reader &reader, LocalRef &value)
{
    value = reader.Raw<LocalRef>();
    if (value.position >= static_cast<uint8_t>(AscendC::TPosition::MAX) || value.dtype > DType::F64) {
        Violation("a tensor has a position or a type that does not exist");
    }
}

}  // namespace evokernel::twin::wire

// The names are those of all fields, in their order: one too many or too few does not compile.
#define EVK_FIELDS(Type, ...)                                                             \
    template <> struct Fields<Type> {                                                     \
        template <typename T, typename V> EVK_ALWAYS static void Visit(T &evk_whole, V &&evk_visit) \
        {                                                                                 \
            auto &[__VA_ARGS__] = evk_whole;                                              \
            evk_visit(__VA_ARGS__);                                                       \
        }                                                                                 \
    }
#define EVK_ENUM(Type, First, Last)                  \
    template <> struct EnumRange<Type> {             \
        static constexpr Type first = Type::First;   \
        static constexpr Type last = Type::Last;     \
    }
#define EVK_BYTES(Type) \
    template <> struct IsBytes<Type> : std::is_trivially_copyable<Type> {}
