#pragma once
#include "exe_graph/runtime/shape.h"
