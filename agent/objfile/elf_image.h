/* Writes small ELF files to memory. They have sections, but no segments, and hold debug data for
 * libdw. */
#ifndef SJ_AGENT_OBJFILE_ELF_IMAGE_H
#define SJ_AGENT_OBJFILE_ELF_IMAGE_H

#include "proto/base/byte_buffer.h"
#include "proto/base/cursor.h"

typedef struct sj_elf_image_section {
    const char *name;
    sj_slice bytes; /* if empty, the section is omitted */
} sj_elf_image_section;

/* Writes an ELF64 file with these sections to an empty buffer. Sets `image->failed` if out of
 * memory. */
void sj_elf_image_write(sj_byte_buffer *image, uint16_t machine,
                        const sj_elf_image_section *sections, size_t count);

#endif
