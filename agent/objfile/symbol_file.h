/* Reads names, source lines and inlined functions from an ELF file or its separate debug file. */
#ifndef SJ_AGENT_OBJFILE_SYMBOL_FILE_H
#define SJ_AGENT_OBJFILE_SYMBOL_FILE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_BUILD_ID_MAX_BYTES = 64 };

typedef struct sj_symbol_file sj_symbol_file;

/* Callbacks for the contents of a file; each may be NULL. A result other than SJ_OK ends the
 * reading. Callbacks borrow the texts. Addresses are those in the file, as in the column
 * functions.offset. */
typedef struct sj_symbol_visitor {
    void *context;
    sj_status (*symbol)(void *context, uint64_t address, const char *symbol);
    sj_status (*line)(void *context, uint64_t address, const char *file, int line);
    /* Reports the source file that the symbol table names for a local function. */
    sj_status (*source)(void *context, uint64_t address, const char *file);
    /* Reports an inlined call. `function` is the address of the function that contains the inlined
     * code. `depth` is 1 for code that is inlined directly into that function. */
    sj_status (*inlined)(void *context, uint64_t function, int depth, const char *name,
                         const char *call_file, int call_line);
} sj_symbol_visitor;

/* Opens a file and finds its build-id. Returns SJ_ENOTFOUND if the file cannot be opened. Returns
 * SJ_EUNSUPPORTED if it is not an ELF file or does not have a build-id. Returns SJ_ENOMEM if out of
 * memory. Close with sj_symbol_file_close. */
SJ_MUST_CHECK sj_status sj_symbol_file_open(const char *path, sj_symbol_file **file,
                                            sj_error *error);
void sj_symbol_file_close(sj_symbol_file *file); /* NULL is allowed */

/* Returns the build-id, which `file` owns. */
const uint8_t *sj_symbol_file_build_id(const sj_symbol_file *file, size_t *size);

/* Calls the visitor for the symbols of the file, then for the functions in its DWARF. Returns the
 * first error of the visitor. Blocks while it reads all of the DWARF. */
SJ_MUST_CHECK sj_status sj_symbol_file_read(sj_symbol_file *file, const sj_symbol_visitor *visitor);

/* True if the file has DWARF. */
bool sj_symbol_file_has_lines(const sj_symbol_file *file);

/* Finds the source file and line where the function at `address` is declared. `*path` is as the
 * compiler wrote it; `file` owns it. Returns SJ_ENOTFOUND if the file has no DWARF, or if the DWARF
 * does not name them. */
SJ_MUST_CHECK sj_status sj_symbol_file_line(sj_symbol_file *file, uint64_t address,
                                            const char **path, int *line);

#endif
