/* Checks whether a map file belongs to this build of a module. Compares it with the module's unwind
 * tables and with the addresses of its own symbols. If there are few of these, checks the bytes
 * before each function. */
#ifndef SJ_AGENT_PLANNER_MAP_EVIDENCE_H
#define SJ_AGENT_PLANNER_MAP_EVIDENCE_H

#include "agent/planner/module.h"

/* The symbols of a map file. Their names point into a copy of its bytes. */
typedef struct sj_map_symbols {
    const char *path;
    sj_slice bytes;         /* bytes of the file */
    const char *names;      /* a copy of the bytes, with names that end with NUL */
    const sj_symbol *items; /* in the order of the file */
    size_t count;
} sj_map_symbols;

/* Compares the map's symbols with a module whose text, unwind tables and own symbols are loaded.
 * The own symbols are the first `own_count` of module->symbols, before they are sorted. The error
 * names the first line that differs. Returns SJ_ENOMEM if out of memory. Returns SJ_EINVAL in these
 * cases:
 *   * the map has another place or size of .text
 *   * more than one symbol in fifty differs from the unwind tables
 *   * more than one of the module's own symbols in fifty has another address in the map
 *   * few symbols could be compared, and too few functions follow the end of another one */
SJ_MUST_CHECK sj_status sj_map_evidence_check(const sj_module *module, size_t own_count,
                                              const sj_map_symbols *map, sj_error *error);

#endif
