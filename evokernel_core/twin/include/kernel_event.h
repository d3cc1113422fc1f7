// A part of the interface by a name of its own.
#pragma once
#include "kernel_operator.h"
