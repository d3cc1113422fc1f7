// The part of the host runtime that a program with its own main needs.
#pragma once
#include "acl/acl_base.h"
#include "acl/acl_rt.h"

extern "C" {
aclError aclInit(const char *config);
aclError aclFinalize();
}
