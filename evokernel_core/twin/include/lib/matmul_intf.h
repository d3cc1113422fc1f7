#pragma once
#include "kernel_operator.h"
//
#include "evokernel/twin/matmul/matmul.h"
