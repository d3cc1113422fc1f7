#pragma once
#include "evokernel/operator/types.h"
