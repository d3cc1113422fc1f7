#pragma once
typedef void *aclrtStream;
