/* Reads which file a loaded module comes from. */
#ifndef SJ_AGENT_INPROC_CORE_MODULE_FILE_H
#define SJ_AGENT_INPROC_CORE_MODULE_FILE_H

#include "agent/abi/link.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_MODULE_PATH_BYTES = 4096 };

/* Copies the module's build-id from its mapped notes to `module`. Changes nothing if it has
 * none. */
void sj_module_read_build_id(const struct dl_phdr_info *info, sj_link_module *module);

/* Writes the module's absolute path to the SJ_MODULE_PATH_BYTES bytes of `path`, without a NUL
 * byte. Returns its length, or 0 if the module has no file or its path is too long. `name` is the
 * loader's name of the module. `is_main` is true for the program itself. Async-signal-safe. */
uint32_t sj_module_read_path(const char *name, bool is_main, char *path);

#endif
