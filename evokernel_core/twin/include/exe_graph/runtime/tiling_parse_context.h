#pragma once
#include "evokernel/operator/contexts.h"
