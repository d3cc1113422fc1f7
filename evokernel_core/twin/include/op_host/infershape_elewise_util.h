#pragma once
#include "evokernel/operator/infer_shape.h"
