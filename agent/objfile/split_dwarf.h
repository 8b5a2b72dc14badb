/* Reads units of split debug data from a package, with libdw. Used for units whose .dwo files are
 * missing. */
#ifndef SJ_AGENT_OBJFILE_SPLIT_DWARF_H
#define SJ_AGENT_OBJFILE_SPLIT_DWARF_H

#include "agent/objfile/split_package.h"

#include <elfutils/libdw.h>

/* Data about a split unit from its skeleton unit, which is in the program. */
typedef struct sj_split_skeleton {
    uint64_t id;
    uint64_t base_address;
    uint64_t addresses; /* offset of the unit's addresses in .debug_addr */
    uint64_t ranges;    /* offset of the unit's ranges in .debug_ranges (DWARF 4) */
    bool is_gnu;        /* the GNU format of DWARF 4 */
} sj_split_skeleton;

typedef struct sj_split_dwarf sj_split_dwarf;

/* Reads a skeleton unit. Members that it lacks are 0. */
sj_split_skeleton sj_split_skeleton_of(Dwarf_CU *unit);

/* Prepares to read the split units of `count` skeletons of the program `elf` from the package.
 * Borrows the package until sj_split_dwarf_free. Uses the program and the skeletons only during the
 * call. Returns SJ_EIO or SJ_ENOMEM, or SJ_ECORRUPT if libdw cannot read the rewritten
 * skeletons. */
SJ_MUST_CHECK sj_status sj_split_dwarf_new(sj_split_package *package, Elf *elf,
                                           const sj_split_skeleton *skeletons, size_t count,
                                           sj_split_dwarf **dwarf);
void sj_split_dwarf_free(sj_split_dwarf *dwarf); /* NULL is allowed */

/* Advances to the next skeleton and reads its split unit, which stays valid until `dwarf` is freed.
 * Returns SJ_ECLOSED after the last skeleton. Returns SJ_EIO or an error of
 * sj_split_package_extract if a unit cannot be read. The next call then reads the next unit. */
SJ_MUST_CHECK sj_status sj_split_dwarf_next(sj_split_dwarf *dwarf, Dwarf_Die *unit);

#endif
