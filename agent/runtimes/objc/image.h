/* Reads the data of a module as it will be in memory: the file's words with relocations applied. */
#ifndef SJ_AGENT_RUNTIMES_OBJC_IMAGE_H
#define SJ_AGENT_RUNTIMES_OBJC_IMAGE_H

#include "agent/objfile/elf_view.h"

#include <stdbool.h>

typedef struct sj_image_pointer {
    uint64_t place; /* Address of the pointer. */
    uint64_t value; /* Module offset of the target; 0 if it is in another module. */
    /* Symbol of a target in another module, borrowed from the file; else NULL. */
    const char *name;
} sj_image_pointer;

typedef struct sj_image {
    const sj_elf *elf;          /* Borrowed. */
    sj_image_pointer *pointers; /* Sorted by `place`. */
    size_t count;
    size_t capacity;
} sj_image;

/* Reads the relocations of a file. The caller calls sj_image_close, even after an error. Returns
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_image_open(const sj_elf *elf, sj_image *image);
void sj_image_close(sj_image *image);

/* Writes the 64-bit word at an address. Returns false if the file does not contain the address. */
bool sj_image_word(const sj_image *image, uint64_t address, uint64_t *word);

/* If the loader writes the address of another module's symbol to `address`, returns the symbol's
 * name, else NULL. Borrowed from the file. */
const char *sj_image_import(const sj_image *image, uint64_t address);

/* Returns the NUL-terminated text at an address. Returns NULL unless it has 1 to `limit` bytes
 * without control characters. Borrowed from the file. */
const char *sj_image_text(const sj_image *image, uint64_t address, size_t limit);

#endif
