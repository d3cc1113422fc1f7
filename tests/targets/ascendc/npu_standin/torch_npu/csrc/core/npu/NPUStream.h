#pragma once
#include <acl/acl.h>
namespace c10_npu { class NPUStream { public: aclrtStream stream() const; }; NPUStream getCurrentNPUStream(signed char device = -1); }
