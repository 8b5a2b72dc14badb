#include "agent/runtimes/objc/image.h"

#include "agent/planner/growable.h"

#include <elf.h>
#include <stdlib.h>

enum { RELATIVE_AARCH64 = R_AARCH64_RELATIVE, ABSOLUTE_AARCH64 = R_AARCH64_ABS64 };

static bool is_relative(uint16_t machine, uint32_t type)
{
    return type == (machine == EM_AARCH64 ? (uint32_t)RELATIVE_AARCH64 : R_X86_64_RELATIVE);
}

static bool is_absolute(uint16_t machine, uint32_t type)
{
    return type == (machine == EM_AARCH64 ? (uint32_t)ABSOLUTE_AARCH64 : R_X86_64_64);
}

/* The value of a symbol that this file defines; 0 for one of another module. */
static uint64_t symbol_value(sj_slice table, uint32_t index)
{
    const size_t at = (size_t)index * sizeof(Elf64_Sym);
    if (index >= table.size / sizeof(Elf64_Sym)) {
        return 0;
    }
    sj_reader reader = sj_reader_of(table.data + at, sizeof(Elf64_Sym));
    (void)sj_read_u64(&reader);
    return sj_read_u64(&reader);
}

static sj_status read_relocations(sj_image *image, const sj_elf_section *section)
{
    const sj_elf *elf = image->elf;
    const sj_slice bytes = sj_elf_section_bytes(elf, section);
    sj_slice symbols = {0};
    if (section->link < elf->section_count) {
        symbols = sj_elf_section_bytes(elf, &elf->sections[section->link]);
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    while (sj_reader_left(&reader) >= sizeof(Elf64_Rela)) {
        sj_image_pointer pointer = {.place = sj_read_u64(&reader)};
        const uint64_t info = sj_read_u64(&reader);
        const uint64_t addend = sj_read_u64(&reader);
        const uint32_t type = (uint32_t)info;
        if (is_relative(elf->machine, type)) {
            pointer.value = addend;
        } else if (is_absolute(elf->machine, type)) {
            const uint64_t value = symbol_value(symbols, (uint32_t)(info >> 32));
            pointer.value = value != 0 ? value + addend : 0;
        } else {
            continue;
        }
        SJ_TRY(sj_grow(&image->pointers, &image->capacity, image->count, 1, sizeof(pointer)));
        image->pointers[image->count++] = pointer;
    }
    return SJ_OK;
}

static int compare_pointers(const void *left, const void *right)
{
    const sj_image_pointer *a = left;
    const sj_image_pointer *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

sj_status sj_image_open(const sj_elf *elf, sj_image *image)
{
    *image = (sj_image){.elf = elf};
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const sj_elf_section *section = &elf->sections[i];
        if (section->type == SHT_RELA && (section->flags & SHF_ALLOC) != 0) {
            SJ_TRY(read_relocations(image, section));
        }
    }
    if (image->count != 0) {
        qsort(image->pointers, image->count, sizeof(*image->pointers), compare_pointers);
    }
    return SJ_OK;
}

void sj_image_close(sj_image *image)
{
    free(image->pointers);
    *image = (sj_image){0};
}

bool sj_image_word(const sj_image *image, uint64_t address, uint64_t *word)
{
    const sj_image_pointer key = {.place = address};
    const sj_image_pointer *found = image->count == 0 ? NULL
                                                      : bsearch(&key, image->pointers, image->count,
                                                                sizeof(key), compare_pointers);
    if (found != NULL) {
        *word = found->value;
        return true;
    }
    const sj_slice bytes = sj_elf_at(image->elf, address);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    *word = sj_read_u64(&reader);
    return !reader.bad;
}

const char *sj_image_text(const sj_image *image, uint64_t address, size_t limit)
{
    const sj_slice bytes = sj_elf_at(image->elf, address);
    for (size_t i = 0; i < bytes.size && i <= limit; i++) {
        if (bytes.data[i] == '\0') {
            return i != 0 ? (const char *)bytes.data : NULL;
        }
        if (bytes.data[i] < ' ') {
            return NULL;
        }
    }
    return NULL;
}
