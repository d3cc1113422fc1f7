// Status codes of the host runtime with a sentence each.
#pragma once
#include <string>

#include "acl/acl.h"

namespace evokernel::twin::acl {

// Keeps the sentence for aclGetRecentErrMsg, warns, and gives the code back.
aclError Fail(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));
aclError LastError(bool forget);
const std::string &LastMessage();

// ACL_SUCCESS, or the exception of a launch that was given up.
aclError KernelStatus();

// Whether there is a device to work on: fails with a sentence for `api` where none was chosen.
aclError NeedDevice(const char *api);

}  // namespace evokernel::twin::acl
