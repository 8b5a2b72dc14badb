#include "agent/inproc/heap_guard/named_mapping.h"

#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum { LINE_BYTES = 256 };

/* Reads lines of a file. Cuts lines that are longer than LINE_BYTES - 1. */
typedef struct line_reader {
    int descriptor;
    uint32_t used;
    uint32_t filled;
    char buffer[LINE_BYTES];
    char line[LINE_BYTES];
} line_reader;

static bool next_line(line_reader *reader)
{
    uint32_t length = 0;
    for (;;) {
        if (reader->used == reader->filled) {
            const long got =
                sj_sys_read(reader->descriptor, reader->buffer, sizeof(reader->buffer));
            if (got <= 0) {
                return false;
            }
            reader->used = 0;
            reader->filled = (uint32_t)got;
        }
        const char c = reader->buffer[reader->used++];
        if (c == '\n') {
            reader->line[length] = '\0';
            return true;
        }
        if (length < LINE_BYTES - 1) {
            reader->line[length++] = c;
        }
    }
}

static uint64_t read_hexadecimal(const char *text)
{
    uint64_t value = 0;
    for (;; text++) {
        if (*text >= '0' && *text <= '9') {
            value = value << 4 | (uint64_t)(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            value = value << 4 | (uint64_t)(*text - 'a' + 10);
        } else {
            return value;
        }
    }
}

/* True if a line of /proc/self/maps shows a mapping of the memfd `name`. */
static bool is_of_file(const char *line, const char *name)
{
    static const char before[] = "/memfd:";
    const char *at = strstr(line, before);
    const size_t bytes = strlen(name);
    return at != NULL && strncmp(at + sizeof(before) - 1, name, bytes) == 0 &&
           at[sizeof(before) - 1 + bytes] == ' ';
}

void *sj_named_mapping_find(const char *name)
{
    line_reader reader = {0};
    void *found = NULL;
    const long file = sj_sys_open_at(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    reader.descriptor = (int)file;
    while (file >= 0 && found == NULL && next_line(&reader)) {
        /* The mapping begins with the data, its only writable part. */
        if (strstr(reader.line, " rw-p ") != NULL && is_of_file(reader.line, name)) {
            found = (void *)(uintptr_t)read_hexadecimal(reader.line);
        }
    }
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    return found;
}

static long new_file(const char *name)
{
    long file = SJ_SYS(SYS_memfd_create, name, MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
    if (file < 0) { /* Kernels before Linux 6.3 do not know MFD_EXEC. */
        file = SJ_SYS(SYS_memfd_create, name, MFD_CLOEXEC, 0, 0, 0, 0);
    }
    return file;
}

void *sj_named_mapping_new(const char *name, size_t data_bytes, size_t code_bytes)
{
    const size_t bytes = data_bytes + code_bytes;
    const long file = new_file(name);
    void *mapped = NULL;
    if (file >= 0 && SJ_SYS(SYS_ftruncate, file, bytes, 0, 0, 0, 0) == 0) {
        mapped = sj_sys_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, (int)file, 0);
    }
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    return mapped == NULL || sj_sys_failed(mapped) ? NULL : mapped;
}

bool sj_named_mapping_seal(void *mapping, size_t data_bytes, size_t code_bytes)
{
    if (sj_sys_protect((uint8_t *)mapping + data_bytes, code_bytes, PROT_READ | PROT_EXEC) == 0) {
        return true;
    }
    (void)sj_sys_unmap(mapping, data_bytes + code_bytes);
    return false;
}
