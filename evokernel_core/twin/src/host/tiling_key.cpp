// Tiling keys out of template arguments.
#include <algorithm>

#include "ascendc/host_api/tiling/template_argument.h"

namespace AscendC {

namespace {

// The values that a UINT parameter may have, ranges spelt out.
std::vector<uint64_t> Allowed(const ParamStruct &parameter)
{
    const std::vector<uint64_t> &given = parameter.vals;
    if (parameter.paramType != ASCENDC_TPL_UINT || given.empty()) {
        return given;
    }
    size_t next = 1;
    std::vector<uint64_t> values;
    if (given[0] != ASCENDC_TPL_UI_LIST && given.size() > 1) {
        const uint64_t ranges = given[next++];
        for (uint64_t range = 0; range < ranges && next + 1 < given.size(); ++range, next += 2) {
            for (uint64_t value = given[next]; value <= given[next + 1]; ++value) {
                values.push_back(value);
            }
        }
    }
    values.insert(values.end(), given.begin() + static_cast<std::ptrdiff_t>(std::min(next, given.size())), given.end());
    return values;
}

bool Contains(const std::vector<uint64_t> &values, uint64_t value)
{
    return std::find(values.begin(), values.end(), value) != values.end();
}

bool IsArgument(const ParamStruct &parameter)
{
    return parameter.paramType <= ASCENDC_TPL_BOOL || parameter.paramType == ASCENDC_TPL_SHARED_KERNEL_TYPE;
}

// Data types and formats that are taken from an input or output are not known here: any value will do.
bool IsFree(const ParamStruct &parameter)
{
    return !parameter.vals.empty() && parameter.vals[0] >= 0x10000;
}

bool Selects(const std::vector<ParamStruct> &choice, const std::vector<uint64_t> &values)
{
    size_t index = 0;
    for (const ParamStruct &parameter : choice) {
        if (!IsArgument(parameter)) {
            continue;
        }
        if (index >= values.size() || !(IsFree(parameter) || Contains(Allowed(parameter), values[index]))) {
            return false;
        }
        ++index;
    }
    return index == values.size();
}

}  // namespace

uint64_t EncodeTilingKey(const TilingDeclareParams &declared, const TilingSelectParams &selected,
                         std::vector<uint64_t> values)
{
    const auto fits = [&values](const std::vector<ParamStruct> &choice) { return Selects(choice, values); };
    if (declared.size() != values.size() || std::none_of(selected.begin(), selected.end(), fits)) {
        return INVALID_TILING_KEY;
    }
    uint64_t key = 0;
    unsigned shift = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        uint64_t field = values[i];
        if (declared[i].paramType == ASCENDC_TPL_UINT) {
            const std::vector<uint64_t> allowed = Allowed(declared[i]);
            const auto place = std::find(allowed.begin(), allowed.end(), field);
            if (place == allowed.end()) {
                return INVALID_TILING_KEY;
            }
            field = static_cast<uint64_t>(place - allowed.begin());
        }
        key |= shift < 64 ? field << shift : 0;
        shift += declared[i].bitWidth;
    }
    return key;
}

namespace {

// The key of the first choice of values; 0 where nothing is selected.
uint64_t FirstKey(const TilingDeclareParams &declared, const TilingSelectParams &selected)
{
    std::vector<uint64_t> values;
    for (const ParamStruct &parameter : selected.empty() ? declared : selected.front()) {
        if (IsArgument(parameter)) {
            const std::vector<uint64_t> allowed = Allowed(parameter);
            values.push_back(allowed.empty() ? 0 : allowed.front());
        }
    }
    const uint64_t key = EncodeTilingKey(declared, selected, std::move(values));
    return key == INVALID_TILING_KEY ? 0 : key;
}

}  // namespace

bool DeclareTemplate(const char *name, const TilingDeclareParams &declared, const TilingSelectParams &selected)
{
    evokernel::twin::TemplateOf chosen{name, {}, FirstKey(declared, selected)};
    for (const ParamStruct &parameter : declared) {
        chosen.parameters.push_back({parameter.paramType, parameter.bitWidth, Allowed(parameter)});
    }
    evokernel::twin::Templates().push_back(std::move(chosen));
    return true;
}

}  // namespace AscendC

std::vector<evokernel::twin::TemplateOf> &evokernel::twin::Templates()
{
    static std::vector<TemplateOf> templates;
    return templates;
}
