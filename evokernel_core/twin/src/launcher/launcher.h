/* What the parts of the launcher share. Each part confines one thing; none needs a privilege. */
#ifndef EVOKERNEL_LAUNCHER_H
#define EVOKERNEL_LAUNCHER_H
#include <stdint.h>

#include "failure.h"

enum { MAX_FOLDERS = 64, MAX_KEPT = 16 };

/* Whose system calls are allowed: a candidate starts nothing; a compiler starts its own parts. */
enum profile { CANDIDATE, COMPILER };

struct confinement {
    enum profile profile;
    int threads; /* whether a candidate may start threads */
    const char *reads[MAX_FOLDERS], *writes[MAX_FOLDERS];
    int nreads, nwrites;
    int kept[MAX_KEPT], nkept; /* descriptors that the program inherits beside 0, 1 and 2 */
};

struct watch {
    int until_eof;
    uint64_t quota, files; /* growth of the writable folders; 0: not counted */
    const struct confinement *where;
};

int landlock_abi(void); /* 0: this kernel of Linux has none */
void restrict_files(int abi, const struct confinement *c, const char *program);

int has_seccomp(void);
void restrict_calls(const struct confinement *c);

/* Returns in a child; the parent watches it and ends as the child ends. */
void stay_and_watch(const struct watch *w);

#endif
