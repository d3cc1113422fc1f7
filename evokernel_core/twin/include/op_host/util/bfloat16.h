#pragma once
#include "util/bfloat16.h"
