// Shape, stride, coordinate and layout: nested tuples, and the index of a coordinate in a layout.
#pragma once
#include "evokernel/twin/cpp_std.h"

namespace AscendC {

template <typename... Ts> using Shape = Std::tuple<Ts...>;
template <typename... Ts> using Stride = Std::tuple<Ts...>;
template <typename... Ts> using Coord = Std::tuple<Ts...>;

template <typename... Ts> constexpr Shape<Ts...> MakeShape(const Ts &...t) { return {t...}; }
template <typename... Ts> constexpr Stride<Ts...> MakeStride(const Ts &...t) { return {t...}; }
template <typename... Ts> constexpr Coord<Ts...> MakeCoord(const Ts &...t) { return {t...}; }

namespace detail {

template <typename T> struct IsTuple : std::false_type {};
template <typename... Ts> struct IsTuple<std::tuple<Ts...>> : std::true_type {};

template <typename Coordinate, typename ShapeType, typename StrideType>
constexpr auto IndexOf(const Coordinate &coord, const ShapeType &shape, const StrideType &stride);

template <typename C, typename S, typename D, size_t... I>
constexpr auto SumOf(const C &coord, const S &shape, const D &stride, std::index_sequence<I...>)
{
    return (IndexOf(std::get<I>(coord), std::get<I>(shape), std::get<I>(stride)) + ...);
}

// A number for a nest of dimensions: its digits, the first dimension fastest.
template <size_t at, typename C, typename S, typename D>
constexpr auto Delinearized(const C &coord, const S &shape, const D &stride)
{
    if constexpr (at + 1 == std::tuple_size_v<S>) {
        return IndexOf(coord, std::get<at>(shape), std::get<at>(stride));
    } else {
        const auto extent = std::get<at>(shape);
        return IndexOf(coord % extent, extent, std::get<at>(stride)) +
               Delinearized<at + 1>(coord / extent, shape, stride);
    }
}

template <typename Coordinate, typename ShapeType, typename StrideType>
constexpr auto IndexOf(const Coordinate &coord, const ShapeType &shape, const StrideType &stride)
{
    if constexpr (IsTuple<Coordinate>::value) {
        return SumOf(coord, shape, stride, std::make_index_sequence<std::tuple_size_v<Coordinate>>{});
    } else if constexpr (IsTuple<ShapeType>::value) {
        return Delinearized<0>(coord, shape, stride);
    } else {
        return coord * stride;
    }
}

}  // namespace detail

template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType &coord, const ShapeType &shape, const StrideType &stride)
{
    return detail::IndexOf(coord, shape, stride);
}

template <typename ShapeType, typename StrideType> struct Layout : private Std::tuple<ShapeType, StrideType> {
    constexpr Layout(const ShapeType &shape = {}, const StrideType &stride = {})
        : Std::tuple<ShapeType, StrideType>(shape, stride)
    {
    }

    constexpr decltype(auto) layout() { return *this; }
    constexpr decltype(auto) layout() const { return *this; }
    constexpr decltype(auto) GetShape() { return std::get<0>(Pair()); }
    constexpr decltype(auto) GetShape() const { return std::get<0>(Pair()); }
    constexpr decltype(auto) GetStride() { return std::get<1>(Pair()); }
    constexpr decltype(auto) GetStride() const { return std::get<1>(Pair()); }
    template <typename CoordType> constexpr auto operator()(const CoordType &coord) const
    {
        return Crd2Idx(coord, GetShape(), GetStride());
    }

private:
    constexpr Std::tuple<ShapeType, StrideType> &Pair() { return *this; }
    constexpr const Std::tuple<ShapeType, StrideType> &Pair() const { return *this; }
};

template <typename ShapeType, typename StrideType>
constexpr auto MakeLayout(const ShapeType &shape, const StrideType &stride)
{
    return Layout<ShapeType, StrideType>(shape, stride);
}

template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType &coord, const Layout<ShapeType, StrideType> &layout)
{
    return layout(coord);
}

template <typename T> struct is_layout : std::false_type {};
template <typename ShapeType, typename StrideType> struct is_layout<Layout<ShapeType, StrideType>> : std::true_type {};
template <typename T> constexpr bool is_layout_v = is_layout<T>::value;

}  // namespace AscendC
