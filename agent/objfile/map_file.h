/* Map files: function names and addresses of programs whose symbols were taken away.
 * Understood: GNU ld `-Map`, lld `-Map`, and `nm -S` listings. */
#ifndef SJ_AGENT_OBJFILE_MAP_FILE_H
#define SJ_AGENT_OBJFILE_MAP_FILE_H

#include "agent/objfile/symbols.h"

/* sj_map_parse appends the symbols that a map file names. Names are NUL-terminated inside `*names`,
 * a copy that the caller frees after the symbols. GNU ld's maps give no lengths: size 0, to be
 * bounded by unwind tables. SJ_ENOMEM, SJ_ECORRUPT when no line was understood. */
SJ_MUST_CHECK sj_status sj_map_parse(sj_slice bytes, char **names, sj_symbols *symbols);

#endif
