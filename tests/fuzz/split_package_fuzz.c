/* Reads arbitrary bytes as a package of split debug data. Each extracted unit must be an ELF
 * file. */
#include "agent/objfile/elf_view.h"
#include "agent/objfile/split_package.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_UNITS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void extract(sj_split_package *package, uint64_t id)
{
    sj_byte_buffer file = {0};
    sj_elf elf;
    must(sj_split_package_has(package, id));
    if (sj_split_package_extract(package, id, &file) == SJ_OK) {
        must(sj_elf_adopt(file.bytes, file.size, &elf, NULL) == SJ_OK);
        must(sj_elf_find_section(&elf, ".debug_info.dwo") != NULL);
        sj_elf_close(&elf);
        return;
    }
    sj_byte_buffer_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    sj_split_package *package = NULL;
    sj_split_index index = {0};
    const int file = memfd_create("package", MFD_CLOEXEC);
    must(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (sj_split_package_open(path, &package) == SJ_OK) {
        Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
        must(elf != NULL &&
             sj_split_index_read(sj_elf_debug_section(elf, ".debug_cu_index"), &index) == SJ_OK);
        for (size_t i = 0; i < index.count && i < MOST_UNITS; i++) {
            extract(package, index.units[i].id);
        }
        sj_split_index_deinit(&index);
        elf_end(elf);
    }
    sj_split_package_close(package);
    close(file);
    return 0;
}
