// Tiling data and tiling keys as a kernel gets at them.
#pragma once
#include <cstdint>
#include <cstring>

#include "evokernel/twin/at.h"

namespace evokernel::twin {

// Copies tiling data out of device memory; says so where it is shorter than what the kernel reads.
void ReadTiling(void *target, const volatile void *source, uint64_t bytes, const char *type, EVK_AT);

// The same data in place, checked once.
void *TilingInPlace(const volatile void *source, uint64_t bytes, const char *type, EVK_AT);

// The key of this launch; says so where the launch has none.
uint64_t TilingKey(EVK_AT);
void SetTilingKey(uint64_t key);

}  // namespace evokernel::twin

// The structure of GET_TILING_DATA: what was registered last in the scope.
#define REGISTER_TILING_DEFAULT(Type) using TypeOfREGISTER_TILING_DEFAULT [[maybe_unused]] = Type
#define REGISTER_TILING_FOR_TILINGKEY(expression, Type) static_assert(sizeof(Type) > 0, expression)
#define REGISTER_NONE_TILING static_assert(true)

#define GET_TILING_DATA_WITH_STRUCT(Type, name, address) \
    Type name;                                           \
    ::evokernel::twin::ReadTiling(&name, address, sizeof(Type), #Type)
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(TypeOfREGISTER_TILING_DEFAULT, name, address)
#define GET_TILING_DATA_MEMBER(Type, member, name, address)                                                          \
    decltype(Type::member) name;                                                                                     \
    ::evokernel::twin::ReadTiling(&name, reinterpret_cast<const volatile uint8_t *>(address) + offsetof(Type, member), \
                                  sizeof(name), #Type "::" #member)
#define GET_TILING_DATA_PTR_WITH_STRUCT(Type, name, address) \
    auto *name = static_cast<__tiling_data_ptr__ Type *>(::evokernel::twin::TilingInPlace(address, sizeof(Type), #Type))
#define COPY_TILING_WITH_STRUCT(Type, source, name)      \
    Type name##OnStack;                                  \
    std::memcpy(&name##OnStack, &(source), sizeof(Type)); \
    Type *name = &name##OnStack
#define COPY_TILING_WITH_ARRAY(Type, count, source, name)            \
    Type name##OnStack[count];                                       \
    std::memcpy(name##OnStack, &(source)[0], sizeof(name##OnStack)); \
    Type(*name)[count] = &name##OnStack

#define TILING_KEY_VAR (::evokernel::twin::TilingKey())
#define TILING_KEY_IS(key) (TILING_KEY_VAR == static_cast<uint64_t>(key))
#define TILING_KEY_LIST(first, second) (TILING_KEY_IS(first) || TILING_KEY_IS(second))
