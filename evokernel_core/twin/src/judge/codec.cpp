#include "judge/codec.h"

#include <algorithm>

namespace evokernel::twin::wire {

void EncodeText(Writer &writer, const std::string &text)
{
    const auto length = static_cast<uint32_t>(std::min<size_t>(text.size(), kLongestText));
    writer.Raw(length);
    writer.Bytes(text.data(), length);
}

std::string DecodeText(Reader &reader)
{
    const auto length = reader.Raw<uint32_t>();
    if (length > kLongestText) {
        Violation("a text is too long");
    }
    return std::string(reinterpret_cast<const char *>(reader.Take(length)), length);
}

}  // namespace evokernel::twin::wire
