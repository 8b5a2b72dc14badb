/* Units of split debug data whose .dwo files are not there, read out of a package by libdw. */
#ifndef SJ_AGENT_OBJFILE_SPLIT_DWARF_H
#define SJ_AGENT_OBJFILE_SPLIT_DWARF_H

#include "agent/objfile/split_package.h"

#include <elfutils/libdw.h>

/* What a skeleton unit, in the program, says of its split unit. */
typedef struct sj_split_skeleton {
    uint64_t id;
    uint64_t base_address;
    uint64_t addresses; /* where the unit's begin in .debug_addr */
    uint64_t ranges;    /* likewise in .debug_ranges; DWARF 4 */
    bool is_gnu;        /* of DWARF 4 */
} sj_split_skeleton;

typedef struct sj_split_dwarf sj_split_dwarf;

/* sj_split_skeleton_of reads a skeleton unit. */
sj_split_skeleton sj_split_skeleton_of(Dwarf_CU *unit);

/* sj_split_dwarf_new prepares to read the split units of `count` skeletons of the program `elf`
 * out of the package, all of which are borrowed. SJ_EIO, SJ_ENOMEM; SJ_ECORRUPT: libdw does not
 * read what was made of the skeletons. */
SJ_MUST_CHECK sj_status sj_split_dwarf_new(sj_split_package *package, Elf *elf,
                                           const sj_split_skeleton *skeletons, size_t count,
                                           sj_split_dwarf **dwarf);
void sj_split_dwarf_free(sj_split_dwarf *dwarf); /* NULL is allowed */

/* sj_split_dwarf_next goes to the next skeleton and reads its split unit, which lives as long as
 * `dwarf`. SJ_ECLOSED: there are no more skeletons; else as sj_split_package_extract, or SJ_EIO,
 * and the next call reads the unit behind. */
SJ_MUST_CHECK sj_status sj_split_dwarf_next(sj_split_dwarf *dwarf, Dwarf_Die *unit);

#endif
