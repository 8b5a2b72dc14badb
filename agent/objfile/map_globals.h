/* Globals of a map file: the names of data that it gives, with address and length. */
#ifndef SJ_AGENT_OBJFILE_MAP_GLOBALS_H
#define SJ_AGENT_OBJFILE_MAP_GLOBALS_H

#include "agent/objfile/symbols.h"

typedef struct sj_map_globals {
    sj_symbols symbols; /* by rising address; sizes that the map does not give reach to the next
                           one, or to the end of the section */
    char *names;        /* that they borrow from */
} sj_map_globals;

/* sj_map_globals_read keeps, of the names of a map file (map_file.h), those of data of a program:
 * in a section that is loaded and holds no code. Whether the map is this program's is the
 * planner's to decide. SJ_ENOTFOUND, SJ_ECORRUPT, SJ_ENOMEM, and what sj_elf_open returns. */
SJ_MUST_CHECK sj_status sj_map_globals_read(const char *program, const char *map_file,
                                            sj_map_globals *globals, sj_error *error);
void sj_map_globals_deinit(sj_map_globals *globals); /* safe on a zeroed one */

#endif
