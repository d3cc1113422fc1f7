// The fields of tiling structures that host code defines, for the kernel's copy of them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace evokernel::twin::op {

struct FieldOf {
    std::string type;
    std::string name;
    int64_t count;  // 0 for a field that is no array
};

struct Layout {
    std::string name;
    std::vector<FieldOf> fields;
};

// Structures in the order in which the first field of each is added: those inside others come first.
std::vector<Layout> &Layouts();
// An operator, or OPERATOR_KEY for a tiling key of its own, and the name of its structure.
std::map<std::string, std::string> &Tilings();

void Append(const char *structure, const std::string &type, const char *field, int64_t count);
// The last part of a type's name as the program spells it.
std::string Plain(const std::type_info &type);

template <typename T, typename = void>
struct Spelling {
    static std::string Text()
    {
        if constexpr (std::is_same_v<T, bool>) {
            return "bool";
        } else if constexpr (std::is_floating_point_v<T>) {
            return sizeof(T) == 4 ? "float" : "double";
        } else if constexpr (std::is_enum_v<T>) {
            return Spelling<std::underlying_type_t<T>>::Text();
        } else if constexpr (std::is_integral_v<T>) {
            return std::string(std::is_signed_v<T> ? "int" : "uint") + std::to_string(8 * sizeof(T)) + "_t";
        } else {
            return Plain(typeid(T));
        }
    }
};

template <typename Structure, typename Field>
bool AddField(const char *structure, const char *field, int64_t count)
{
    Append(structure, Spelling<Field>::Text(), field, count);
    return true;
}

template <typename Structure>
bool SetTiling(const char *type)
{
    Tilings()[type] = Structure::kEvokernelName;
    return true;
}

}  // namespace evokernel::twin::op
