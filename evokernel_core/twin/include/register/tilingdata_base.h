// Tiling structures as the host defines them: plain data with a setter and a getter for each field.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

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
    size_t GetDataSize() const { return sizeof(Data); }
};

}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(Name) struct Name : public ::optiling::TilingDef<Name> {
#define TILING_DATA_FIELD_DEF(Type, field)       \
    Type field{};                                \
    void set_##field(Type value) { field = value; } \
    Type get_##field() const { return field; }
#define TILING_DATA_FIELD_DEF_ARR(Type, count, field)                                \
    Type field[count]{};                                                             \
    void set_##field(const Type *values) { std::memcpy(field, values, sizeof(field)); } \
    Type *get_##field() { return field; }
#define TILING_DATA_FIELD_DEF_STRUCT(Type, field) Type field;
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(Operator, Name) static_assert(sizeof(Name) > 0, #Operator);
