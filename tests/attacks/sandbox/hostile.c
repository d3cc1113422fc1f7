/* Tries one thing: exit status 0 where it succeeded, 3 where it was refused, 5 where it failed for a reason of
 * its own, 4 for a word it does not know. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TRY(word, expression) if (!strcmp(argv[1], word)) return (long)(expression) < 0 ? refused() : 0

static int refused(void) {
    return errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EMFILE || errno == EAGAIN ? 3 : 5;
}

static int nothing(void *unused) { return 0; }
static void *run(void *unused) { return NULL; }
static char stack[65536], buffer[4096];

static long thread(void) {
    pthread_t made;
    errno = pthread_create(&made, NULL, run, NULL);
    return errno ? -1 : pthread_join(made, NULL);
}

static long copied(int pid, int writes) {
    struct iovec local = {buffer, 8}, remote = {(void *)0x400000, 8};
    return syscall(writes ? SYS_process_vm_writev : SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0);
}

static long files(long count, long bytes) {
    for (long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "flood%ld", i);
        int file = open(name, O_WRONLY | O_CREAT, 0600);
        for (long done = 0; file >= 0 && done < bytes; done += sizeof buffer)
            if (write(file, buffer, sizeof buffer) < 0) return -1;
        close(file);
    }
    return 0;
}

static long descriptors(void) {
    for (int i = 0; i < 5000; i++)
        if (dup(1) < 0) return -1;
    return 0;
}

static long execute(char *program) {
    char *words[] = {program, NULL};
    return execv(program, words);
}

static long call(long number) { return syscall(number, 0, 0, 0, 0, 0, 0); }

/* Calls that need no arguments to tell whether they are allowed. */
static const struct { const char *word; long number; } CALLS[] = {
    {"flock", SYS_flock}, {"truncate", SYS_truncate}, {"fallocate", SYS_fallocate}, {"sync", SYS_sync},
    {"splice", SYS_splice}, {"vmsplice", SYS_vmsplice}, {"tee", SYS_tee}, {"sendfile", SYS_sendfile},
    {"copy-file-range", SYS_copy_file_range}, {"mknod", SYS_mknodat}, {"handle", SYS_open_by_handle_at},
    {"name-to-handle", SYS_name_to_handle_at}, {"socketpair", SYS_socketpair}, {"timer", SYS_timer_create},
    {"timerfd", SYS_timerfd_create}, {"signalfd", SYS_signalfd4}, {"itimer", SYS_setitimer},
    {"remap", SYS_remap_file_pages}, {"mbind", SYS_mbind}, {"move-pages", SYS_move_pages},
    {"migrate-pages", SYS_migrate_pages}, {"mlockall", SYS_mlockall}, {"mincore", SYS_mincore},
    {"membarrier", SYS_membarrier}, {"setuid", SYS_setuid}, {"setgroups", SYS_setgroups},
    {"capabilities", SYS_capset}, {"scheduler", SYS_sched_setscheduler}, {"syslog", SYS_syslog},
    {"clock", SYS_clock_settime}, {"hostname", SYS_sethostname}, {"reboot", SYS_reboot}, {"acct", SYS_acct},
    {"swap", SYS_swapoff}, {"quota", SYS_quotactl}, {"pivot", SYS_pivot_root}, {"unmount", SYS_umount2},
    {"kexec", SYS_kexec_load}, {"unload", SYS_delete_module}, {"exec-descriptor", SYS_execveat},
    {"open-tree", 428}, {"move-mount", 429}, {"fsopen", 430}, {"openat2", 437}, {"pidfd-getfd", 438},
    {"process-madvise", 440}, {"mount-setattr", 442}, {"landlock", 444}, {"secret-memory", 447},
    {"process-release", 448}, {"listmount", 458},
};

