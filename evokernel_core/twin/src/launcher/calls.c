/* System calls: what is not listed here fails with EPERM (seccomp).
 *
 * The list is what the C and C++ libraries, the twin and an interpreter need to compute and to read and
 * write open files. No call on it reaches another process, the network, a key ring, shared memory by
 * name, the owner or mode of a file, or makes a process; the compiler's list adds what it needs to run
 * the compiler proper, the assembler and the linker.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifndef ARCHITECTURE
int has_seccomp(void) { return 0; }
void restrict_calls(const struct confinement *c) { (void)c; }
#else

static const int COMPUTING[] = {
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise,
    SYS_futex, SYS_set_robust_list, SYS_set_tid_address, SYS_gettid, SYS_getpid, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_exit, SYS_exit_group, SYS_execve,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
    SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_clock_nanosleep, SYS_nanosleep,
    SYS_restart_syscall, SYS_getrandom, SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_times,
    SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getppid,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef __x86_64__
    SYS_arch_prctl, SYS_time,
#endif
};

static const int OPEN_FILES[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_lseek, SYS_close, SYS_dup, SYS_dup3, SYS_ftruncate, SYS_fstat, SYS_fstatfs, SYS_statfs,
    SYS_openat, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd,
    SYS_chdir,
    SYS_pipe2, SYS_ppoll, SYS_pselect6, SYS_eventfd2, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef __x86_64__
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_pipe, SYS_poll, SYS_select,
    SYS_epoll_wait,
#endif
};

/* For who has a folder to write to, where a result appears whole; a candidate has none. */
static const int WRITING[] = {
    SYS_renameat,
#ifdef SYS_renameat2
    SYS_renameat2,
#endif
#ifdef __x86_64__
    SYS_rename,
#endif
};

static const int COMPILING[] = {
    SYS_wait4, SYS_waitid, SYS_unlinkat, SYS_umask, SYS_fadvise64,
#ifdef __x86_64__
    SYS_fork, SYS_vfork, SYS_unlink, SYS_chmod, SYS_getdents,
#endif
    SYS_fchmod, SYS_fchmodat,
};

enum { CLONE_THREADS = 0x00010000, CLONE_NAMESPACES = 0x7e020080, TERMINAL_ATTRIBUTES = 0x5401, MOST = 512 };

static struct sock_filter program[MOST];
static unsigned short length;

static void add(uint16_t code, uint32_t value, uint8_t yes, uint8_t no) {
    if (length == MOST) { errno = E2BIG; fail("filter"); }
    program[length++] = (struct sock_filter){code, yes, no, value};
}
static void load(uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void answer(uint32_t value) { add(BPF_RET | BPF_K, value, 0, 0); }
static void unless_equal_skip(uint32_t value, uint8_t skip) { add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip); }

/* The low half of an argument on these little-endian machines. */
static uint32_t argument(int index) {
    return (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)index);
}

static void allow(int number) {
    unless_equal_skip((uint32_t)number, 1);
    answer(SECCOMP_RET_ALLOW);
}

static void refuse(int number, int error) {
    unless_equal_skip((uint32_t)number, 1);
    answer(SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Allowed where an argument has one of these values. */
static void allow_values(int number, int index, const uint32_t *values, uint8_t count) {
    unless_equal_skip((uint32_t)number, (uint8_t)(2 * count + 2));
    load(argument(index));
    for (uint8_t i = 0; i < count; i++) {
        unless_equal_skip(values[i], 1);
        answer(SECCOMP_RET_ALLOW);
    }
    answer(SECCOMP_RET_ERRNO | EPERM);
}

/* Limits are read, and not those of another process; a compiler sets its own (the stack). */
static void allow_limits(int sets) {
    if (sets) return allow_values(SYS_prlimit64, 0, (uint32_t[]){0}, 1);
    unless_equal_skip(SYS_prlimit64, 8);
    load(argument(0));
    unless_equal_skip(0, 5);
    load(argument(2));
    unless_equal_skip(0, 3);
    load(argument(2) + 4);
    unless_equal_skip(0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | EPERM);
}

/* clone() with all of `wanted` and none of `unwanted` among its flags. */
static void allow_clone(uint32_t wanted, uint32_t unwanted) {
    unless_equal_skip(SYS_clone, 5);
    load(argument(0));
    add(BPF_JMP | BPF_JSET | BPF_K, unwanted, 2, 0);
    add(BPF_JMP | BPF_JSET | BPF_K, wanted, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | EPERM);
}

static void allow_list(const int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) allow(numbers[i]);
}
#define ALLOW_LIST(list) allow_list(list, sizeof(list) / sizeof *(list))

static void start(void) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr)); /* x32 calls have other numbers, which no list holds */
}

void restrict_calls(const struct confinement *c) {
    const uint32_t commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
    const uint32_t self = (uint32_t)getpid(); /* kept across exec */
    start();
    ALLOW_LIST(COMPUTING);
    ALLOW_LIST(OPEN_FILES);
    if (c->nwrites) ALLOW_LIST(WRITING);
    allow_values(SYS_fcntl, 1, commands, sizeof commands / sizeof *commands); /* no owner of signals, no locks */
    allow_values(SYS_ioctl, 1, (uint32_t[]){TERMINAL_ATTRIBUTES}, 1);
    allow_values(SYS_tgkill, 0, &self, 1); /* abort() signals its own process */
    allow_limits(c->profile == COMPILER);
    refuse(SYS_clone3, ENOSYS); /* its flags lie in memory, where a filter cannot look: libraries use clone */
    if (c->profile == COMPILER) {
        ALLOW_LIST(COMPILING);
        allow_clone(~0u, CLONE_NAMESPACES);
    } else if (c->threads) {
        allow_clone(CLONE_THREADS, CLONE_NAMESPACES);
    }
    answer(SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog filter = {length, program};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) fail("seccomp");
}

int has_seccomp(void) { return prctl(PR_GET_SECCOMP) >= 0; }
#endif
