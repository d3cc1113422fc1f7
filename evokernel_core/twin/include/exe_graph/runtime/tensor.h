#pragma once
#include "evokernel/operator/shape.h"
