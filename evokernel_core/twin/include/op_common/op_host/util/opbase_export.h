#pragma once
#include "util/opbase_export.h"
