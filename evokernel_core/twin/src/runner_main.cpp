// evokernel-twin-runner REQUEST: runs a candidate as the request says and writes result.json. With --judge REQUEST...
// another process (evokernel-candidate) loads the candidate's library, and requests follow each other until one fails.
#include <cstdio>
#include <cstring>

#include "runner.h"

int main(int argc, char **argv)
{
    const bool judge = argc >= 3 && std::strcmp(argv[1], "--judge") == 0;
    if (argc != 2 && !judge) {
        std::fprintf(stderr, "usage: evokernel-twin-runner REQUEST | --judge REQUEST...\n");
        return 2;
    }
    return judge ? evokernel::twin::JudgeRequestFiles(argc - 2, argv + 2) : evokernel::twin::RunRequestFile(argv[1]);
}
