#pragma once
#include "util/const_util.h"
