/* Makes the loader call the agent before the initialisers of a module that the loader is
 * mapping. */
#ifndef SJ_AGENT_INPROC_HOOKS_INITIALISATION_H
#define SJ_AGENT_INPROC_HOOKS_INITIALISATION_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/dynamic_view.h"

/* All members are 0 if nothing is deferred. */
typedef struct sj_initialisation {
    uint64_t place;  /* address of the changed word in the dynamic section; 0: none */
    uint64_t word;   /* previous content of that word */
    uint64_t count;  /* entries of the copied array; 0: the word is a function's address */
    uint8_t *region; /* mapping: the stub's page, then the copy; NULL: none */
    uint64_t region_bytes;
    sj_dispatch_record record; /* its target is the module's own initialiser */
} sj_initialisation;

/* Changes the dynamic section of a module that is not relocated yet. The loader then calls `entry`
 * (sj_arch_init_entry in core/arch.h) when it initialises the module. Returns false, and changes
 * nothing, in three cases:
 *   * the module has no initialisers
 *   * its dynamic section is read-only
 *   * the system is out of memory */
bool sj_initialisation_defer(sj_initialisation *init, const sj_dynamic_view *view,
                             void (*entry)(void));

/* Restores the dynamic section of the relocated module and sets init->record.target. The stub stays
 * until sj_initialisation_deinit. Returns true also if nothing is deferred. Returns false, and
 * leaves the section unchanged, if the section does not lead to the stub. Then the module was
 * unloaded, and another module is mapped at its place. Does not allocate or block. The caller holds
 * the loader's lock. */
bool sj_initialisation_begin(sj_initialisation *init, const sj_dynamic_view *view);

/* Unmaps the stub and sets all members to 0. */
void sj_initialisation_deinit(sj_initialisation *init);

#endif
