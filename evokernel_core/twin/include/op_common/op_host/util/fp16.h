#pragma once
#include "util/fp16.h"
