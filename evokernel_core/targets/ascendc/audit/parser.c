/* Parses a translation unit with libclang and prints what the audit's rules look at.
 *
 *   evokernel-parser LIBCLANG header OUTPUT FILE [OPTION]...   precompiles FILE
 *   evokernel-parser LIBCLANG unit PREFIX FILE [OPTION]...     prints FILE's own nodes; PREFIX: the twin's headers
 *   evokernel-parser LIBCLANG names PREFIX FILE [OPTION]...    prints every declaration below PREFIX
 *
 * One record a line, its fields separated by tabs; types and declarations are printed before their number
 * is first used:
 *   E file line message                              an error
 *   T number kind pointers stripped size decl spelling    of the canonical type; `stripped` is the kind, and
 *                                                    `decl` the declaration, without pointers and arrays
 *   D number kind origin usr type spelling           origin: own, twin or system; type: of its signature
 *   N depth kind file line begin end operator type decl storage spelling
 * Exit status 0: parsed, if with errors; 3: nothing could be parsed; 4: libclang is not what it should be.
 *
 * libclang is opened at run time, and its interface, which is stable, is declared here: Python's package
 * brings the library without its headers.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const void *data; unsigned flags; } String;
typedef struct { int kind; int extra; const void *data[3]; } Cursor;
typedef struct { int kind; void *data[2]; } Type;
typedef struct { const void *data[2]; unsigned at; } Location;
typedef struct { const void *data[2]; unsigned begin, end; } Range;
typedef int (*Visitor)(Cursor, Cursor, void *);

#define FUNCTIONS(F)                                                                                         \
    F(void *, createIndex, (int, int))                                                                       \
    F(int, parseTranslationUnit2, (void *, const char *, const char *const *, int, void *, unsigned, unsigned, void **)) \
    F(int, saveTranslationUnit, (void *, const char *, unsigned))                                            \
    F(Cursor, getTranslationUnitCursor, (void *))                                                            \
    F(unsigned, visitChildren, (Cursor, Visitor, void *))                                                    \
    F(unsigned, getNumDiagnostics, (void *))                                                                 \
    F(void *, getDiagnostic, (void *, unsigned))                                                             \
    F(int, getDiagnosticSeverity, (void *))                                                                  \
    F(String, getDiagnosticSpelling, (void *))                                                               \
    F(Location, getDiagnosticLocation, (void *))                                                             \
    F(const char *, getCString, (String))                                                                    \
    F(void, disposeString, (String))                                                                         \
    F(void *, getFile, (void *, const char *))                                                               \
    F(String, getFileName, (void *))                                                                         \
    F(int, File_isEqual, (void *, void *))                                                                   \
    F(Location, getCursorLocation, (Cursor))                                                                 \
    F(Range, getCursorExtent, (Cursor))                                                                      \
    F(Location, getRangeStart, (Range))                                                                      \
    F(Location, getRangeEnd, (Range))                                                                        \
    F(void, getFileLocation, (Location, void **, unsigned *, unsigned *, unsigned *))                        \
    F(void, getPresumedLocation, (Location, String *, unsigned *, unsigned *))                               \
    F(String, getCursorSpelling, (Cursor))                                                                   \
    F(String, getCursorUSR, (Cursor))                                                                        \
    F(Cursor, getCursorReferenced, (Cursor))                                                                 \
    F(Cursor, getNullCursor, (void))                                                                         \
    F(unsigned, equalCursors, (Cursor, Cursor))                                                              \
    F(unsigned, hashCursor, (Cursor))                                                                        \
    F(int, getCursorTLSKind, (Cursor))                                                                       \
    F(int, Cursor_getStorageClass, (Cursor))                                                                 \
    F(int, getCursorBinaryOperatorKind, (Cursor))                                                            \
    F(int, getCursorUnaryOperatorKind, (Cursor))                                                             \
    F(int, getCXXAccessSpecifier, (Cursor))                                                                  \
    F(Type, getCursorType, (Cursor))                                                                         \
    F(Type, getCanonicalType, (Type))                                                                        \
    F(Type, getPointeeType, (Type))                                                                          \
    F(Type, getArrayElementType, (Type))                                                                     \
    F(Cursor, getTypeDeclaration, (Type))                                                                    \
    F(String, getTypeSpelling, (Type))                                                                       \
    F(long long, Type_getSizeOf, (Type))

#define DECLARE(result, name, parameters) static result (*name) parameters;
FUNCTIONS(DECLARE)

enum { CONTINUE = 1, RECURSE = 2, ERROR = 3, FULL_ARGUMENTS_KEEP_GOING = 0x200, INCOMPLETE = 0x2, FOR_SAVING = 0x10 };
enum { POINTER = 101, ARRAY_FIRST = 112, ARRAY_LAST = 116, LVALUE = 103, RVALUE = 104, RECORD = 105, FIRST_ARITHMETIC = 3, LAST_ARITHMETIC = 23 };
enum { FIRST_INVALID = 70, LAST_INVALID = 73, BINARY = 114, COMPOUND_ASSIGNMENT = 115, UNARY = 112, TABLE = 1 << 16, LAST_DECLARATION = 39 };

static void open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) { fprintf(stderr, "evokernel-parser: %s\n", dlerror()); exit(4); }
#define LOOK_UP(result, name, parameters)                                                                    \
    *(void **)(&name) = dlsym(library, "clang_" #name);                                                      \
    if (!name) { fprintf(stderr, "evokernel-parser: clang_%s is missing\n", #name); exit(4); }
    FUNCTIONS(LOOK_UP)
}

/* A field: tabs and line ends inside of it become blanks. */
static void print_field(String string) {
    const char *text = getCString(string);
    putchar('\t');
    for (; text && *text; text++) putchar((unsigned char)*text < ' ' ? ' ' : *text);
    disposeString(string);
}

