/* Small ELF files in memory, of sections alone: debug data put together for libdw. */
#ifndef SJ_AGENT_OBJFILE_ELF_IMAGE_H
#define SJ_AGENT_OBJFILE_ELF_IMAGE_H

#include "proto/base/byte_buffer.h"
#include "proto/base/cursor.h"

typedef struct sj_elf_image_section {
    const char *name;
    sj_slice bytes; /* none: the section is left out */
} sj_elf_image_section;

/* sj_elf_image_write writes an ELF64 file with these sections in an empty buffer, which keeps the
 * failure when there is no memory. */
void sj_elf_image_write(sj_byte_buffer *image, uint16_t machine,
                        const sj_elf_image_section *sections, size_t count);

#endif
