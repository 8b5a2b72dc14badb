#include "agent/runtimes/objc/image.h"

#include "agent/objfile/elf_machine.h"
#include "proto/base/array.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static bool is_relative_relocation(uint16_t number, uint32_t type)
{
    const sj_elf_machine *machine = sj_elf_machine_of(number);
    return machine != NULL && type == machine->relative;
}

static bool is_absolute_relocation(uint16_t number, uint32_t type)
{
    const sj_elf_machine *machine = sj_elf_machine_of(number);
    return machine != NULL && type == machine->absolute;
}

static const char *symbol_name(const sj_elf *elf, const sj_elf_symbol *symbol)
{
    const sj_slice names = sj_elf_section_bytes(elf, sj_elf_find_section(elf, ".dynstr"));
    return symbol->name < names.size &&
                   memchr(names.data + symbol->name, '\0', names.size - symbol->name) != NULL
               ? (const char *)names.data + symbol->name
               : NULL;
}

/* Returns the pointer that the loader writes for a relocation. */
static sj_image_pointer pointer_of(const sj_elf_relocations *walk,
                                   const sj_elf_relocation *relocation)
{
    sj_image_pointer pointer = {.place = relocation->place};
    sj_elf_symbol symbol;
    if (is_relative_relocation(walk->elf->machine, relocation->type)) {
        pointer.value = relocation->addend;
    } else if (sj_elf_symbol_at(walk->symbols, relocation->symbol, &symbol)) {
        pointer.value = symbol.value != 0 ? symbol.value + relocation->addend : 0;
        pointer.name = symbol.value == 0 ? symbol_name(walk->elf, &symbol) : NULL;
    }
    return pointer;
}

static sj_status read_relocations(sj_image *image)
{
    const uint16_t machine = image->elf->machine;
    sj_elf_relocations walk = {.elf = image->elf};
    for (sj_elf_relocation relocation; sj_elf_next_relocation(&walk, &relocation);) {
        if (!is_relative_relocation(machine, relocation.type) &&
            !is_absolute_relocation(machine, relocation.type)) {
            continue;
        }
        const sj_image_pointer pointer = pointer_of(&walk, &relocation);
        SJ_TRY(
            sj_array_reserve(&image->pointers, &image->capacity, image->count, 1, sizeof(pointer)));
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
    SJ_TRY(read_relocations(image));
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

static const sj_image_pointer *find_pointer(const sj_image *image, uint64_t address)
{
    const sj_image_pointer key = {.place = address};
    return image->count == 0
               ? NULL
               : bsearch(&key, image->pointers, image->count, sizeof(key), compare_pointers);
}

bool sj_image_word(const sj_image *image, uint64_t address, uint64_t *word)
{
    const sj_image_pointer *found = find_pointer(image, address);
    if (found != NULL) {
        *word = found->value;
        return true;
    }
    const sj_slice bytes = sj_elf_at(image->elf, address);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    *word = sj_read_u64(&reader);
    return !reader.bad;
}

const char *sj_image_import(const sj_image *image, uint64_t address)
{
    const sj_image_pointer *found = find_pointer(image, address);
    return found != NULL ? found->name : NULL;
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
