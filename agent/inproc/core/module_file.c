#include "agent/inproc/core/module_file.h"

#include "agent/inproc/recorder/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

enum { NOTE_ALIGNMENT = 4 };

static uint32_t align_note(uint32_t bytes)
{
    return (bytes + NOTE_ALIGNMENT - 1) & ~(uint32_t)(NOTE_ALIGNMENT - 1);
}

/* Copies the build-id if the notes of [at, end) contain one. */
static void read_notes(const uint8_t *at, const uint8_t *end, sj_link_module *module)
{
    ElfW(Nhdr) note;
    while ((size_t)(end - at) >= sizeof(note)) {
        memcpy(&note, at, sizeof(note));
        const uint8_t *name = at + sizeof(note);
        const size_t left = (size_t)(end - name);
        const uint64_t bytes = (uint64_t)align_note(note.n_namesz) + align_note(note.n_descsz);
        if (bytes > left) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            note.n_descsz <= SJ_BUILD_ID_MAX_BYTES) {
            memcpy(module->build_id, name + 4, note.n_descsz);
            module->build_id_bytes = note.n_descsz;
            return;
        }
        at = name + bytes;
    }
}

void sj_module_read_build_id(const struct dl_phdr_info *info, sj_link_module *module)
{
    for (uint32_t i = 0; i < info->dlpi_phnum && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE) {
            const uint8_t *notes = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
            read_notes(notes, notes + segment->p_memsz, module);
        }
    }
}

uint32_t sj_module_read_path(const char *name, bool is_main, char *path)
{
    uint32_t used = 0;
    if (is_main) {
        const long count =
            SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, SJ_MODULE_PATH_BYTES, 0, 0);
        return count > 0 && count < SJ_MODULE_PATH_BYTES ? (uint32_t)count : 0;
    }
    if (strchr(name, '/') == NULL) {
        return 0;
    }
    if (name[0] != '/') {
        const long count = SJ_SYS(SYS_getcwd, path, SJ_MODULE_PATH_BYTES, 0, 0, 0, 0);
        if (count <= 1) {
            return 0;
        }
        used = (uint32_t)count - 1;
        path[used++] = '/';
    }
    const size_t length = strlen(name);
    if (used + length >= SJ_MODULE_PATH_BYTES) {
        return 0;
    }
    memcpy(path + used, name, length);
    return used + (uint32_t)length;
}