static void *unit_file;
static const char *prefix;

static void *file_of(Location location, unsigned *offset) {
    void *file = NULL;
    unsigned line, column;
    getFileLocation(location, &file, &line, &column, offset);
    return file;
}

static int is_own(Cursor cursor) {
    unsigned offset;
    void *file = file_of(getCursorLocation(cursor), &offset);
    return file && File_isEqual(file, unit_file);
}

static int is_below_prefix(Cursor cursor) {
    unsigned offset;
    void *file = file_of(getCursorLocation(cursor), &offset);
    if (!file) return 0;
    String name = getFileName(file);
    const char *text = getCString(name);
    int below = text && !strncmp(text, prefix, strlen(prefix));
    disposeString(name);
    return below;
}

/* Numbers for what was printed already: open addressing, chained where it is full of others. */
struct entry { Cursor cursor; const void *type; int number; struct entry *next; };
static struct entry *declarations[TABLE], *types[TABLE];
static int declaration_count, type_count;

static struct entry *add_entry(struct entry **bucket, int number) {
    struct entry *made = calloc(1, sizeof *made);
    if (!made) exit(3);
    made->number = number;
    made->next = *bucket;
    return *bucket = made;
}

static int number_of_type(Type written);

static int number_of_declaration(Cursor cursor) {
    if ((cursor.kind >= FIRST_INVALID && cursor.kind <= LAST_INVALID) || equalCursors(cursor, getNullCursor())) return 0;
    struct entry **bucket = &declarations[hashCursor(cursor) % TABLE];
    for (struct entry *item = *bucket; item; item = item->next)
        if (equalCursors(item->cursor, cursor)) return item->number;
    int number = ++declaration_count;
    add_entry(bucket, number)->cursor = cursor;
    int type = number_of_type(getCursorType(cursor));
    const char *origin = is_own(cursor) ? "own" : is_below_prefix(cursor) ? "twin" : "system";
    printf("D\t%d\t%d\t%s", number, cursor.kind, origin);
    print_field(getCursorUSR(cursor));
    printf("\t%d", type);
    print_field(getCursorSpelling(cursor));
    putchar('\n');
    return number;
}

static int is_array(Type type) { return type.kind >= ARRAY_FIRST && type.kind <= ARRAY_LAST && type.kind != 113; }

/* Bytes, -1 for what has no size; libclang must not be asked for that of a placeholder. */
static long long size_of(Type type) {
    int has_size = (type.kind >= FIRST_ARITHMETIC && type.kind <= LAST_ARITHMETIC) || type.kind == RECORD ||
                   type.kind == RECORD + 1 || type.kind == ARRAY_FIRST;
    return has_size ? Type_getSizeOf(type) : -1;
}

