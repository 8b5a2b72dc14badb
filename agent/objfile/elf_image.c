#include "agent/objfile/elf_image.h"

#include <elf.h>

static void put_section(sj_byte_buffer *table, uint32_t name, uint32_t type, uint64_t offset,
                        uint64_t size)
{
    Elf64_Shdr header = {.sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size};
    header.sh_addralign = 1;
    sj_byte_buffer_put(table, &header, sizeof(header));
}

static uint32_t put_name(sj_byte_buffer *names, const char *name)
{
    const size_t at = names->size;
    sj_byte_buffer_put(names, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void put_header(sj_byte_buffer *image, uint16_t machine, size_t table_offset, size_t count)
{
    Elf64_Ehdr header = {.e_type = ET_EXEC,
                         .e_machine = machine,
                         .e_version = EV_CURRENT,
                         .e_shoff = table_offset,
                         .e_ehsize = sizeof(header),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (uint16_t)count,
                         .e_shstrndx = (uint16_t)(count - 1)};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    memcpy(image->bytes, &header, sizeof(header));
}

void sj_elf_image_write(sj_byte_buffer *image, uint16_t machine,
                        const sj_elf_image_section *sections, size_t count)
{
    sj_byte_buffer table = {0};
    sj_byte_buffer names = {0};
    (void)sj_byte_buffer_add(image, sizeof(Elf64_Ehdr));
    (void)sj_byte_buffer_add(&table, sizeof(Elf64_Shdr));
    (void)put_name(&names, "");
    for (size_t i = 0; i < count; i++) {
        const sj_slice bytes = sections[i].bytes;
        if (bytes.size != 0) {
            put_section(&table, put_name(&names, sections[i].name), SHT_PROGBITS, image->size,
                        bytes.size);
            sj_byte_buffer_put(image, bytes.data, bytes.size);
        }
    }
    const uint32_t own = put_name(&names, ".shstrtab");
    put_section(&table, own, SHT_STRTAB, image->size, names.size);
    image->failed = image->failed || names.failed || table.failed;
    if (!image->failed) {
        sj_byte_buffer_put(image, names.bytes, names.size);
        sj_byte_buffer_align(image, sizeof(uint64_t));
        const size_t table_offset = image->size;
        sj_byte_buffer_put(image, table.bytes, table.size);
        if (!image->failed) {
            put_header(image, machine, table_offset, table.size / sizeof(Elf64_Shdr));
        }
    }
    sj_byte_buffer_deinit(&table);
    sj_byte_buffer_deinit(&names);
}
