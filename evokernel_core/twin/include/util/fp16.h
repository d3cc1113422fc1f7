// A scalar of 16 bits on the host, as operator libraries name it.
#pragma once
#include "evokernel/twin/half.h"

namespace Ops::Base {
using fp16_t = ::half;
}  // namespace Ops::Base
