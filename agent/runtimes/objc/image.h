/* A module's data as the program will see it: the file's words with relocations applied. */
#ifndef SJ_AGENT_RUNTIMES_OBJC_IMAGE_H
#define SJ_AGENT_RUNTIMES_OBJC_IMAGE_H

#include "agent/objfile/elf_view.h"

#include <stdbool.h>

typedef struct sj_image_pointer {
    uint64_t place;
    uint64_t value; /* module offset; 0: another module's */
    const char
        *name; /* of the symbol that another module defines; borrowed from the file; or NULL */
} sj_image_pointer;

typedef struct sj_image {
    const sj_elf *elf;          /* borrowed */
    sj_image_pointer *pointers; /* sorted by place */
    size_t count;
    size_t capacity;
} sj_image;

/* sj_image_open reads the relocations of a file. SJ_ENOMEM. Release with sj_image_close, also after
 * a failure. */
SJ_MUST_CHECK sj_status sj_image_open(const sj_elf *elf, sj_image *image);
void sj_image_close(sj_image *image);

/* sj_image_word gives the word at an address; false when the file does not hold it. */
bool sj_image_word(const sj_image *image, uint64_t address, uint64_t *word);

/* sj_image_import gives the name of the symbol of another module whose address the loader writes to
 * an address, or NULL. Borrowed from the file. */
const char *sj_image_import(const sj_image *image, uint64_t address);

/* sj_image_text gives the NUL-terminated text of 1 to `limit` printable bytes at an address, or
 * NULL. Borrowed from the file. */
const char *sj_image_text(const sj_image *image, uint64_t address, size_t limit);

#endif
