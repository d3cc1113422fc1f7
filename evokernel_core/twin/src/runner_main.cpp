// evokernel-twin-runner [--judge] REQUEST: runs a candidate as the request says and writes result.json. The candidate's
// library is loaded into this process or, with --judge, by another one (evokernel-candidate).
#include <cstdio>
#include <cstring>

#include "runner.h"

int main(int argc, char **argv)
{
    const bool judge = argc == 3 && std::strcmp(argv[1], "--judge") == 0;
    if (argc != 2 && !judge) {
        std::fprintf(stderr, "usage: evokernel-twin-runner [--judge] REQUEST\n");
        return 2;
    }
    return judge ? evokernel::twin::JudgeRequestFile(argv[2]) : evokernel::twin::RunRequestFile(argv[1]);
}
