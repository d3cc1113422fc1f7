// Structures out of constant bytes, for tiling that is known at compile time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Also in constant expressions. `T` must be trivially copyable; the bytes are those of the device's layout.
template <typename T> constexpr T convert_from_bytes(const uint8_t *bytes)
{
    static_assert(std::is_trivially_copyable_v<T>, "only plain structures are made of bytes");
    struct Image {
        uint8_t bytes[sizeof(T)];
    } image{};
    for (size_t i = 0; i < sizeof(T); ++i) {
        image.bytes[i] = bytes[i];
    }
    return __builtin_bit_cast(T, image);
}