int main(int argc, char **argv) {
    int pid = argc > 2 ? atoi(argv[2]) : 0;
    struct rlimit none = {1, 1};
    uint64_t clone_arguments[11] = {0};
    unsigned long mask = 1;
    struct timespec past[2] = {{1, 0}, {1, 0}};
    siginfo_t info = {0};
    TRY("prlimit", prlimit(pid, RLIMIT_CPU, &none, NULL));
    TRY("own-limit", prlimit(0, RLIMIT_CPU, &none, NULL));
    TRY("chown", chown("file", 1, 1) < 0 && syscall(SYS_fchownat, AT_FDCWD, "file", 1, 1, 0) < 0 ? -1 : 0);
    TRY("chmod", syscall(SYS_fchmodat, AT_FDCWD, "file", 0777));
    TRY("utimens", utimensat(AT_FDCWD, "file", past, 0));
    TRY("setxattr", setxattr("file", "user.x", "y", 1, 0));
    TRY("mkdir", syscall(SYS_mkdirat, AT_FDCWD, "made", 0700));
    TRY("symlink", symlink("/etc/passwd", "made"));
    TRY("link", link("file", "made"));
    TRY("move-out", rename("file", "../moved"));
    TRY("rename", rename("file", "other"));
    TRY("renameat2", syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "other", 1));
    TRY("unlink", unlink("file"));
    TRY("thread", thread());
    TRY("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
#ifdef SYS_fork
    TRY("old-fork", syscall(SYS_fork));
#else
    TRY("old-fork", (errno = ENOSYS, -1));
#endif
    TRY("clone-namespace", clone(nothing, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, NULL));
    TRY("unshare", unshare(CLONE_NEWUSER));
    TRY("setns", setns(0, CLONE_NEWNS));
    TRY("mount", syscall(SYS_mount, "none", ".", "tmpfs", 0, NULL));
    TRY("chroot", chroot("."));
    TRY("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
    TRY("vm-read", copied(pid, 0));
    TRY("vm-write", copied(pid, 1));
    TRY("kill", kill(pid, SIGKILL));
    TRY("tgkill", syscall(SYS_tgkill, pid, pid, SIGKILL));
    TRY("sigqueue", (info.si_code = SI_QUEUE, syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info)));
    TRY("pidfd", syscall(434, pid, 0));
    TRY("setowner", fcntl(0, F_SETOWN, pid));
    TRY("priority", setpriority(PRIO_PROCESS, pid, 19));
    TRY("affinity", syscall(SYS_sched_setaffinity, pid, sizeof mask, &mask));
    TRY("setsid", setsid());
    TRY("death-signal", prctl(PR_SET_PDEATHSIG, 0));
    TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    TRY("add-key", syscall(SYS_add_key, "user", "evokernel", "x", 1, -3));
    TRY("request-key", syscall(SYS_request_key, "user", "evokernel", NULL, -3));
    TRY("shmget", syscall(SYS_shmget, 0, 4096, 01600));
    TRY("semget", syscall(SYS_semget, 0, 1, 01600));
    TRY("msgget", syscall(SYS_msgget, 0, 01600));
    TRY("mq", syscall(SYS_mq_open, "evokernel", O_CREAT | O_RDWR, 0600, NULL));
    TRY("memfd", syscall(SYS_memfd_create, "x", 0));
    TRY("io-uring", syscall(425, 4, buffer));
    TRY("bpf", syscall(SYS_bpf, 0, buffer, 64));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
    TRY("perf", syscall(SYS_perf_event_open, buffer, pid, -1, -1, 0));
    TRY("personality", syscall(SYS_personality, 0x0040000));
    TRY("inotify", syscall(SYS_inotify_init1, 0));
    TRY("fanotify", syscall(SYS_fanotify_init, 0, 0));
    TRY("socket", socket(AF_INET, SOCK_STREAM, 0));
    TRY("unix-socket", socket(AF_UNIX, SOCK_STREAM, 0));
    TRY("vsock", socket(40, SOCK_STREAM, 0));
    TRY("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    TRY("crypto-socket", socket(38, SOCK_SEQPACKET, 0));
    TRY("lock", fcntl(0, F_SETLK, &(struct flock){.l_type = F_RDLCK}));
    TRY("lease", fcntl(0, F_SETLEASE, F_RDLCK));
    TRY("pipe-size", fcntl(0, F_SETPIPE_SZ, 1 << 20));
    TRY("seal", fcntl(0, F_ADD_SEALS, 0));
    TRY("dumpable", prctl(PR_SET_DUMPABLE, 1));
    TRY("rename-itself", prctl(PR_SET_NAME, "sshd"));
    TRY("new-stack", prctl(PR_SET_MM, PR_SET_MM_START_STACK, 0, 0, 0));
    TRY("open", open(argv[2], O_RDONLY | O_NONBLOCK));
    TRY("open-to-write", open(argv[2], O_WRONLY | O_NONBLOCK));
    TRY("terminal", ioctl(0, TIOCSTI, "x"));
    TRY("swap-terminal", ioctl(0, TIOCLINUX, "x"));
    TRY("mlock", mlock(buffer, 4096));
    TRY("kcmp", syscall(SYS_kcmp, pid, pid, 0, 0, 0));
    TRY("module", syscall(SYS_finit_module, 0, "", 0));
#ifdef __x86_64__
    TRY("x32", syscall(0x40000000 + SYS_getpid));
#else
    TRY("x32", (errno = ENOSYS, -1));
#endif
    TRY("clone3", (clone_arguments[4] = SIGCHLD, syscall(435, clone_arguments, sizeof clone_arguments)));
    TRY("seccomp-listener", syscall(SYS_seccomp, 1, 8, buffer));
    TRY("exec", execute(argv[2]));
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) TRY(CALLS[i].word, call(CALLS[i].number));
    TRY("files", files(atol(argv[2]), 0));
    TRY("bytes", files(atol(argv[2]), 1 << 20));
    TRY("descriptor", fcntl(pid, F_GETFD));
    TRY("descriptors", descriptors());
    return 4;
}
