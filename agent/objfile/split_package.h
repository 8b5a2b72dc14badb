/* A package of split debug data (.dwp), and files of single units out of it, as .dwo files are:
 * libdw 0.188 reads those, not packages. */
#ifndef SJ_AGENT_OBJFILE_SPLIT_PACKAGE_H
#define SJ_AGENT_OBJFILE_SPLIT_PACKAGE_H

#include "agent/objfile/split_index.h"
#include "proto/base/byte_buffer.h"

#include <libelf.h>

typedef struct sj_split_package sj_split_package;

/* sj_split_package_open maps the package at `path` and reads which units it has. SJ_ENOTFOUND:
 * there is no such file; SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_split_package_open(const char *path, sj_split_package **package);
void sj_split_package_close(sj_split_package *package); /* NULL is allowed */

/* sj_split_package_has returns whether the package has the compilation unit of that id. */
bool sj_split_package_has(const sj_split_package *package, uint64_t id);

/* sj_split_package_extract writes an ELF file with that compilation unit and with the type units
 * that it leads to in an empty buffer. SJ_ENOTFOUND; SJ_ECORRUPT: parts do not lie in the file, or
 * do not follow their format; SJ_ELIMIT: more than 1 GiB would have been extracted of this package,
 * or inflated, by now; SJ_EVERSION: of its type units; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_split_package_extract(sj_split_package *package, uint64_t id,
                                                 sj_byte_buffer *file);

/* sj_elf_debug_section returns the bytes of the section of that name, decompressed if need be;
 * borrowed from `elf`. Empty: there are none. */
sj_slice sj_elf_debug_section(Elf *elf, const char *name);

#endif
