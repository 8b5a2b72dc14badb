#include "agent/launch/program.h"

#include "agent/abi/machine.h"
#include "agent/objfile/elf_machine.h"
#include "agent/objfile/elf_view.h"
#include "proto/base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, INTERPRETER_DEPTH = 4, PROGRAM_HEADERS_MAX = 64 * 1024 };

/* Facts from the first bytes of a file. */
typedef struct elf_facts {
    uint8_t class;
    uint16_t type;
    uint16_t machine;
    uint64_t headers_offset;
    uint16_t header_bytes;
    uint16_t header_count;
} elf_facts;

static bool is_file_at(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

/* Finds a file of this name in PATH. Prefers an executable file and falls back to another one, so
 * that the message can distinguish the two. */
static bool find_in_path(const char *name, char *path, size_t capacity)
{
    const char *list = getenv("PATH");
    char fallback[PATH_MAX] = "";
    if (list == NULL) {
        list = "/usr/local/bin:/usr/bin:/bin";
    }
    for (const char *at = list;;) {
        const size_t bytes = strcspn(at, ":");
        const int written = bytes == 0 ? snprintf(path, capacity, "./%s", name)
                                       : snprintf(path, capacity, "%.*s/%s", (int)bytes, at, name);
        if (written > 0 && (size_t)written < capacity && is_file_at(path)) {
            if (access(path, X_OK) == 0) {
                return true;
            }
            if (fallback[0] == '\0') {
                snprintf(fallback, sizeof(fallback), "%s", path);
            }
        }
        if (at[bytes] == '\0') {
            break;
        }
        at += bytes + 1;
    }
    snprintf(path, capacity, "%s", fallback);
    return fallback[0] != '\0';
}

sj_status sj_program_resolve(const char *name, char *path, size_t capacity, sj_error *error)
{
    if (strchr(name, '/') == NULL) {
        if (name[0] != '\0' && find_in_path(name, path, capacity)) {
            return SJ_OK;
        }
        return sj_fail(error, SJ_ENOTFOUND, "%s: no such program in PATH; give its path, as ./%s",
                       name, name);
    }
    if (access(name, F_OK) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s; check the path", name, strerror(errno));
    }
    if (strlen(name) >= capacity) {
        return sj_fail(error, SJ_ELIMIT, "%.64s...: the path is too long", name);
    }
    snprintf(path, capacity, "%s", name);
    return SJ_OK;
}

static sj_program_problem not_executable(sj_error *error, const char *path, const char *why)
{
    sj_fail(error, SJ_EPERM, "%s: %s", path, why);
    return SJ_PROGRAM_NOT_EXECUTABLE;
}

static sj_program_problem not_recordable(sj_error *error, const char *path, const char *why)
{
    sj_fail(error, SJ_EUNSUPPORTED, "%s: %s", path, why);
    return SJ_PROGRAM_NOT_RECORDABLE;
}

static bool read_elf_facts(const uint8_t *head, size_t size, elf_facts *facts)
{
    sj_reader reader = sj_reader_of(head, size);
    const uint8_t *ident = sj_read_bytes(&reader, EI_NIDENT);
    if (ident == NULL || memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    *facts = (elf_facts){.class = ident[EI_CLASS]};
    facts->type = sj_read_u16(&reader);
    facts->machine = sj_read_u16(&reader);
    if (facts->class != ELFCLASS64) {
        return !reader.bad;
    }
    sj_read_u32(&reader); /* version */
    sj_read_u64(&reader); /* entry */
    facts->headers_offset = sj_read_u64(&reader);
    sj_read_u64(&reader); /* section headers */
    sj_read_u32(&reader); /* flags */
    sj_read_u16(&reader); /* size of the ELF header */
    facts->header_bytes = sj_read_u16(&reader);
    facts->header_count = sj_read_u16(&reader);
    return !reader.bad;
}

/* True if the program has an interpreter (PT_INTERP), so that it is linked dynamically. */
static bool has_interpreter(int fd, const elf_facts *facts)
{
    const size_t bytes = (size_t)facts->header_bytes * facts->header_count;
    if (facts->header_bytes < sizeof(Elf64_Phdr) || bytes > PROGRAM_HEADERS_MAX) {
        return false;
    }
    uint8_t *headers = malloc(bytes);
    bool found = false;
    if (headers != NULL &&
        pread(fd, headers, bytes, (off_t)facts->headers_offset) == (ssize_t)bytes) {
        for (size_t i = 0; i < facts->header_count && !found; i++) {
            sj_reader reader = sj_reader_of(headers + i * facts->header_bytes, facts->header_bytes);
            found = sj_read_u32(&reader) == PT_INTERP;
        }
    }
    free(headers);
    return found;
}

/* Finds an emulator on this machine for programs of another one. */
static bool find_emulator(const sj_elf_machine *machine, sj_program *program)
{
    if (machine == NULL || machine->emulator == NULL ||
        !find_in_path(machine->emulator, program->emulator, sizeof(program->emulator)) ||
        access(program->emulator, X_OK) != 0) {
        program->emulator[0] = '\0';
        return false;
    }
    program->agent = machine->agent;
    if (getenv("QEMU_LD_PREFIX") == NULL && access(machine->sysroot, F_OK) == 0) {
        snprintf(program->sysroot, sizeof(program->sysroot), "%s", machine->sysroot);
    } else if (getenv("QEMU_LD_PREFIX") != NULL) {
        snprintf(program->sysroot, sizeof(program->sysroot), "%s", getenv("QEMU_LD_PREFIX"));
    }
    return true;
}

static sj_program_problem check_machine(const char *path, const elf_facts *facts,
                                        sj_program *program, sj_error *error)
{
    const sj_elf_machine *machine = sj_elf_machine_of(facts->machine);
    program->machine = facts->machine;
    if (facts->machine == SJ_MACHINE_ELF) {
        return SJ_PROGRAM_FINE;
    }
    if (program->is_script || !find_emulator(machine, program)) {
        sj_fail(error, SJ_EUNSUPPORTED,
                "%s: built for %s, this machine is %s; record it on a machine of its kind%s", path,
                sj_elf_machine_name(facts->machine), sj_elf_machine_name(SJ_MACHINE_ELF),
                machine != NULL && machine->emulator != NULL
                    ? ", or install qemu-user and record it here"
                    : "");
        return SJ_PROGRAM_NOT_EXECUTABLE;
    }
    return SJ_PROGRAM_FINE;
}

/* True if a program loads AddressSanitizer's runtime, which ends programs if another library
 * precedes it. */
static bool needs_sanitizer(const char *path)
{
    sj_elf elf;
    sj_error unused;
    bool found = false;
    if (sj_elf_open(path, &elf, &unused) != SJ_OK) {
        return false;
    }
    const sj_elf_section *dynamic = sj_elf_find_section(&elf, ".dynamic");
    const sj_elf_section *strings = sj_elf_find_section(&elf, ".dynstr");
    if (dynamic != NULL && strings != NULL) {
        const sj_slice names = sj_elf_section_bytes(&elf, strings);
        const sj_slice bytes = sj_elf_section_bytes(&elf, dynamic);
        sj_reader rows = sj_reader_of(bytes.data, bytes.size);
        while (!found && !rows.bad && sj_reader_left(&rows) >= sizeof(Elf64_Dyn)) {
            const uint64_t tag = sj_read_u64(&rows);
            const uint64_t value = sj_read_u64(&rows);
            found = tag == DT_NEEDED &&
                    strncmp(sj_elf_string(names, value), "libasan.so", strlen("libasan.so")) == 0;
        }
    }
    sj_elf_close(&elf);
    return found;
}

static sj_program_problem check_elf(int fd, const char *path, const elf_facts *facts,
                                    sj_program *program, sj_error *error)
{
    struct stat status;
    if (facts->class != ELFCLASS64) {
        return not_recordable(error, path,
                              "a 32-bit program; Sojourn records 64-bit programs: use its 64-bit "
                              "build");
    }
    const sj_program_problem problem = check_machine(path, facts, program, error);
    if (problem != SJ_PROGRAM_FINE) {
        return problem;
    }
    if (facts->type != ET_EXEC && facts->type != ET_DYN) {
        return not_executable(error, path,
                              "an ELF file but not a program (an object or a core file); name the "
                              "linked program");
    }
    if (!has_interpreter(fd, facts)) {
        return not_recordable(error, path,
                              "statically linked, or a library: it loads nothing at its start, so "
                              "the agent cannot enter; link it dynamically (without -static)");
    }
    if (needs_sanitizer(path)) {
        return not_recordable(
            error, path,
            "built with AddressSanitizer's shared runtime, which has to be loaded "
            "before all else; build it without, or with -static-libasan");
    }
    if (fstat(fd, &status) == 0 &&
        (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()))) {
        return not_recordable(error, path,
                              "set-user-id or set-group-id: the loader refuses the agent; record a "
                              "copy without these bits, or record as its owner");
    }
    return SJ_PROGRAM_FINE;
}

static sj_program_problem check_file(const char *path, int depth, sj_program *program,
                                     sj_error *error);

static sj_program_problem check_script(const char *path, const uint8_t *head, size_t size,
                                       int depth, sj_program *program, sj_error *error)
{
    char interpreter[PATH_MAX];
    size_t start = 2;
    while (start < size && (head[start] == ' ' || head[start] == '\t')) {
        start++;
    }
    size_t end = start;
    while (end < size && strchr(" \t\n", head[end]) == NULL) {
        end++;
    }
    if (end == start || end == size || end - start >= sizeof(interpreter)) {
        return not_executable(error, path, "its #! line names no interpreter");
    }
    snprintf(interpreter, sizeof(interpreter), "%.*s", (int)(end - start),
             (const char *)head + start);
    if (depth + 1 > INTERPRETER_DEPTH) {
        return not_executable(error, path, "interpreters of interpreters, too many of them");
    }
    if (access(interpreter, F_OK) != 0) {
        sj_fail(error, SJ_ENOTFOUND,
                "%s: its interpreter %s does not exist; install it or correct the #! line", path,
                interpreter);
        return SJ_PROGRAM_NOT_EXECUTABLE;
    }
    program->is_script = true;
    return check_file(interpreter, depth + 1, program, error);
}

static sj_program_problem check_contents(int fd, const char *path, int depth, sj_program *program,
                                         sj_error *error)
{
    uint8_t head[HEAD_BYTES];
    elf_facts facts;
    const ssize_t got = pread(fd, head, sizeof(head), 0);
    if (got < 0) {
        return not_executable(error, path, strerror(errno));
    }
    if (got >= 2 && head[0] == '#' && head[1] == '!') {
        return check_script(path, head, (size_t)got, depth, program, error);
    }
    if (!read_elf_facts(head, (size_t)got, &facts)) {
        return not_executable(error, path,
                              "neither an ELF program nor a script that begins with #!; add a #! "
                              "line or name the interpreter");
    }
    /* The kernel uses this name, and plans are stored under it. */
    if (realpath(path, program->binary) == NULL) {
        return not_executable(error, path, strerror(errno));
    }
    return check_elf(fd, path, &facts, program, error);
}

static sj_program_problem check_file(const char *path, int depth, sj_program *program,
                                     sj_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return not_executable(error, path, strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) {
        return not_executable(error, path, "a directory, not a program");
    }
    if ((status.st_mode & 0111) == 0 || access(path, X_OK) != 0) {
        return not_executable(error, path, "not executable; chmod +x it if it is a program");
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return not_recordable(error, path,
                              "not readable, so its functions cannot be found; chmod +r it");
    }
    const sj_program_problem problem = check_contents(fd, path, depth, program, error);
    close(fd);
    return problem;
}

sj_program_problem sj_program_find(const char *name, sj_program *program, sj_error *error)
{
    memset(program, 0, sizeof(*program));
    if (sj_program_resolve(name, program->path, sizeof(program->path), error) != SJ_OK) {
        return SJ_PROGRAM_NOT_FOUND;
    }
    return check_file(program->path, 0, program, error);
}
