// Device, context and status of the host runtime.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "chip.h"
#include "hazards.h"
#include "host/acl_status.h"
#include "memory.h"

namespace evokernel::twin::acl {

namespace {

struct Status {
    aclError code = ACL_SUCCESS;
    std::string message;
};

Status &TheStatus()
{
    static Status status;
    return status;
}

struct Device {
    bool chosen = false;
    std::set<void *> contexts;
    void *current = nullptr;
};

Device &TheDevice()
{
    static Device device;
    return device;
}

}  // namespace

aclError Fail(aclError code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    TheStatus() = {code, text};
    ReportWarning("acl-misuse", At{"", 0}, "%s", text);
    return code;
}

aclError LastError(bool forget)
{
    const aclError code = TheStatus().code;
    if (forget) {
        TheStatus() = {};
    }
    return code;
}

const std::string &LastMessage() { return TheStatus().message; }

aclError KernelStatus()
{
    for (const Hazard &hazard : Hazards()) {
        if (hazard.code == "deadlock" || hazard.code == "assert" || hazard.code == "crash") {
            TheStatus() = {ACL_ERROR_RT_AICORE_EXCEPTION, hazard.message.text};
            return ACL_ERROR_RT_AICORE_EXCEPTION;
        }
    }
    return ACL_SUCCESS;
}

aclError NeedDevice(const char *api)
{
    if (TheDevice().chosen || !TheDevice().contexts.empty()) {
        return ACL_SUCCESS;
    }
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, "%s is called before there is a device; call aclrtSetDevice(0) first.", api);
}

}  // namespace evokernel::twin::acl

using evokernel::twin::CurrentChip;
using evokernel::twin::acl::Fail;
using evokernel::twin::acl::TheDevice;

namespace {

aclError OnlyDeviceZero(const char *api, int64_t device)
{
    if (device == 0) {
        return ACL_SUCCESS;
    }
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s asks for device %lld, but there is only device 0.", api,
                static_cast<long long>(device));
}

}  // namespace

extern "C" {

aclError aclInit(const char *) { return ACL_SUCCESS; }
aclError aclFinalize() { return ACL_SUCCESS; }
const char *aclGetRecentErrMsg() { return evokernel::twin::acl::LastMessage().c_str(); }
// Of the log errors are shown, which is what a toolkit's level lets through where nobody sets it.
void aclAppLog(aclLogLevel level, const char *function, const char *file, uint32_t line, const char *format, ...)
{
    if (level < ACL_ERROR) {
        return;
    }
    std::fprintf(stderr, "%s:%u %s: ", file, line, function);
    va_list values;
    va_start(values, format);
    std::vfprintf(stderr, format, values);
    va_end(values);
    std::fputc('\n', stderr);
}
aclError aclrtGetLastError(aclrtLastErrLevel) { return evokernel::twin::acl::LastError(true); }
aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return evokernel::twin::acl::LastError(false); }

aclError aclrtSetDevice(int32_t device)
{
    const aclError status = OnlyDeviceZero("aclrtSetDevice", device);
    TheDevice().chosen = TheDevice().chosen || status == ACL_SUCCESS;
    return status;
}
aclError aclrtResetDevice(int32_t device)
{
    const aclError status = OnlyDeviceZero("aclrtResetDevice", device);
    TheDevice().chosen = TheDevice().chosen && status != ACL_SUCCESS;
    return status;
}
aclError aclrtResetDeviceForce(int32_t device) { return aclrtResetDevice(device); }
aclError aclrtGetDevice(int32_t *device)
{
    *device = 0;
    return evokernel::twin::acl::NeedDevice("aclrtGetDevice");
}
aclError aclrtGetDeviceCount(uint32_t *count)
{
    *count = 1;
    return ACL_SUCCESS;
}
aclError aclrtGetRunMode(aclrtRunMode *mode)
{
    *mode = ACL_HOST;
    return ACL_SUCCESS;
}
aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
    *major = 1;
    *minor = 0;
    *patch = 0;
    return ACL_SUCCESS;
}
const char *aclrtGetSocName()
{
    const char *name = std::getenv("EVOKERNEL_TWIN_SOC");
    return name == nullptr ? "Ascend910B1" : name;
}
aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t *value)
{
    switch (attribute) {
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
        case ACL_DEV_ATTR_CUBE_CORE_NUM:
            *value = static_cast<int64_t>(CurrentChip().aic);
            break;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM:
            *value = static_cast<int64_t>(CurrentChip().aiv);
            break;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
            *value = static_cast<int64_t>(CurrentChip().hbm_bytes);
            break;
        case ACL_DEV_ATTR_L2_CACHE_SIZE:
            *value = static_cast<int64_t>(CurrentChip().l2_bytes);
            break;
        default:
            return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetDeviceInfo does not know attribute %d.",
                        static_cast<int>(attribute));
    }
    return OnlyDeviceZero("aclrtGetDeviceInfo", device);
}
aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo info, int64_t *value)
{
    switch (info) {
        case ACL_DEVICE_INFO_AI_CORE_NUM:
            return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_AICORE_CORE_NUM, value);
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
            return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_VECTOR_CORE_NUM, value);
        case ACL_DEVICE_INFO_L2_SIZE:
            return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_L2_CACHE_SIZE, value);
        default:
            return Fail(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability does not know %d.", static_cast<int>(info));
    }
}
aclError aclrtGetHardwareSyncAddr(void **address)
{
    static uint8_t registers[64];
    *address = registers;
    return ACL_SUCCESS;
}
aclError aclrtSynchronizeDevice() { return evokernel::twin::acl::KernelStatus(); }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return aclrtSynchronizeDevice(); }

aclError aclrtCreateContext(aclrtContext *context, int32_t device)
{
    const aclError status = OnlyDeviceZero("aclrtCreateContext", device);
    if (status == ACL_SUCCESS) {
        *context = std::malloc(1);
        TheDevice().contexts.insert(*context);
        TheDevice().current = *context;
    }
    return status;
}
aclError aclrtDestroyContext(aclrtContext context)
{
    if (TheDevice().contexts.erase(context) == 0) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyContext gets what is no context, or no longer one.");
    }
    std::free(context);
    TheDevice().current = TheDevice().current == context ? nullptr : TheDevice().current;
    return ACL_SUCCESS;
}
aclError aclrtSetCurrentContext(aclrtContext context)
{
    if (TheDevice().contexts.count(context) == 0) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtSetCurrentContext gets what is no context, or no longer one.");
    }
    TheDevice().current = context;
    return ACL_SUCCESS;
}
aclError aclrtGetCurrentContext(aclrtContext *context)
{
    *context = TheDevice().current;
    return evokernel::twin::acl::NeedDevice("aclrtGetCurrentContext");
}
}
