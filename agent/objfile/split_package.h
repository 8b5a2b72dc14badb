/* Reads a package of split debug data (.dwp) and extracts single units as .dwo files. libdw 0.188
 * reads .dwo files, but not packages. */
#ifndef SJ_AGENT_OBJFILE_SPLIT_PACKAGE_H
#define SJ_AGENT_OBJFILE_SPLIT_PACKAGE_H

#include "agent/objfile/split_index.h"
#include "proto/base/byte_buffer.h"

#include <libelf.h>

typedef struct sj_split_package sj_split_package;

/* Maps the package at `path` and reads its index of units. Returns SJ_ENOTFOUND if the file cannot
 * be opened; else SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_split_package_open(const char *path, sj_split_package **package);
void sj_split_package_close(sj_split_package *package); /* NULL is allowed */

/* True if the package has the compilation unit of that id. */
bool sj_split_package_has(const sj_split_package *package, uint64_t id);

/* Extracts a compilation unit and the type units that it refers to. Writes them as a .dwo file to
 * an empty buffer.
 *
 * Returns SJ_ENOTFOUND if the package lacks the unit. Returns SJ_ECORRUPT if parts exceed their
 * sections or have an unknown format. Returns SJ_ELIMIT if all extracted and inflated bytes of this
 * package would exceed 1 GiB. Returns SJ_EVERSION if the index of type units has an unknown
 * version. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_split_package_extract(sj_split_package *package, uint64_t id,
                                                 sj_byte_buffer *file);

/* Returns the bytes of the section of that name, decompressed if necessary. `elf` owns them.
 * Returns an empty slice if the section is missing or cannot be read. */
sj_slice sj_elf_debug_section(Elf *elf, const char *name);

#endif
