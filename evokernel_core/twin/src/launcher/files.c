/* Files: what lies outside the named folders cannot be opened (Landlock). */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher.h"

/* Numbers of calls that older kernels' headers lack; they are alike on every machine. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
struct RulesetAttr { uint64_t fs, net, scoped; };
struct __attribute__((packed)) PathAttr { uint64_t allowed; int32_t parent; };

static const uint64_t FS_EXECUTE = 1u << 0, FS_WRITE_FILE = 1u << 1, FS_READ_FILE = 1u << 2,
                      FS_READ_DIR = 1u << 3, FS_REMOVE_FILE = 1u << 5, FS_MAKE_REG = 1u << 8,
                      FS_TRUNCATE = 1u << 14, FS_OF_FILES = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 14;
static const uint64_t NET_BIND_AND_CONNECT = 3, SCOPE_SIGNALS_AND_SOCKETS = 3;

int landlock_abi(void) {
    long abi = syscall(LANDLOCK_CREATE, NULL, (size_t)0, 1u);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t fs_rights(int abi) {
    if (abi >= 5) return (1u << 16) - 1;
    if (abi >= 3) return (1u << 15) - 1;
    return abi == 2 ? (1u << 14) - 1 : (1u << 13) - 1;
}

static void allow(int ruleset, const char *path, uint64_t rights) {
    struct PathAttr attr = {rights, open(path, O_PATH | O_CLOEXEC)};
    struct stat what;
    if (attr.parent < 0) {
        if (errno == ENOENT) return; /* e.g. no /lib64 on this machine */
        fail(path);
    }
    if (fstat(attr.parent, &what)) fail(path);
    if (!S_ISDIR(what.st_mode)) attr.allowed &= FS_OF_FILES; /* folders' rights are refused for a file */
    if (syscall(LANDLOCK_ADD, ruleset, 1, &attr, 0u)) fail(path);
    close(attr.parent);
}

/* The program's loader, as the program names it; empty for one that needs none. */
static void loader_of(const char *program, char *name, size_t capacity) {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    int file = open(program, O_RDONLY | O_CLOEXEC);
    *name = 0;
    if (file < 0) fail(program);
    if (pread(file, &head, sizeof head, 0) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG))
        for (int i = 0; i < head.e_phnum; i++) {
            off_t place = (off_t)(head.e_phoff + (uint64_t)i * sizeof part);
            if (pread(file, &part, sizeof part, place) != sizeof part) break;
            if (part.p_type != PT_INTERP || part.p_filesz >= capacity) continue;
            if (pread(file, name, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz) *name = 0;
        }
    close(file);
}

void restrict_files(int abi, const struct confinement *c, const char *program) {
    struct RulesetAttr attr = {fs_rights(abi), abi >= 4 ? NET_BIND_AND_CONNECT : 0,
                               abi >= 6 ? SCOPE_SIGNALS_AND_SOCKETS : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    char loader[512];
    int ruleset = (int)syscall(LANDLOCK_CREATE, &attr, size, 0u);
    if (ruleset < 0) fail("landlock_create_ruleset");
    uint64_t read_rights = FS_READ_FILE | FS_READ_DIR;
    uint64_t write_rights = read_rights | FS_WRITE_FILE | FS_MAKE_REG | FS_REMOVE_FILE;
    if (c->profile == COMPILER) read_rights |= FS_EXECUTE; /* the compiler proper, assembler and linker */
    if (abi >= 3) write_rights |= FS_TRUNCATE;
    for (int i = 0; i < c->nreads; i++) allow(ruleset, c->reads[i], read_rights);
    for (int i = 0; i < c->nwrites; i++) allow(ruleset, c->writes[i], write_rights);
    loader_of(program, loader, sizeof loader);
    allow(ruleset, program, FS_READ_FILE | FS_EXECUTE);
    if (*loader) allow(ruleset, loader, FS_READ_FILE | FS_EXECUTE);
    if (syscall(LANDLOCK_RESTRICT, ruleset, 0u)) fail("landlock_restrict_self");
    close(ruleset);
}
