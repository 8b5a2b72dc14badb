/* Maps each function of a module to its source file, from symbols and DWARF of the module and of
 * its separate debug file. A map is immutable; any thread may read it. */
#ifndef SJ_AGENT_OBJFILE_SOURCE_MAP_H
#define SJ_AGENT_OBJFILE_SOURCE_MAP_H

#include "proto/base/status.h"

#include <stdint.h>

typedef struct sj_source_map sj_source_map;

/* Reads the module at `path`. The map is empty if the file cannot be read, or does not have symbols
 * or DWARF. Blocks while it reads all of the DWARF. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_source_map_new(const char *path, sj_source_map **map);
void sj_source_map_free(sj_source_map *map); /* NULL is allowed */

/* Returns the source file of the function that begins at `offset`, or NULL. The map owns the
 * text. */
const char *sj_source_map_find(const sj_source_map *map, uint64_t offset);

#endif
