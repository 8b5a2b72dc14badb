/* The source map: in which source file each function of a module is written, as far as its symbols
 * and DWARF say, or those of its separate debug file. Immutable after its making; any thread. */
#ifndef SJ_AGENT_OBJFILE_SOURCE_MAP_H
#define SJ_AGENT_OBJFILE_SOURCE_MAP_H

#include "proto/base/status.h"

#include <stdint.h>

typedef struct sj_source_map sj_source_map;

/* sj_source_map_new reads the module at `path`; a file without them gives an empty map.
 * Blocking: reads all of the DWARF. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_source_map_new(const char *path, sj_source_map **map);
void sj_source_map_free(sj_source_map *map); /* NULL is allowed */

/* sj_source_map_find returns the source file of the function that begins at `offset`, or NULL.
 * Borrowed. */
const char *sj_source_map_find(const sj_source_map *map, uint64_t offset);

#endif
