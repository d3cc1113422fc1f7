// A scalar of 16 bits on the host, as operator libraries name it.
#pragma once
#include "evokernel/twin/half.h"

namespace Ops::Base {
using bfloat16 = ::bfloat16_t;
}  // namespace Ops::Base
