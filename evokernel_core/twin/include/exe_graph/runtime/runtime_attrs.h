#pragma once
#include "evokernel/operator/attributes.h"
