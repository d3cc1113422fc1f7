#pragma once
#include "base/alog_pub.h"
