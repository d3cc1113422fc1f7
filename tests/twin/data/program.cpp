#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "add_one.h"

#ifndef COUNT
#define COUNT 256
#endif

int main(int argc, char **argv)
{
    if (argc > 1 && !std::strcmp(argv[1], "fail")) {
        return 7;
    }
    std::vector<float> host(COUNT, 2.0f);
    const size_t bytes = COUNT * sizeof(float);
    uint8_t *device = nullptr;
    aclrtStream stream = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    aclrtMalloc(reinterpret_cast<void **>(&device), bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    Launch(1, stream, device, COUNT);
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host.data(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(device);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    std::printf("%d values of %g\n", COUNT, host[COUNT - 1]);
    return host[0] == 3.0f ? 0 : 1;
}
