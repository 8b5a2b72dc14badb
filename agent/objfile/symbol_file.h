/* Names, source lines and inlined functions out of an ELF file or its separate debug file. */
#ifndef SJ_AGENT_OBJFILE_SYMBOL_FILE_H
#define SJ_AGENT_OBJFILE_SYMBOL_FILE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_BUILD_ID_MAX_BYTES = 64 };

typedef struct sj_symbol_file sj_symbol_file;

/* What a file holds, one call each, NULL where it is not wanted; anything but SJ_OK ends the
 * reading. Texts are borrowed. Addresses are those of the file, which are functions.offset. */
typedef struct sj_symbol_visitor {
    void *context;
    sj_status (*symbol)(void *context, uint64_t address, const char *symbol);
    sj_status (*line)(void *context, uint64_t address, const char *file, int line);
    /* the file that the symbol table names for a local function */
    sj_status (*source)(void *context, uint64_t address, const char *file);
    /* `function`: address of the function that holds the code; `depth` 1: right in it */
    sj_status (*inlined)(void *context, uint64_t function, int depth, const char *name,
                         const char *call_file, int call_line);
} sj_symbol_visitor;

/* sj_symbol_file_open opens a file and finds its build-id. SJ_ENOTFOUND; SJ_EUNSUPPORTED: no ELF
 * file, or one without a build-id; SJ_ENOMEM. Close with sj_symbol_file_close. */
SJ_MUST_CHECK sj_status sj_symbol_file_open(const char *path, sj_symbol_file **file,
                                            sj_error *error);
void sj_symbol_file_close(sj_symbol_file *file); /* NULL is allowed */

/* sj_symbol_file_build_id borrows the build-id. */
const uint8_t *sj_symbol_file_build_id(const sj_symbol_file *file, size_t *size);

/* sj_symbol_file_read visits all that the file holds: symbols first, then DWARF if there is any.
 * Returns what the visitor returned. */
SJ_MUST_CHECK sj_status sj_symbol_file_read(sj_symbol_file *file, const sj_symbol_visitor *visitor);

/* sj_symbol_file_has_lines returns whether the file holds DWARF. */
bool sj_symbol_file_has_lines(const sj_symbol_file *file);

/* sj_symbol_file_line gives where the function at `address` is declared; `*path` is borrowed from
 * the file, as the compiler named it. Reads only the DWARF of its compilation unit. SJ_ENOTFOUND:
 * the file has no DWARF, or that does not tell. */
SJ_MUST_CHECK sj_status sj_symbol_file_line(sj_symbol_file *file, uint64_t address,
                                            const char **path, int *line);

#endif
