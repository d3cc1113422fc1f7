// ListTensorDesc and TensorDesc, under the name that kernels include.
#pragma once
#include "kernel_operator.h"
