#pragma once
#include "platform/platform_infos_def.h"
