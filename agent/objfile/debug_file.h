/* Finds and opens debug information that was split from a module: separate debug files and
 * MiniDebugInfo. */
#ifndef SJ_AGENT_OBJFILE_DEBUG_FILE_H
#define SJ_AGENT_OBJFILE_DEBUG_FILE_H

#include "agent/objfile/elf_view.h"

#include <stddef.h>

/* Finds the separate debug file of a module. Searches by build-id under `debug_root`/.build-id
 * first. Then searches for the name in .gnu_debuglink: beside the module, in .debug beside it, and
 * under `debug_root`. A file matches if its build-id is the module's. If one of the two has no
 * build-id, the file's checksum must be that in the debug link. Writes the file's name to `path`
 * and opens the file in `*debug`; close it with sj_elf_close. Returns SJ_ENOTFOUND if no file
 * matches, which is usual. */
SJ_MUST_CHECK sj_status sj_debug_file_find(const sj_elf *module, const char *module_path,
                                           const char *debug_root, sj_elf *debug, char *path,
                                           size_t path_bytes);

/* Unpacks .gnu_debugdata (xz) and opens it in `*debug`; close it with sj_elf_close. Returns
 * SJ_ENOTFOUND if the module does not have that section. Returns SJ_ECORRUPT if it is damaged or
 * larger than 256 MiB. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_mini_debug_open(const sj_elf *module, sj_elf *debug);

#endif
