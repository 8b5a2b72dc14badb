/* Design notes
 *
 * This code runs in forked children, in vforked ones on their parent's memory, and on the small
 * stacks of posix_spawn. If a part of a program cannot be read, the loader decides. */
#include "agent/inproc/core/exec_check.h"

#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/sys.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* AddressSanitizer's runtime ends a program if another library is loaded before it. */
static const char sanitizer[] = "libasan.so";

enum { ROWS = 16, SEGMENTS_MAX = 64 };

typedef struct program_file {
    int file;
    Elf64_Ehdr header;
} program_file;

static bool read_at(const program_file *program, void *bytes, size_t count, uint64_t offset)
{
    return SJ_SYS(SYS_pread64, program->file, bytes, count, offset, 0, 0) == (long)count;
}

static bool read_segment(const program_file *program, uint32_t number, Elf64_Phdr *segment)
{
    return read_at(program, segment, sizeof(*segment),
                   program->header.e_phoff + number * sizeof(*segment));
}

static bool find_segment(const program_file *program, uint32_t type, Elf64_Phdr *segment)
{
    for (uint32_t i = 0; i < program->header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (read_segment(program, i, segment) && segment->p_type == type) {
            return true;
        }
    }
    return false;
}

/* Returns the offset in the file for an address of the program, or 0 if there is none. */
static uint64_t file_offset(const program_file *program, uint64_t address)
{
    Elf64_Phdr segment;
    for (uint32_t i = 0; i < program->header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (read_segment(program, i, &segment) && segment.p_type == PT_LOAD &&
            address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
            return segment.p_offset + (address - segment.p_vaddr);
        }
    }
    return 0;
}

/* Calls `visit` with each row of the dynamic section until it returns true. `visit` reads and
 * changes `*result`, which begins as `context`. Returns false if no call returned true. */
static bool visit_rows(const program_file *program, uint64_t context,
                       bool (*visit)(const program_file *program, const Elf64_Dyn *row,
                                     uint64_t *context),
                       uint64_t *result)
{
    Elf64_Phdr dynamic;
    Elf64_Dyn rows[ROWS];
    *result = context;
    if (!find_segment(program, PT_DYNAMIC, &dynamic)) {
        return false;
    }
    for (uint64_t at = 0; at < dynamic.p_filesz; at += sizeof(rows)) {
        const uint64_t left = dynamic.p_filesz - at;
        const size_t bytes = left < sizeof(rows) ? (size_t)left : sizeof(rows);
        if (!read_at(program, rows, bytes, dynamic.p_offset + at)) {
            return false;
        }
        for (size_t i = 0; i < bytes / sizeof(rows[0]); i++) {
            if (visit(program, &rows[i], result)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_string_table(const program_file *program, const Elf64_Dyn *row, uint64_t *table)
{
    if (row->d_tag == DT_STRTAB) {
        *table = file_offset(program, row->d_un.d_ptr);
    }
    return row->d_tag == DT_STRTAB && *table != 0;
}

static bool is_sanitizer(const program_file *program, const Elf64_Dyn *row, uint64_t *table)
{
    char name[sizeof(sanitizer) - 1];
    return row->d_tag == DT_NEEDED &&
           read_at(program, name, sizeof(name), *table + row->d_un.d_val) &&
           memcmp(name, sanitizer, sizeof(name)) == 0;
}

static sj_unrecorded check_program(program_file *program)
{
    Elf64_Phdr interpreter;
    uint64_t table = 0;
    const Elf64_Ehdr *header = &program->header;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != sj_arch_machine() ||
        header->e_phentsize != sizeof(Elf64_Phdr) ||
        !find_segment(program, PT_INTERP, &interpreter)) {
        return SJ_UNRECORDED_KIND;
    }
    return visit_rows(program, 0, is_string_table, &table) &&
                   visit_rows(program, table, is_sanitizer, &table)
               ? SJ_UNRECORDED_SANITIZER
               : SJ_UNRECORDED_NONE;
}

sj_unrecorded sj_exec_check_reach(const char *runtime)
{
    struct stat status;
    const long folder = sj_sys_open_at(AT_FDCWD, runtime, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) {
        return folder == -EACCES ? SJ_UNRECORDED_USER : SJ_UNRECORDED_ROOT;
    }
    /* This process may have access by its capabilities, which the program will not have. */
    const long user = SJ_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    const bool is_foreign = SJ_SYS(SYS_fstat, folder, &status, 0, 0, 0, 0) == 0 && user != 0 &&
                            user != (long)status.st_uid;
    (void)sj_sys_close((int)folder);
    return is_foreign ? SJ_UNRECORDED_USER : SJ_UNRECORDED_NONE;
}

/* Returns why the new program cannot load the agent's file or reach the recorder, or
 * SJ_UNRECORDED_NONE. */
static sj_unrecorded check_reach(const char *agent, const char *runtime)
{
    if (SJ_SYS(SYS_faccessat, AT_FDCWD, agent, R_OK, 0, 0, 0) < 0) {
        return SJ_UNRECORDED_ROOT;
    }
    return runtime != NULL ? sj_exec_check_reach(runtime) : SJ_UNRECORDED_NONE;
}

sj_unrecorded sj_exec_check(int directory, const char *path, const char *agent, const char *runtime)
{
    struct stat status;
    program_file program = {
        .file = (int)sj_sys_open_at(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)};
    sj_unrecorded found = SJ_UNRECORDED_UNKNOWN;
    if (program.file < 0) {
        return found;
    }
    if (SJ_SYS(SYS_fstat, program.file, &status, 0, 0, 0, 0) == 0 && S_ISREG(status.st_mode)) {
        const bool is_elf = read_at(&program, &program.header, sizeof(program.header), 0) &&
                            memcmp(program.header.e_ident, ELFMAG, SELFMAG) == 0;
        found = is_elf ? check_program(&program) : SJ_UNRECORDED_NONE;
        if (found == SJ_UNRECORDED_NONE && (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
            found = SJ_UNRECORDED_SET_USER;
        }
    }
    (void)sj_sys_close(program.file);
    return found == SJ_UNRECORDED_NONE ? check_reach(agent, runtime) : found;
}
