// Streams and events of the host runtime: everything sent to a stream is done at once.
#include <map>
#include <set>

#include "host/acl_status.h"
#include "launch.h"

namespace {

using evokernel::twin::acl::Fail;
using evokernel::twin::acl::KernelStatus;

struct Event {
    bool recorded = false;
    double us = 0;
};

std::set<void *> &Streams()
{
    static std::set<void *> streams;
    return streams;
}

std::map<void *, Event> &Events()
{
    static std::map<void *, Event> events;
    return events;
}

// A null stream is the default one.
aclError NeedStream(const char *api, aclrtStream stream)
{
    if (stream == nullptr || Streams().count(stream) != 0) {
        return ACL_SUCCESS;
    }
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT, "%s gets a stream that was never created or is destroyed.", api);
}

Event *Find(const char *api, aclrtEvent event)
{
    const auto record = Events().find(event);
    if (record == Events().end()) {
        Fail(ACL_ERROR_RT_PARAM_INVALID, "%s gets an event that was never created or is destroyed.", api);
        return nullptr;
    }
    return &record->second;
}

double ModelledUs()
{
    double total = 0;
    for (const auto &launch : evokernel::twin::TheSession().launches) {
        total += launch.latency_us;
    }
    return total;
}

// Handles are addresses that nothing else has.
void *Handle() { return new char; }
void Forget(void *handle) { delete static_cast<char *>(handle); }

}  // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream *stream)
{
    const aclError status = evokernel::twin::acl::NeedDevice("aclrtCreateStream");
    if (status == ACL_SUCCESS) {
        *stream = Handle();
        Streams().insert(*stream);
    }
    return status;
}
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t, uint32_t) { return aclrtCreateStream(stream); }
aclError aclrtDestroyStream(aclrtStream stream)
{
    if (Streams().erase(stream) == 0) {
        return Fail(ACL_ERROR_RT_STREAM_CONTEXT, "aclrtDestroyStream gets a stream that does not exist, or not any more.");
    }
    Forget(stream);
    return ACL_SUCCESS;
}
aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }
aclError aclrtSynchronizeStream(aclrtStream stream)
{
    const aclError status = NeedStream("aclrtSynchronizeStream", stream);
    return status == ACL_SUCCESS ? KernelStatus() : status;
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) { return aclrtSynchronizeStream(stream); }
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    *status = ACL_STREAM_STATUS_COMPLETE;
    return NeedStream("aclrtStreamQuery", stream);
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
    *event = Handle();
    Events()[*event] = Event{};
    return ACL_SUCCESS;
}
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t) { return aclrtCreateEvent(event); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t) { return aclrtCreateEvent(event); }
aclError aclrtDestroyEvent(aclrtEvent event)
{
    if (Find("aclrtDestroyEvent", event) == nullptr) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    Events().erase(event);
    Forget(event);
    return ACL_SUCCESS;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    Event *record = Find("aclrtRecordEvent", event);
    if (record == nullptr) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *record = {true, ModelledUs()};
    return NeedStream("aclrtRecordEvent", stream);
}
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    Event *record = Find("aclrtResetEvent", event);
    if (record == nullptr) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *record = {};
    return NeedStream("aclrtResetEvent", stream);
}
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    return Find("aclrtStreamWaitEvent", event) == nullptr ? ACL_ERROR_RT_PARAM_INVALID
                                                          : NeedStream("aclrtStreamWaitEvent", stream);
}
aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    return Find("aclrtSynchronizeEvent", event) == nullptr ? ACL_ERROR_RT_PARAM_INVALID : KernelStatus();
}
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t) { return aclrtSynchronizeEvent(event); }
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    const Event *record = Find("aclrtQueryEvent", event);
    *status = record != nullptr && record->recorded ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return record == nullptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
}
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    const Event *record = Find("aclrtQueryEventStatus", event);
    *status = record != nullptr && record->recorded ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                                  : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return record == nullptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
}
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start, aclrtEvent end)
{
    const Event *first = Find("aclrtEventElapsedTime", start);
    const Event *last = Find("aclrtEventElapsedTime", end);
    if (first == nullptr || last == nullptr) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (!first->recorded || !last->recorded) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtEventElapsedTime needs two events that aclrtRecordEvent recorded.");
    }
    *milliseconds = static_cast<float>((last->us - first->us) / 1000);
    return ACL_SUCCESS;
}
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *microseconds)
{
    const Event *record = Find("aclrtEventGetTimestamp", event);
    if (record == nullptr || !record->recorded) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *microseconds = static_cast<uint64_t>(record->us);
    return ACL_SUCCESS;
}
}
