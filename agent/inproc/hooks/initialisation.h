/* Initialisation: makes the loader call the agent before the initialisers of a module that it is
 * just mapping. */
#ifndef SJ_AGENT_INPROC_HOOKS_INITIALISATION_H
#define SJ_AGENT_INPROC_HOOKS_INITIALISATION_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/dynamic_view.h"

/* Zeroed: nothing is deferred. */
typedef struct sj_initialisation {
    uint64_t place; /* the word of the dynamic section that is changed; 0: none */
    uint64_t word;  /* what it held */
    uint64_t count; /* entries of the copied array; 0: the word is a function's */
    uint8_t *room;  /* mapped: the stub's page, then the copy; NULL: none */
    uint64_t room_bytes;
    sj_dispatch_record record; /* enters the module's own initialisation */
} sj_initialisation;

/* sj_initialisation_defer changes the dynamic section of a module that is not relocated yet, so
 * that `entry` (core/arch.h: sj_arch_init_entry) is called when it is. False, and nothing is
 * changed: the module initialises nothing, its dynamic section is read-only, or there is no memory.
 */
bool sj_initialisation_defer(sj_initialisation *init, const sj_dynamic_view *view,
                             void (*entry)(void));

/* sj_initialisation_begin restores the dynamic section of the relocated module. The stub stays
 * until sj_initialisation_deinit. Returns true also if nothing is deferred. Returns false, and
 * changes nothing, if the section does not lead to the stub: the module was unloaded, and another
 * one lies there. Neither allocates nor blocks. Under the loader's lock. */
bool sj_initialisation_begin(sj_initialisation *init, const sj_dynamic_view *view);
void sj_initialisation_deinit(sj_initialisation *init);

#endif
