#pragma once
#include "evokernel/operator/numbers.h"
