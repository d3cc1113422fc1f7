// Errors that operators' host code reports: lines of standard error.
#pragma once
#include <string>

#include "base/alog_pub.h"

#define REPORT_INNER_ERR_MSG(code, ...) AlogRecord(OP, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
#define REPORT_INNER_ERROR(code, ...) REPORT_INNER_ERR_MSG(code, __VA_ARGS__)
#define REPORT_CALL_ERROR(code, ...) REPORT_INNER_ERR_MSG(code, __VA_ARGS__)
#define REPORT_INPUT_ERROR(code, keys, values) REPORT_INNER_ERR_MSG(code, "%s", code)
#define REPORT_PREDEFINED_ERR_MSG(code, ...) REPORT_INNER_ERR_MSG(code, "%s", code)
