#pragma once
#include "base/err_msg.h"
