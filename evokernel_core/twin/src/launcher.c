/* Runs one command with limits and, where asked, inside a sandbox; needs no privilege.
 *
 *   evokernel-launcher --probe
 *   evokernel-launcher [--until-eof] [--address-space BYTES] [--file-size BYTES] [--cpu SECONDS]
 *                      [--sandbox] [--read DIR]... [--write DIR]... -- PROGRAM [ARGUMENT]...
 *
 * --until-eof: standard input is the read end of a pipe that whoever wants the program holds open. When
 * it closes, also because its holder was killed, the program and all of its process group are killed.
 * The launcher stays to watch, and ends as the program ended; the program's standard input is empty.
 *
 * --sandbox: files outside the --read and --write folders cannot be opened (Landlock), there is no
 * network, no other process can be signalled, traced or started (seccomp), and no descriptor but
 * 0, 1 and 2 is passed on. What the kernel lacks is left out; --probe prints what there is:
 * "landlock ABI seccomp 0|1". Exit status 120: the sandbox or a limit could not be set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers of calls that older kernels' headers lack; they are alike on every machine. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446, PIDFD_OPEN = 434 };
struct RulesetAttr { uint64_t fs, net, scoped; };
struct __attribute__((packed)) PathAttr { uint64_t allowed; int32_t parent; };

static const uint64_t FS_EXECUTE = 1u << 0, FS_WRITE_FILE = 1u << 1, FS_READ_FILE = 1u << 2,
                      FS_READ_DIR = 1u << 3, FS_REMOVE_FILE = 1u << 5, FS_MAKE_REG = 1u << 8,
                      FS_TRUNCATE = 1u << 14, FS_OF_FILES = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 14;
enum { FAILED = 120, MAX_FOLDERS = 64 };

static void fail(const char *what) {
    fprintf(stderr, "evokernel-launcher: %s: %s\n", what, strerror(errno));
    _exit(FAILED);
}

static int landlock_abi(void) {
    long abi = syscall(LANDLOCK_CREATE, NULL, (size_t)0, 1u);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t fs_rights(int abi) {
    if (abi >= 5) return (1u << 16) - 1;
    if (abi >= 3) return (1u << 15) - 1;
    return abi == 2 ? (1u << 14) - 1 : (1u << 13) - 1;
}

static void allow(int ruleset, const char *folder, uint64_t rights) {
    struct PathAttr attr = {rights, open(folder, O_PATH | O_CLOEXEC)};
    struct stat what;
    if (attr.parent < 0) {
        if (errno == ENOENT) return; /* e.g. no /lib64 on this machine */
        fail(folder);
    }
    if (fstat(attr.parent, &what)) fail(folder);
    if (!S_ISDIR(what.st_mode)) attr.allowed &= FS_OF_FILES; /* folders' rights are refused for a file */
    if (syscall(LANDLOCK_ADD, ruleset, 1, &attr, 0u)) fail(folder);
    close(attr.parent);
}

static void restrict_files(int abi, char **reads, int nreads, char **writes, int nwrites) {
    struct RulesetAttr attr = {fs_rights(abi), abi >= 4 ? 3 : 0, abi >= 6 ? 3 : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    int ruleset = (int)syscall(LANDLOCK_CREATE, &attr, size, 0u);
    if (ruleset < 0) fail("landlock_create_ruleset");
    uint64_t read_rights = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    uint64_t write_rights = FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_MAKE_REG | FS_REMOVE_FILE;
    if (abi >= 3) write_rights |= FS_TRUNCATE;
    for (int i = 0; i < nreads; i++) allow(ruleset, reads[i], read_rights);
    for (int i = 0; i < nwrites; i++) allow(ruleset, writes[i], write_rights);
    if (syscall(LANDLOCK_RESTRICT, ruleset, 0u)) fail("landlock_restrict_self");
    close(ruleset);
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define DENY(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM)

static int install_filter(void) {
    uint32_t self = (uint32_t)getpid(); /* kept across exec */
    struct sock_filter filter[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
#ifdef __x86_64__
        /* the x32 calls have numbers of their own */
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
        DENY(SYS_fork), DENY(SYS_vfork), DENY(SYS_chmod),
#endif
        DENY(SYS_socket), DENY(SYS_socketpair), DENY(SYS_ptrace), DENY(SYS_process_vm_readv),
        DENY(SYS_process_vm_writev), DENY(SYS_tkill), DENY(SYS_rt_sigqueueinfo), DENY(SYS_rt_tgsigqueueinfo),
        DENY(SYS_setsid), DENY(SYS_setpgid), DENY(SYS_shmget), DENY(SYS_msgget), DENY(SYS_bpf),
        DENY(SYS_perf_event_open), DENY(SYS_userfaultfd), DENY(SYS_keyctl), DENY(SYS_io_uring_setup),
        DENY(SYS_pidfd_send_signal), DENY(SYS_pidfd_open), DENY(SYS_unshare), DENY(SYS_memfd_create),
        DENY(SYS_fchmod), DENY(SYS_fchmodat), DENY(SYS_setpriority),
        /* clone3 passes its flags in memory, where a filter cannot look: the library falls back to clone */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        /* threads may be made, processes not */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4), LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x00010000u /* CLONE_THREAD */, 0, 1), RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
        /* abort() signals its own process; nobody else may be */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 3), LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 1, 0), RETURN(SECCOMP_RET_ERRNO | EPERM),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static int has_seccomp(void) { return prctl(PR_GET_SECCOMP) >= 0; }
