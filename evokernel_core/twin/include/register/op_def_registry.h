#pragma once
#include "evokernel/operator/definition.h"
#include "evokernel/operator/registry.h"
#include "graph/operator.h"
