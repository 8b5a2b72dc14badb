#include "agent/objfile/debug_file.h"

#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>

enum { MINI_DEBUG_MAX_BYTES = 256 << 20, UNPACK_MEMORY_BYTES = 128 << 20, LINK_ALIGN = 4 };

static bool has_same_build_id(const sj_elf *module, const sj_elf *debug)
{
    const sj_slice wanted = sj_elf_build_id(module);
    const sj_slice found = sj_elf_build_id(debug);
    return wanted.size > 0 && wanted.size == found.size &&
           memcmp(wanted.data, found.data, wanted.size) == 0;
}

/* Opens DEBUG_ROOT/.build-id/xx/yyyy.debug, if it has the module's build-id. */
static sj_status open_by_build_id(const sj_elf *module, const char *debug_root, sj_elf *debug,
                                  char *path, size_t path_bytes)
{
    const sj_slice id = sj_elf_build_id(module);
    if (id.size < 2 || id.size > 64) {
        return SJ_ENOTFOUND;
    }
    char digits[2 * 64 + 1];
    for (size_t i = 0; i < id.size; i++) {
        snprintf(digits + 2 * i, 3, "%02x", id.data[i]);
    }
    const int path_length =
        snprintf(path, path_bytes, "%s/.build-id/%.2s/%s.debug", debug_root, digits, digits + 2);
    if (path_length < 0 || (size_t)path_length >= path_bytes ||
        sj_elf_open(path, debug, NULL) != SJ_OK) {
        return SJ_ENOTFOUND;
    }
    if (!has_same_build_id(module, debug)) {
        sj_elf_close(debug);
        return SJ_ENOTFOUND;
    }
    return SJ_OK;
}

/* True if `debug` belongs to the module: by build-id if both have one, else by the checksum in the
 * debug link. */
static bool fits_link(const sj_elf *module, const sj_elf *debug, uint32_t checksum)
{
    if (sj_elf_build_id(module).size > 0 && sj_elf_build_id(debug).size > 0) {
        return has_same_build_id(module, debug);
    }
    return lzma_crc32(debug->file.data, debug->file.size, 0) == checksum;
}

/* Opens the file that .gnu_debuglink names: a name, padded to 4 bytes, and a CRC-32 of the file.
 * Searches three folders. */
static sj_status open_by_link(const sj_elf *module, const char *module_path, const char *debug_root,
                              sj_elf *debug, char *path, size_t path_bytes)
{
    const sj_slice link =
        sj_elf_section_bytes(module, sj_elf_find_section(module, ".gnu_debuglink"));
    const char *name = sj_elf_string(link, 0);
    const size_t at = (strlen(name) + LINK_ALIGN) & ~(size_t)(LINK_ALIGN - 1);
    if (name[0] == 0 || strchr(name, '/') != NULL || at + sizeof(uint32_t) > link.size) {
        return SJ_ENOTFOUND;
    }
    sj_reader reader = sj_reader_of(link.data + at, sizeof(uint32_t));
    const uint32_t checksum = sj_read_u32(&reader);
    const char *slash = strrchr(module_path, '/');
    const int folder_bytes = slash != NULL ? (int)(slash - module_path) : 1;
    const char *folder = slash != NULL ? module_path : ".";
    for (unsigned place = 0; place < 3; place++) {
        int path_length;
        if (place == 0) {
            path_length = snprintf(path, path_bytes, "%.*s/%s", folder_bytes, folder, name);
        } else if (place == 1) {
            path_length = snprintf(path, path_bytes, "%.*s/.debug/%s", folder_bytes, folder, name);
        } else {
            path_length = snprintf(path, path_bytes, "%s%s%.*s/%s", debug_root,
                                   folder[0] == '/' ? "" : "/", folder_bytes, folder, name);
        }
        if (path_length < 0 || (size_t)path_length >= path_bytes ||
            sj_elf_open(path, debug, NULL) != SJ_OK) {
            continue;
        }
        if (fits_link(module, debug, checksum)) {
            return SJ_OK;
        }
        sj_elf_close(debug);
    }
    return SJ_ENOTFOUND;
}

sj_status sj_debug_file_find(const sj_elf *module, const char *module_path, const char *debug_root,
                             sj_elf *debug, char *path, size_t path_bytes)
{
    const sj_status status = open_by_build_id(module, debug_root, debug, path, path_bytes);
    if (status == SJ_OK) {
        return status;
    }
    return open_by_link(module, module_path, debug_root, debug, path, path_bytes);
}

sj_status sj_mini_debug_open(const sj_elf *module, sj_elf *debug)
{
    const sj_slice packed =
        sj_elf_section_bytes(module, sj_elf_find_section(module, ".gnu_debugdata"));
    if (packed.size == 0) {
        return SJ_ENOTFOUND;
    }
    size_t capacity = 4 * packed.size + 4096;
    while (capacity <= MINI_DEBUG_MAX_BYTES) {
        uint8_t *bytes = malloc(capacity);
        if (bytes == NULL) {
            return SJ_ENOMEM;
        }
        uint64_t memory = UNPACK_MEMORY_BYTES;
        size_t used = 0;
        size_t size = 0;
        const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, NULL, packed.data, &used,
                                                          packed.size, bytes, &size, capacity);
        if (result == LZMA_OK) {
            return sj_elf_adopt(bytes, size, debug, NULL) == SJ_OK ? SJ_OK : SJ_ECORRUPT;
        }
        free(bytes);
        if (result != LZMA_BUF_ERROR || used > packed.size) {
            return SJ_ECORRUPT;
        }
        capacity *= 2;
    }
    return SJ_ECORRUPT;
}
