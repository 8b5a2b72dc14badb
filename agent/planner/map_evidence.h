/* Is a map file that of this build? What the file itself says of its functions decides: its unwind
 * tables, the addresses of names that it exports, and, where there is neither, the instruction that
 * stands before each function. */
#ifndef SJ_AGENT_PLANNER_MAP_EVIDENCE_H
#define SJ_AGENT_PLANNER_MAP_EVIDENCE_H

#include "agent/planner/module.h"

/* What a map file says: its symbols, whose names lie in a copy of its bytes. */
typedef struct sj_map_symbols {
    const char *path;
    sj_slice bytes;         /* of the file */
    const char *names;      /* the copy that the names point into */
    const sj_symbol *items; /* in the order of the file */
    size_t count;
} sj_map_symbols;

/* sj_map_evidence_check compares them with a module whose text, unwind tables and own symbols (the
 * first `own_count` of module->symbols, before they are sorted) are read. SJ_EINVAL: more than one
 * in fifty contradict it; the error names the first line that does. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_map_evidence_check(const sj_module *module, size_t own_count,
                                              const sj_map_symbols *map, sj_error *error);

#endif
