#pragma once
#include "evokernel/operator/definition.h"
