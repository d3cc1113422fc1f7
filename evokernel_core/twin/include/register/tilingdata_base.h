// Tiling structures as the host defines them: plain data with a setter and a getter for each field.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#ifdef EVOKERNEL_OPERATOR_HOST
#include "evokernel/operator/layouts.h"
#include "evokernel/operator/types.h"
#endif

namespace optiling {

// What each of them can do; it holds nothing, so that the structure is just its fields.
template <typename Data>
class TilingDef {
public:
    void SaveToBuffer(void *target, size_t capacity) const
    {
        if (target != nullptr && capacity >= sizeof(Data)) {
            std::memcpy(target, static_cast<const Data *>(this), sizeof(Data));
        }
    }
    // Where the fields lie from now on: they are written there when the size of the data is asked for, which
    // a tiling function does once they are set.
    void SetDataPtr(void *target) { Target() = target; }
    size_t GetDataSize() const
    {
        SaveToBuffer(Target(), sizeof(Data));
        return sizeof(Data);
    }

private:
    void *&Target() const
    {
        static std::map<const void *, void *> targets;  // beside the structure, which is just its fields
        return targets[this];
    }
};

}  // namespace optiling

#ifdef EVOKERNEL_OPERATOR_HOST
// An operator's build asks its host code for the layout, of which it makes the kernel's structure.
#define EVK_TILING_NAME(Name)                         \
    using EvokernelSelf = Name;                       \
    static constexpr const char *kEvokernelName = #Name;
#define EVK_TILING_FIELD(Type, field, count)                                                    \
    inline static const bool kEvokernelField_##field =                                          \
        ::evokernel::twin::op::AddField<EvokernelSelf, Type>(kEvokernelName, #field, count);
#define REGISTER_TILING_DATA_CLASS(Operator, Name)                          \
    [[maybe_unused]] static const bool kEvokernelTiling##Operator##Name =   \
        ::evokernel::twin::op::SetTiling<Name>(#Operator);
#else
#define EVK_TILING_NAME(Name)
#define EVK_TILING_FIELD(Type, field, count)
#define REGISTER_TILING_DATA_CLASS(Operator, Name) static_assert(sizeof(Name) > 0, #Operator);
#endif

#define BEGIN_TILING_DATA_DEF(Name)                     \
    struct Name : public ::optiling::TilingDef<Name> {  \
        EVK_TILING_NAME(Name)
#define TILING_DATA_FIELD_DEF(Type, field)          \
    Type field{};                                   \
    EVK_TILING_FIELD(Type, field, 0)                \
    void set_##field(Type value) { field = value; } \
    Type get_##field() const { return field; }
#define TILING_DATA_FIELD_DEF_ARR(Type, count, field)                                   \
    Type field[count]{};                                                                \
    EVK_TILING_FIELD(Type, field, count)                                                \
    void set_##field(const Type *values) { std::memcpy(field, values, sizeof(field)); } \
    Type *get_##field() { return field; }
#define TILING_DATA_FIELD_DEF_STRUCT(Type, field) \
    Type field;                                   \
    EVK_TILING_FIELD(Type, field, 0)
#define END_TILING_DATA_DEF };
