/* Reads the names, addresses and sizes of global data from a map file. */
#ifndef SJ_AGENT_OBJFILE_MAP_GLOBALS_H
#define SJ_AGENT_OBJFILE_MAP_GLOBALS_H

#include "agent/objfile/symbols.h"

typedef struct sj_map_globals {
    /* In ascending order of address. If the map does not give a size, the symbol extends to the
     * next symbol or to the end of its section. */
    sj_symbols symbols;
    char *names; /* memory that the symbols borrow from */
} sj_map_globals;

/* Reads a map file (map_file.h). Keeps the symbols that lie in loaded sections of the program
 * without code or thread-local data. Does not check that the map belongs to the program; the
 * planner does. Returns SJ_ENOTFOUND, SJ_ECORRUPT, SJ_ENOMEM, or an error of sj_elf_open. */
SJ_MUST_CHECK sj_status sj_map_globals_read(const char *program, const char *map_file,
                                            sj_map_globals *globals, sj_error *error);
void sj_map_globals_deinit(sj_map_globals *globals); /* a zeroed structure is allowed */

#endif
