/* Reads map files: function names and addresses of programs that were stripped. Formats: `-Map` of
 * GNU ld, gold, lld and mold, and `nm -S` listings. */
#ifndef SJ_AGENT_OBJFILE_MAP_FILE_H
#define SJ_AGENT_OBJFILE_MAP_FILE_H

#include "agent/objfile/symbols.h"

/* Appends the symbols that a map file lists. Their names point into `*names`, which the caller
 * frees after the symbols. Maps of GNU ld do not give sizes: the size is 0, and the caller finds it
 * in unwind tables. Returns SJ_ENOMEM, or SJ_ECORRUPT if no line has a known format. */
SJ_MUST_CHECK sj_status sj_map_parse(sj_slice bytes, char **names, sj_symbols *symbols);

#endif
