// A header of the project, outside of the operator's folder.
#pragma once
#include "base/alog_pub.h"

#define LOG_LINE(...) dlog_error(OP, __VA_ARGS__)
