// How an argument travels, where its type does not say it: what each entry of the table wraps its arguments in.
//
// Each wrapper has two faces. In the candidate it holds what the call was given: Put writes it, Take reads back what
// the judge returned in it. In the judge its Store reads it, hands it to the real function and writes back.
#pragma once
#include <algorithm>
#include <tuple>

#include "judge/codec.h"

namespace evokernel::twin::wire {

template <typename T> struct Value {
    static constexpr bool kReturns = false;
    const T &given;

    EVK_ALWAYS void Put(Writer &writer) const { Encode(writer, given); }
    void Take(Reader &) const {}
    struct Store {
        T value{};
        EVK_ALWAYS void Read(Reader &reader) { Decode(reader, value); }
        T &Pass() { return value; }
        void Write(Writer &) const {}
    };
};

// A structure by its address, which may be null.
template <typename T> struct OptValue {
    static constexpr bool kReturns = false;
    const T *given;

    EVK_ALWAYS void Put(Writer &writer) const
    {
        writer.Raw(static_cast<uint8_t>(given != nullptr));
        if (given != nullptr) {
            Encode(writer, *given);
        }
    }
    void Take(Reader &) const {}
    struct Store {
        T value{};
        bool there = false;
        EVK_ALWAYS void Read(Reader &reader)
        {
            there = reader.Raw<uint8_t>() != 0;
            if (there) {
                Decode(reader, value);
            }
        }
        const T *Pass() { return there ? &value : nullptr; }
        void Write(Writer &) const {}
    };
};
template <typename T> OptValue<T> Opt(const T *given) { return {given}; }

// `count` elements, at most Most, that are read; the judge sees zeros behind them.
template <int Most, typename T> struct InValue {
    static constexpr bool kReturns = false;
    const T *given;
    uint32_t count;

    EVK_ALWAYS void Put(Writer &writer) const
    {
        const uint32_t length = std::min<uint32_t>(count, Most);
        writer.Raw(length);
        for (uint32_t i = 0; i < length; ++i) {
            Encode(writer, given[i]);
        }
    }
    void Take(Reader &) const {}
    struct Store {
        T value[Most]{};
        EVK_ALWAYS void Read(Reader &reader)
        {
            const auto length = reader.Raw<uint32_t>();
            if (length > Most) {
                Violation("a list is too long");
            }
            for (uint32_t i = 0; i < length; ++i) {
                Decode(reader, value[i]);
            }
        }
        const T *Pass() { return value; }
        void Write(Writer &) const {}
    };
};
template <int Count, typename T> InValue<Count, T> In(const T *given) { return {given, Count}; }
template <int Most, typename T> InValue<Most, T> In(const T *given, uint32_t count) { return {given, count}; }

// A number of things that a list above holds: from 0 to Most.
template <int Most, typename T> struct AtMostValue : Value<T> {
    struct Store : Value<T>::Store {
        EVK_ALWAYS void Read(Reader &reader)
        {
            Value<T>::Store::Read(reader);
            if (this->value < 0 || static_cast<uint64_t>(this->value) > Most) {
                Violation("a number of elements is too large");
            }
        }
    };
};
template <int Most, typename T> AtMostValue<Most, T> AtMost(const T &given) { return {{given}}; }

// What the judge writes: Most elements are there, `count` of them are wanted.
template <int Most, typename T> struct OutValue {
    static constexpr bool kReturns = true;
    T *given;
    uint32_t count;

    EVK_ALWAYS void Put(Writer &) const {}
    void Take(Reader &reader) const
    {
        for (uint32_t i = 0; i < Most; ++i) {
            T value{};
            Decode(reader, value);
            if (i < count) {
                given[i] = value;
            }
        }
    }
    struct Store {
        T value[Most]{};
        EVK_ALWAYS void Read(Reader &) {}
        T *Pass() { return value; }
        void Write(Writer &writer) const { Encode(writer, value); }
    };
};
template <int Count, typename T> OutValue<Count, T> Out(T *given) { return {given, Count}; }
template <int Most, typename T> OutValue<Most, T> Out(T *given, uint32_t count) { return {given, count}; }

// An address of the device.
template <typename T> struct DeviceValue {
    static constexpr bool kReturns = false;
    T given;

    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(ToWire(given)); }
    void Take(Reader &) const {}
    struct Store {
        void *value = nullptr;
        EVK_ALWAYS void Read(Reader &reader) { value = FromWire(reader.Raw<uint64_t>()); }
        T Pass() { return static_cast<T>(value); }
        void Write(Writer &) const {}
    };
};
template <typename T> DeviceValue<T *> Device(T *given) { return {given}; }

