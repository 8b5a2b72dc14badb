/* The data of a module as the program will see it: words of the file with relocations applied. */
#ifndef SJ_AGENT_RUNTIMES_OBJC_IMAGE_H
#define SJ_AGENT_RUNTIMES_OBJC_IMAGE_H

#include "agent/objfile/elf_view.h"

#include <stdbool.h>

typedef struct sj_image_pointer {
    uint64_t place;
    uint64_t value; /* Module offset. 0: the target is in another module. */
    const char
        /* The symbol that another module defines, borrowed from the file, or NULL. */
        *name;
} sj_image_pointer;

typedef struct sj_image {
    const sj_elf *elf;          /* Borrowed. */
    sj_image_pointer *pointers; /* Sorted by place. */
    size_t count;
    size_t capacity;
} sj_image;

/* Reads the relocations of a file. Returns SJ_ENOMEM if out of memory. The caller closes it with
 * sj_image_close, also after an error. */
SJ_MUST_CHECK sj_status sj_image_open(const sj_elf *elf, sj_image *image);
void sj_image_close(sj_image *image);

/* Reads the word at an address. Returns false if the file does not hold it. */
bool sj_image_word(const sj_image *image, uint64_t address, uint64_t *word);

/* Returns the name of another module's symbol whose address the loader writes to `address`, or
 * NULL. Borrowed from the file. */
const char *sj_image_import(const sj_image *image, uint64_t address);

/* Returns the NUL-terminated text of 1 to `limit` printable bytes at an address, or NULL. Borrowed
 * from the file. */
const char *sj_image_text(const sj_image *image, uint64_t address, size_t limit);

#endif
