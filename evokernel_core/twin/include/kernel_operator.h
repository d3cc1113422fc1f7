// The AscendC programming interface for the CPU. Written from the public API documentation.
#pragma once
#include "evokernel/twin/language.h"
//
#include "evokernel/twin/cross.h"
#include "evokernel/twin/fill.h"
#include "evokernel/twin/framework.h"
#include "evokernel/twin/launch.h"
#include "evokernel/twin/launch_site.h"
#include "evokernel/twin/math.h"
#include "evokernel/twin/move.h"
#include "evokernel/twin/pipe.h"
#include "evokernel/twin/reduce.h"
#include "evokernel/twin/select.h"
#include "evokernel/twin/sync.h"
#include "evokernel/twin/vector.h"
