// evokernel-twin-runner REQUEST: loads a candidate library, runs it as the request says and writes
// result.json.
#include <cstdio>

#include "runner.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: evokernel-twin-runner REQUEST\n");
        return 2;
    }
    return evokernel::twin::RunRequestFile(argv[1]);
}
