#pragma once
#define OPBASE_API