// Addresses in local memory as numbers.
template <int Count> struct WordsValue {
    static constexpr bool kReturns = false;
    const uint64_t *given;

    EVK_ALWAYS void Put(Writer &writer) const { writer.Bytes(given, Count * sizeof(uint64_t)); }
    void Take(Reader &) const {}
    struct Store {
        uint64_t value[Count]{};
        EVK_ALWAYS void Read(Reader &reader)
        {
            for (uint64_t &word : value) {
                word = reinterpret_cast<uint64_t>(FromWire(reader.Raw<uint64_t>()));
            }
        }
        const uint64_t *Pass() { return value; }
        void Write(Writer &) const {}
    };
};
template <int Count> WordsValue<Count> Words(const uint64_t *given) { return {given}; }

// Addresses that the judge writes: those that it read from local memory are the candidate's already.
template <int Most> struct OutWordsValue : OutValue<Most, uint64_t> {
    struct Store : OutValue<Most, uint64_t>::Store {
        void Write(Writer &writer) const
        {
            for (const uint64_t word : this->value) {
                const uint64_t address = ToWire(reinterpret_cast<const void *>(word));
                writer.Raw(address >= kLocalSpace && address < kGlobalSpace && word < kLocalSpace ? address : word);
            }
        }
    };
};
template <int Most> OutWordsValue<Most> OutWords(uint64_t *given, uint32_t count) { return {{given, count}}; }

struct WordValue {
    static constexpr bool kReturns = false;
    uint64_t given;

    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(given); }
    void Take(Reader &) const {}
    struct Store {
        uint64_t value = 0;
        EVK_ALWAYS void Read(Reader &reader) { value = reinterpret_cast<uint64_t>(FromWire(reader.Raw<uint64_t>())); }
        uint64_t Pass() { return value; }
        void Write(Writer &) const {}
    };
};
inline WordValue Word(uint64_t given) { return {given}; }

// A number that means something to the candidate only.
struct OpaqueValue {
    static constexpr bool kReturns = false;
    void *given;

    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(reinterpret_cast<uint64_t>(given)); }
    void Take(Reader &) const {}
    struct Store {
        uint64_t value = 0;
        EVK_ALWAYS void Read(Reader &reader) { value = reader.Raw<uint64_t>(); }
        void *Pass() { return reinterpret_cast<void *>(value); }
        void Write(Writer &) const {}
    };
};
inline OpaqueValue Opaque(void *given) { return {given}; }

// A text that is not a name in the source.
struct TextValue {
    static constexpr bool kReturns = false;
    const char *given;

    EVK_ALWAYS void Put(Writer &writer) const { EncodeText(writer, given == nullptr ? "" : given); }
    void Take(Reader &) const {}
    struct Store {
        std::string value;
        EVK_ALWAYS void Read(Reader &reader) { value = DecodeText(reader); }
        const char *Pass() { return value.c_str(); }
        void Write(Writer &) const {}
    };
};
inline TextValue Text(const char *given) { return {given}; }

template <typename T> Value<T> Wrap(const T &given) { return {given}; }
template <typename T> OptValue<T> Wrap(OptValue<T> given) { return given; }
template <int N, typename T> InValue<N, T> Wrap(InValue<N, T> given) { return given; }
template <int N, typename T> AtMostValue<N, T> Wrap(AtMostValue<N, T> given) { return given; }
template <int N, typename T> OutValue<N, T> Wrap(OutValue<N, T> given) { return given; }
template <typename T> DeviceValue<T> Wrap(DeviceValue<T> given) { return given; }
template <int N> OutWordsValue<N> Wrap(OutWordsValue<N> given) { return given; }
template <int N> WordsValue<N> Wrap(WordsValue<N> given) { return given; }
inline WordValue Wrap(WordValue given) { return given; }
inline OpaqueValue Wrap(OpaqueValue given) { return given; }
inline TextValue Wrap(TextValue given) { return given; }

template <typename... T> auto Pack(const T &...given) { return std::tuple<decltype(Wrap(given))...>(Wrap(given)...); }

template <typename Tuple> struct Returns;
template <typename... W> struct Returns<std::tuple<W...>> {
    static constexpr bool value = (false || ... || W::kReturns);
};

}  // namespace evokernel::twin::wire
