/* Runs one command with limits and, where asked, inside a sandbox; needs no privilege.
 *
 *   evokernel-launcher --probe
 *   evokernel-launcher [--until-eof] [--address-space BYTES] [--file-size BYTES] [--cpu SECONDS]
 *                      [--open-files N] [--quota BYTES --files N]
 *                      [--sandbox | --compiler-sandbox] [--threads] [--keep-fd N]...
 *                      [--read PATH]... [--write PATH]... -- PROGRAM [ARGUMENT]...
 *
 * --until-eof: standard input is the read end of a pipe that whoever wants the program holds open. When
 * it closes, also because its holder was killed, the program and all of its process group are killed.
 * The launcher stays to watch, and ends as the program ended; the program's standard input is empty.
 *
 * --sandbox: paths outside --read and --write cannot be opened (Landlock); no system call is allowed but
 * those that calls.c lists, so there is no network and no other process can be signalled, traced,
 * limited or started, threads only with --threads; descriptors beyond 0, 1, 2 and --keep-fd are closed;
 * the session's key ring is left. --compiler-sandbox: the same, but programs in the --read folders may
 * be started. What the kernel of Linux lacks is left out; --probe prints what there is: "landlock ABI
 * seccomp 0|1".
 *
 * --quota, --files: the program is killed when the --write folders have grown by more.
 *
 * Exit status 120: the sandbox or a limit could not be set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher.h"

enum { JOIN_SESSION_KEYRING = 1 };

struct options {
    int sandbox, first; /* first: the index of the program among the arguments */
    struct confinement confinement;
    struct watch watch;
};

static void refuse(const char *what) {
    errno = EINVAL;
    fail(what);
}

static uint64_t number(const char *text) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-') refuse(text);
    return value;
}

static void limit(int resource, uint64_t value) {
    struct rlimit bound = {value, value};
    if (setrlimit(resource, &bound)) fail("setrlimit");
}

static int is_flag(struct options *o, const char *name) {
    if (!strcmp(name, "--until-eof")) return o->watch.until_eof = 1;
    if (!strcmp(name, "--threads")) return o->confinement.threads = 1;
    if (!strcmp(name, "--sandbox")) return o->sandbox = 1;
    if (strcmp(name, "--compiler-sandbox")) return 0;
    o->confinement.profile = COMPILER;
    return o->sandbox = 1;
}

static void add_path(const char **paths, int *count, const char *path) {
    if (*count == MAX_FOLDERS) refuse("too many paths");
    paths[(*count)++] = path;
}

static void set_option(struct options *o, const char *name, const char *value) {
    struct confinement *c = &o->confinement;
    if (!strcmp(name, "--address-space")) limit(RLIMIT_AS, number(value));
    else if (!strcmp(name, "--file-size")) limit(RLIMIT_FSIZE, number(value));
    else if (!strcmp(name, "--cpu")) limit(RLIMIT_CPU, number(value));
    else if (!strcmp(name, "--open-files")) limit(RLIMIT_NOFILE, number(value));
    else if (!strcmp(name, "--quota")) o->watch.quota = number(value);
    else if (!strcmp(name, "--files")) o->watch.files = number(value);
    else if (!strcmp(name, "--read")) add_path(c->reads, &c->nreads, value);
    else if (!strcmp(name, "--write")) add_path(c->writes, &c->nwrites, value);
    else if (!strcmp(name, "--keep-fd") && c->nkept < MAX_KEPT) c->kept[c->nkept++] = (int)number(value);
    else refuse(name);
}

static void parse(int argc, char **argv, struct options *o) {
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        if (is_flag(o, argv[i])) continue;
        if (i + 1 >= argc) break;
        set_option(o, argv[i], argv[i + 1]);
        i++;
    }
    if (i + 1 >= argc) refuse("usage: [OPTION]... -- PROGRAM [ARGUMENT]...");
    o->first = i + 1;
    o->watch.where = &o->confinement;
}

/* Closes what lies between the kept descriptors. */
static void close_others(const struct confinement *c) {
    unsigned next = 3;
    for (;;) {
        unsigned kept = ~0u;
        for (int i = 0; i < c->nkept; i++)
            if ((unsigned)c->kept[i] >= next && (unsigned)c->kept[i] < kept) kept = (unsigned)c->kept[i];
        if (kept != next && syscall(SYS_close_range, next, kept == ~0u ? ~0u : kept - 1, 0u)) fail("close_range");
        if (kept == ~0u) return;
        next = kept + 1;
    }
}

static void confine(const struct confinement *c, const char *program) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
    limit(RLIMIT_MEMLOCK, 0);
    limit(RLIMIT_MSGQUEUE, 0);
    syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL); /* an empty one; kernels without key rings have none to leave */
    close_others(c);
    int abi = landlock_abi();
    if (abi) restrict_files(abi, c, program);
    if (has_seccomp()) restrict_calls(c);
}

int main(int argc, char **argv) {
    struct options options = {0};
    if (argc == 2 && !strcmp(argv[1], "--probe")) {
        printf("landlock %d seccomp %d\n", landlock_abi(), has_seccomp());
        return 0;
    }
    parse(argc, argv, &options);
    limit(RLIMIT_CORE, 0);
    if (options.watch.until_eof || options.watch.quota) stay_and_watch(&options.watch);
    if (options.sandbox) confine(&options.confinement, argv[options.first]);
    execv(argv[options.first], argv + options.first);
    fail(argv[options.first]);
}