#else
static int install_filter(void) { return 0; }
static int has_seccomp(void) { return 0; }
#endif

static void limit(int resource, const char *value) {
    struct rlimit bound = {strtoull(value, NULL, 10), strtoull(value, NULL, 10)};
    if (setrlimit(resource, &bound)) fail("setrlimit");
}

static void end_as(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* Returns in a child; the parent watches it and never returns. The pipe, and not the death signal of this
 * process's own parent, because that one follows the thread that started it, and threads end earlier. */
static void stay_until_eof(void) {
    pid_t watcher = getpid();
    if (getpgrp() != watcher && setpgid(0, 0)) fail("setpgid");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL)) fail("pdeathsig");
        if (getppid() != watcher) _exit(FAILED); /* it died before the line above */
        int nothing = open("/dev/null", O_RDONLY);
        if (nothing < 0 || dup2(nothing, 0)) fail("/dev/null");
        if (nothing) close(nothing);
        return;
    }
    int ended = (int)syscall(PIDFD_OPEN, child, 0u);
    if (ended < 0) fail("pidfd_open");
    struct pollfd watched[] = {{ended, POLLIN, 0}, {0, 0, 0}}; /* of the pipe only its end counts */
    while (poll(watched, 2, -1) < 0)
        if (errno != EINTR) fail("poll");
    int status;
    if (!watched[0].revents) kill(0, SIGKILL);
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    end_as(status);
}

int main(int argc, char **argv) {
    char *reads[MAX_FOLDERS], *writes[MAX_FOLDERS];
    int nreads = 0, nwrites = 0, sandbox = 0, until_eof = 0, i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--probe")) {
            printf("landlock %d seccomp %d\n", landlock_abi(), has_seccomp());
            return 0;
        }
        if (!strcmp(option, "--sandbox")) { sandbox = 1; continue; }
        if (!strcmp(option, "--until-eof")) { until_eof = 1; continue; }
        if (++i >= argc || nreads == MAX_FOLDERS || nwrites == MAX_FOLDERS) break;
        if (!strcmp(option, "--address-space")) limit(RLIMIT_AS, argv[i]);
        else if (!strcmp(option, "--file-size")) limit(RLIMIT_FSIZE, argv[i]);
        else if (!strcmp(option, "--cpu")) limit(RLIMIT_CPU, argv[i]);
        else if (!strcmp(option, "--read")) reads[nreads++] = argv[i];
        else if (!strcmp(option, "--write")) writes[nwrites++] = argv[i];
        else { errno = EINVAL; fail(option); }
    }
    if (i + 1 >= argc) { errno = EINVAL; fail("usage: [OPTION]... -- PROGRAM [ARGUMENT]..."); }
    limit(RLIMIT_CORE, "0");
    if (until_eof) stay_until_eof();
    if (sandbox) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
        syscall(SYS_close_range, 3u, ~0u, 0u);
        int abi = landlock_abi();
        if (abi) restrict_files(abi, reads, nreads, writes, nwrites);
        if (has_seccomp() && install_filter()) fail("seccomp");
    }
    execv(argv[i + 1], argv + i + 1);
    fail(argv[i + 1]);
}
