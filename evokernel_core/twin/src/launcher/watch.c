/* Stays beside the program: ends it with its lifeline, or when it writes more than its quota. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"

enum { PIDFD_OPEN_NUMBER = 434, LOOK_EVERY_MS = 20, DEEPEST = 8, BLOCK_BYTES = 512 };

struct usage { uint64_t bytes, files; };

/* Counting stops a little past `most` files: a folder that is too full need not be read to its end. */
static void count(int folder, int depth, uint64_t most, struct usage *total) {
    DIR *entries = fdopendir(folder);
    if (!entries) { close(folder); return; }
    for (struct dirent *name; total->files <= most && (name = readdir(entries));) {
        struct stat what;
        if (!strcmp(name->d_name, ".") || !strcmp(name->d_name, "..")) continue;
        if (fstatat(folder, name->d_name, &what, AT_SYMLINK_NOFOLLOW)) continue; /* gone meanwhile */
        total->files++;
        total->bytes += (uint64_t)what.st_blocks * BLOCK_BYTES;
        if (!S_ISDIR(what.st_mode) || depth == DEEPEST) continue;
        int inner = openat(folder, name->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0) count(inner, depth + 1, most, total);
    }
    closedir(entries);
}

static struct usage written(const struct confinement *c, uint64_t most) {
    struct usage total = {0, 0};
    for (int i = 0; i < c->nwrites; i++) {
        int folder = open(c->writes[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0) count(folder, 0, most, &total);
    }
    return total;
}

static int over_quota(const struct watch *w, struct usage before) {
    struct usage now = written(w->where, before.files + w->files);
    return now.files > before.files + w->files || now.bytes > before.bytes + w->quota;
}

static void end_as(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* The pipe, and not the death signal of this process's own parent, because that one follows the thread
 * that started it, and threads end earlier. */
static void watch_child(const struct watch *w, pid_t child, struct usage before) {
    int ended = (int)syscall(PIDFD_OPEN_NUMBER, child, 0u);
    if (ended < 0) fail("pidfd_open");
    struct pollfd watched[] = {{ended, POLLIN, 0}, {w->until_eof ? 0 : -1, 0, 0}}; /* only the pipe's end counts */
    int status, events;
    do {
        events = poll(watched, 2, w->quota ? LOOK_EVERY_MS : -1);
        if (events < 0 && errno != EINTR) fail("poll");
        if (w->quota && over_quota(w, before)) {
            fprintf(stderr, "evokernel-launcher: quota: the program wrote too much\n");
            kill(w->until_eof ? 0 : child, SIGKILL); /* the group may be that of who started this */
        }
    } while (events <= 0);
    if (!watched[0].revents) kill(0, SIGKILL);
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    end_as(status);
}

void stay_and_watch(const struct watch *w) {
    pid_t watcher = getpid();
    struct usage before = {0, 0};
    if (w->quota) before = written(w->where, UINT64_MAX - w->files);
    if (w->until_eof && getpgrp() != watcher && setpgid(0, 0)) fail("setpgid");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child) watch_child(w, child, before);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) fail("pdeathsig");
    if (getppid() != watcher) _exit(FAILED); /* it died before the line above */
    if (!w->until_eof) return;
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0)) fail("/dev/null");
    if (nothing) close(nothing);
}
