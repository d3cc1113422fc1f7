// Whole units of a number, on host and device.
#pragma once
#include <type_traits>

namespace Ops::Base {

// Without a unit the number stays as it is.
template <typename T, typename U> constexpr std::common_type_t<T, U> CeilDiv(T value, U unit)
{
    using Both = std::common_type_t<T, U>;
    const Both number = value, size = unit;
    if (size == 0) {
        return number;
    }
    const bool more = number % size != 0 && ((number < 0) == (size < 0));
    return number / size + (more ? 1 : 0);
}
template <typename T, typename U> constexpr std::common_type_t<T, U> FloorDiv(T value, U unit)
{
    return unit == 0 ? value : value / unit;
}
template <typename T, typename U> constexpr std::common_type_t<T, U> CeilAlign(T value, U unit)
{
    return unit == 0 ? value : CeilDiv(value, unit) * unit;
}
template <typename T, typename U> constexpr std::common_type_t<T, U> FloorAlign(T value, U unit)
{
    return unit == 0 ? value : FloorDiv(value, unit) * unit;
}

}  // namespace Ops::Base