static int number_of_type(Type written) {
    Type type = getCanonicalType(written);
    if (!type.kind) return 0;
    struct entry **bucket = &types[((size_t)type.data[0] >> 4) % TABLE];
    for (struct entry *item = *bucket; item; item = item->next)
        if (item->type == type.data[0]) return item->number;
    int number = ++type_count, pointers = 0;
    add_entry(bucket, number)->type = type.data[0];
    Type stripped = type;
    for (;;) {
        if (stripped.kind == POINTER) pointers++;
        if (stripped.kind == POINTER || stripped.kind == LVALUE || stripped.kind == RVALUE)
            stripped = getCanonicalType(getPointeeType(stripped));
        else if (is_array(stripped)) stripped = getCanonicalType(getArrayElementType(stripped));
        else break;
    }
    int declaration = number_of_declaration(getTypeDeclaration(stripped));
    printf("T\t%d\t%d\t%d\t%d\t%lld\t%d", number, type.kind, pointers, stripped.kind, size_of(type), declaration);
    print_field(getTypeSpelling(type));
    putchar('\n');
    return number;
}

static int operator_of(Cursor cursor) {
    if (cursor.kind == UNARY) return getCursorUnaryOperatorKind(cursor);
    if (cursor.kind == BINARY || cursor.kind == COMPOUND_ASSIGNMENT) return getCursorBinaryOperatorKind(cursor);
    return 0;
}

/* Storage class, thread-local kind and access, of declarations alone. */
static int storage_of(Cursor cursor) {
    if (cursor.kind > LAST_DECLARATION) return 0;
    return Cursor_getStorageClass(cursor) | getCursorTLSKind(cursor) << 8 | getCXXAccessSpecifier(cursor) << 12;
}

static void print_node(Cursor cursor, int depth) {
    int type = number_of_type(getCursorType(cursor));
    int declaration = number_of_declaration(getCursorReferenced(cursor));
    Range extent = getCursorExtent(cursor);
    unsigned begin = 0, end = 0, line = 0, column = 0;
    String file = {NULL, 0};
    file_of(getRangeStart(extent), &begin);
    file_of(getRangeEnd(extent), &end);
    getPresumedLocation(getCursorLocation(cursor), &file, &line, &column);
    printf("N\t%d\t%d", depth, cursor.kind);
    print_field(file);
    printf("\t%u\t%u\t%u\t%d\t%d\t%d\t%d", line, begin, end, operator_of(cursor), type, declaration, storage_of(cursor));
    print_field(getCursorSpelling(cursor));
    putchar('\n');
}

static int visit_own(Cursor cursor, Cursor parent, void *depth) {
    int below = *(int *)depth + 1;
    (void)parent;
    if (!is_own(cursor)) return CONTINUE;
    print_node(cursor, *(int *)depth);
    visitChildren(cursor, visit_own, &below);
    return CONTINUE;
}

static int visit_names(Cursor cursor, Cursor parent, void *unused) {
    (void)parent, (void)unused;
    if (!is_below_prefix(cursor) && cursor.kind != 22) return CONTINUE; /* a namespace is opened in many files */
    if (cursor.kind >= 100) return CONTINUE; /* expressions and statements; types and declarations go on */
    if (is_below_prefix(cursor)) number_of_declaration(cursor), print_node(cursor, 0);
    return RECURSE;
}

static int print_errors(void *unit) {
    int errors = 0;
    for (unsigned i = 0; i < getNumDiagnostics(unit); i++) {
        void *item = getDiagnostic(unit, i);
        if (getDiagnosticSeverity(item) < ERROR) continue;
        unsigned line, column;
        String file = {NULL, 0};
        getPresumedLocation(getDiagnosticLocation(item), &file, &line, &column);
        printf("E");
        print_field(file);
        printf("\t%u", line);
        print_field(getDiagnosticSpelling(item));
        putchar('\n');
        errors++;
    }
    return errors;
}

int main(int argc, char **argv) {
    if (argc < 5) { fprintf(stderr, "usage: evokernel-parser LIBCLANG header|unit|names WHERE FILE [OPTION]...\n"); return 2; }
    open_library(argv[1]);
    const char *mode = argv[2], *file = argv[4];
    unsigned flags = strcmp(mode, "header") ? FULL_ARGUMENTS_KEEP_GOING : INCOMPLETE | FOR_SAVING;
    void *unit = NULL, *index = createIndex(!strcmp(mode, "unit"), 0);
    int depth = 0;
    prefix = argv[3];
    if (parseTranslationUnit2(index, file, (const char *const *)(argv + 5), argc - 5, NULL, 0, flags, &unit) || !unit) return 3;
    unit_file = getFile(unit, file);
    int errors = print_errors(unit);
    if (!strcmp(mode, "header")) return errors || saveTranslationUnit(unit, argv[3], 0) ? 3 : 0;
    visitChildren(getTranslationUnitCursor(unit), strcmp(mode, "names") ? visit_own : visit_names, &depth);
    printf("X\n");
    return fflush(stdout) || ferror(stdout) ? 3 : 0;
}
