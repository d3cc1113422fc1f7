/* How every part of the launcher ends where it cannot go on; it calls none of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"

void fail(const char *what) {
    fprintf(stderr, "evokernel-launcher: %s: %s\n", what, strerror(errno));
    _exit(FAILED);
}
