// Status, names and sizes of data types for the host code of operators.
#pragma once
#include <algorithm>  // what is written for the published headers counts on these
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/alog_pub.h"
#include "evokernel/twin/branches.h"
#include "graph/types.h"
#include "securec.h"

// Host code spells it without its namespace.
using std::string;

namespace ge {

using char_t = char;
using graphStatus = uint32_t;
constexpr uint32_t SUCCESS = 0;
constexpr uint32_t FAILED = 0xFFFFFFFFU;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFFU;
constexpr graphStatus GRAPH_NOT_CHANGED = 1343242304U;
constexpr graphStatus GRAPH_PARAM_INVALID = 50331649U;
constexpr int64_t UNKNOWN_DIM = -1;
constexpr int64_t UNKNOWN_DIM_NUM = -2;

// Bytes of an element; elements of less than a byte are 1000 and their bits.
constexpr int kDataTypeSizeBitOffset = 1000;
int GetSizeByDataType(DataType type);
// -1 where the size does not fit.
int64_t GetSizeInBytes(int64_t elements, DataType type);
inline Format GetPrimaryFormat(Format format) { return static_cast<Format>(static_cast<uint32_t>(format) & 0xFFU); }
inline int32_t GetPrimaryFormat(int32_t format) { return static_cast<int32_t>(static_cast<uint32_t>(format) & 0xFFU); }

class AscendString {
public:
    AscendString() = default;
    AscendString(const char *text) : text_(text == nullptr ? "" : text) {}  // NOLINT: implicit as published
    const char *GetString() const { return text_.c_str(); }
    size_t GetLength() const { return text_.size(); }
    bool operator==(const AscendString &other) const { return text_ == other.text_; }
    bool operator!=(const AscendString &other) const { return text_ != other.text_; }
    bool operator<(const AscendString &other) const { return text_ < other.text_; }

private:
    std::string text_;
};

class TypeUtils {
public:
    static std::string DataTypeToSerialString(DataType type);
    static std::string FormatToSerialString(Format format);
    static AscendString DataTypeToAscendString(DataType type) { return DataTypeToSerialString(type).c_str(); }
    static AscendString FormatToAscendString(Format format) { return FormatToSerialString(format).c_str(); }
    static bool GetDataTypeLength(DataType type, uint32_t &bytes)
    {
        bytes = static_cast<uint32_t>(GetSizeByDataType(type));
        return GetSizeByDataType(type) > 0;
    }
};

}  // namespace ge
