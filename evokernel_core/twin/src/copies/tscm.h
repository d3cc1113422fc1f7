// Tensors of L1 that a vector core fills for its Matmul objects: the block's cube core does the copies.
#pragma once
#include <functional>

#include "core.h"

namespace evokernel::twin {

// Where such a tensor of the running vector core lies in the cube core's L1.
LocalRef InCubeL1(const LocalRef &tensor);

// On a vector core with an L1 tensor: posts `copy` with the tensor as the cube core sees it, and returns true.
bool PostedToCube(const LocalRef &tensor, std::function<void(const LocalRef &)> copy, At at);

}  // namespace evokernel::twin
