/* Initialisation: has the loader call the agent first of all when it initialises a module that it
 * is just mapping. */
#ifndef SJ_AGENT_HOOKS_INITIALISATION_H
#define SJ_AGENT_HOOKS_INITIALISATION_H

#include "agent/hooks/dispatch.h"
#include "agent/hooks/dynamic_view.h"

/* Zeroed: nothing is deferred. */
typedef struct sj_initialisation {
    uint64_t place; /* the word of the dynamic section that is changed; 0: none */
    uint64_t word;  /* what it held */
    uint64_t count; /* entries of the array that it leads to a copy of; 0: it is a function's */
    uint8_t *room;  /* mapped: the stub's page, then the copy; NULL: none */
    uint64_t room_bytes;
    sj_dispatch_record record; /* leads from the stub to the true initialisation */
} sj_initialisation;

/* sj_initialisation_defer changes the dynamic section of a module that is not relocated yet, so
 * that sj_modules_on_initialisation is called when it is. False, and nothing is changed: the module
 * initialises nothing, its dynamic section is read-only, or there is no memory. */
bool sj_initialisation_defer(sj_initialisation *init, const sj_dynamic_view *view);

/* sj_initialisation_begin puts back what was changed; the module is relocated. What is called on
 * the way stays until sj_initialisation_deinit. */
void sj_initialisation_begin(sj_initialisation *init, const sj_dynamic_view *view);
void sj_initialisation_deinit(sj_initialisation *init);

#endif
