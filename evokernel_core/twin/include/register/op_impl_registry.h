#pragma once
#include "evokernel/operator/registry.h"
