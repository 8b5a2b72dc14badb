#include "agent/inproc/zombies/custody.h"

#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum { ALL_BYTES = SJ_CUSTODY_DATA_BYTES + SJ_CUSTODY_CODE_BYTES, LINE_BYTES = 256 };

sj_custody *sj_custody_now;

/* Lines of /proc/self/maps, each cut to LINE_BYTES. */
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

sj_custody *sj_custody_find(void)
{
    line_reader reader = {0};
    sj_custody *found = NULL;
    const long file = sj_sys_open_at(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    reader.descriptor = (int)file;
    while (file >= 0 && found == NULL && next_line(&reader)) {
        /* The data comes first: it is what can be written. */
        if (strstr(reader.line, " rw-p ") != NULL &&
            strstr(reader.line, "/memfd:" SJ_HEAP_CUSTODY_NAME) != NULL) {
            found = (sj_custody *)(uintptr_t)read_hexadecimal(reader.line);
        }
    }
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    return found != NULL && found->shared.magic == SJ_HEAP_CUSTODY_MAGIC ? found : NULL;
}

static long make_file(void)
{
    long file = SJ_SYS(SYS_memfd_create, SJ_HEAP_CUSTODY_NAME, MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
    if (file < 0) { /* a kernel that does not know MFD_EXEC */
        file = SJ_SYS(SYS_memfd_create, SJ_HEAP_CUSTODY_NAME, MFD_CLOEXEC, 0, 0, 0, 0);
    }
    return file;
}

sj_custody *sj_custody_make(void)
{
    size_t bytes = 0;
    const void *code = sj_custodian_code(&bytes);
    const long file = make_file();
    void *mapped = NULL;
    if (file >= 0 && code != NULL && bytes <= SJ_CUSTODY_CODE_BYTES &&
        SJ_SYS(SYS_ftruncate, file, ALL_BYTES, 0, 0, 0, 0) == 0) {
        mapped = sj_sys_map(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, (int)file, 0);
    }
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    if (mapped == NULL || sj_sys_failed(mapped)) {
        return NULL;
    }
    uint8_t *code_page = (uint8_t *)mapped + SJ_CUSTODY_DATA_BYTES;
    memcpy(code_page, code, bytes);
    if (sj_sys_protect(code_page, SJ_CUSTODY_CODE_BYTES, PROT_READ | PROT_EXEC) != 0) {
        (void)sj_sys_unmap(mapped, ALL_BYTES);
        return NULL;
    }
    sj_custody *custody = mapped;
    custody->shared.magic = SJ_HEAP_CUSTODY_MAGIC;
    custody->shared.version = SJ_HEAP_CUSTODY_VERSION;
    return custody;
}

void sj_custody_take_over(sj_custody *custody)
{
    const uint64_t code = (uint64_t)(uintptr_t)custody + SJ_CUSTODY_DATA_BYTES;
    custody->goes_to[SJ_HEAD_FREE] = code + sj_custodian_offset(SJ_HEAD_FREE);
    custody->goes_to[SJ_HEAD_REALLOC] = code + sj_custodian_offset(SJ_HEAD_REALLOC);
    custody->goes_to[SJ_HEAD_USABLE_SIZE] = code + sj_custodian_offset(SJ_HEAD_USABLE_SIZE);
    for (uint32_t head = SJ_HEAD_SIGACTION; head < SJ_HEADS; head++) {
        custody->goes_to[head] = custody->originals[head];
    }
}
