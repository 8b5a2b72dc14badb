/* Checks whether a map file belongs to this build. The module's own data about functions decide:
 * its unwind tables and the addresses of names that it exports. Without either, the instruction
 * before each function decides. */
#ifndef SJ_AGENT_PLANNER_MAP_EVIDENCE_H
#define SJ_AGENT_PLANNER_MAP_EVIDENCE_H

#include "agent/planner/module.h"

/* The symbols of a map file. Their names point into a copy of its bytes. */
typedef struct sj_map_symbols {
    const char *path;
    sj_slice bytes;         /* bytes of the file */
    const char *names;      /* the copy that the names point into */
    const sj_symbol *items; /* in the order of the file */
    size_t count;
} sj_map_symbols;

/* Compares the map's symbols with a module whose text, unwind tables and own symbols are loaded.
 * The own symbols are the first `own_count` of module->symbols, before they are sorted. Returns
 * SJ_EINVAL if more than one symbol in fifty contradicts the map; the error names the first such
 * line. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_map_evidence_check(const sj_module *module, size_t own_count,
                                              const sj_map_symbols *map, sj_error *error);

#endif
