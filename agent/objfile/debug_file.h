/* Symbols that were split from a module: separate debug files and MiniDebugInfo. */
#ifndef SJ_AGENT_OBJFILE_DEBUG_FILE_H
#define SJ_AGENT_OBJFILE_DEBUG_FILE_H

#include "agent/objfile/elf_view.h"

#include <stddef.h>

/* sj_debug_file_find looks for a module's separate debug file: by build-id under
 * `debug_root`/.build-id, then by .gnu_debuglink beside the module, in .debug beside it, and under
 * `debug_root`. The file is opened in `*debug` (close it) when it fits: same build-id, or the
 * debug link's checksum. `path` gets its path. SJ_ENOTFOUND is usual. */
SJ_MUST_CHECK sj_status sj_debug_file_find(const sj_elf *module, const char *module_path,
                                           const char *debug_root, sj_elf *debug, char *path,
                                           size_t path_bytes);

/* sj_mini_debug_open unpacks .gnu_debugdata (xz, at most 256 MiB) in `*debug`; close it.
 * SJ_ENOTFOUND when the module has none, SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_mini_debug_open(const sj_elf *module, sj_elf *debug);

#endif
