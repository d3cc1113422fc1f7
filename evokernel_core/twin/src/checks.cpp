#include "checks.h"

#include <string>

namespace evokernel::twin {

namespace {

bool Fits(const TypeRule &rule, const CallTypes &types)
{
    if (rule.types[0] != types.dst) {
        return false;
    }
    if (rule.sources == 0) {
        for (int i = 0; i < types.count; ++i) {
            if (types.sources[i] != types.dst) {
                return false;
            }
        }
        return true;
    }
    for (int i = 0; i < types.count; ++i) {
        if (types.sources[i] != rule.types[1 + (i < rule.sources ? i : rule.sources - 1)]) {
            return false;
        }
    }
    return types.count >= rule.sources;
}

std::string Said(const CallTypes &types)
{
    std::string text;
    bool alike = true;
    for (int i = 0; i < types.count; ++i) {
        text += (i == 0 ? "" : " x ") + std::string(DTypeName(types.sources[i]));
        alike = alike && types.sources[i] == types.dst;
    }
    return alike ? DTypeName(types.dst) : text + " -> " + DTypeName(types.dst);
}

std::string Said(const ApiRow &row)
{
    std::string text;
    for (int i = 0; i < row.rules; ++i) {
        const TypeRule &rule = kTypeRules[row.first_rule + i];
        text += i == 0 ? "" : ", ";
        for (int k = 0; k < rule.sources; ++k) {
            text += (k == 0 ? "" : " x ") + std::string(DTypeName(rule.types[1 + k]));
        }
        text += (rule.sources == 0 ? "" : " -> ") + std::string(DTypeName(rule.types[0]));
    }
    return text;
}

}  // namespace

const TypeRule *RuleFor(const ApiRow &row, const CallTypes &types)
{
    for (int i = 0; i < row.rules; ++i) {
        const TypeRule &rule = kTypeRules[row.first_rule + i];
        if (Fits(rule, types)) {
            return &rule;
        }
    }
    return nullptr;
}

bool CheckTypes(const Checked &checked, const CallTypes &types, At at)
{
    if (RuleFor(*checked.row, types) != nullptr) {
        return true;
    }
    ReportError("dtype-unsupported", at, "%s does not exist for %s on this chip; it takes %s.", checked.name,
                Said(types).c_str(), Said(*checked.row).c_str());
    return false;
}

bool CheckMode(const Checked &checked, const CallTypes &types, uint32_t mode_bit, const char *mode, At at)
{
    const TypeRule *rule = RuleFor(*checked.row, types);
    if (rule == nullptr || (rule->modes & mode_bit) != 0) {
        return rule != nullptr;
    }
    ReportError("dtype-unsupported", at, "%s of %s does not take %s on this chip.", checked.name, Said(types).c_str(),
                mode);
    return false;
}

bool CheckLimit(const Checked &checked, const char *parameter, int64_t value, At at)
{
    const Limit &limit = FindLimit(*checked.row, kLimits, parameter);
    if (value >= limit.low && value <= limit.high) {
        return true;
    }
    ReportError("param-limit", at, "%s takes a %s of %lld to %lld, not %lld; split the call.", checked.name, parameter,
                static_cast<long long>(limit.low), static_cast<long long>(limit.high), static_cast<long long>(value));
    return false;
}

bool CheckRepeats(const Checked &checked, int64_t repeats, At at)
{
    if (repeats >= 0 && repeats <= checked.row->repeats) {
        return true;
    }
    ReportError("repeat-limit", at, "%s gets %lld repeats; at most %d fit in one instruction.", checked.name,
                static_cast<long long>(repeats), checked.row->repeats);
    return false;
}

}  // namespace evokernel::twin
