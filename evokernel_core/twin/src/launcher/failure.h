#ifndef EVOKERNEL_LAUNCHER_FAILURE_H
#define EVOKERNEL_LAUNCHER_FAILURE_H

enum { FAILED = 120 };

/* Prints what failed and why, and ends with status FAILED. */
void fail(const char *what) __attribute__((noreturn));

#endif
