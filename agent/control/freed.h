/* The functions of a process that were hooked and have been set free: calls of them that were open
 * at that moment have no exit any more, which whoever pairs entries and exits has to know, also
 * when they are hooked again before it looks; so have calls whose entry was under way and is told
 * later, as long as they stay free.
 *
 * One thread at a time changes it (the governor's, or the drain's for a change of the policy while
 * the governor rests); any thread asks. */
#ifndef SJ_AGENT_CONTROL_FREED_H
#define SJ_AGENT_CONTROL_FREED_H

#include "proto/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_FREED_FUNCTIONS = 1 << 22 }; /* ids from here on are never in it */

typedef struct sj_freed {
    /* [SJ_FREED_FUNCTIONS]: twice the number of its last change, plus 1 while it is free; mapped
     * lazily */
    _Atomic uint32_t *changes_of;
    _Atomic uint32_t changes; /* how often functions were set free */
    _Atomic uint64_t ticks;   /* when they last were */
} sj_freed;

/* Those that were set free after the change number `seen`. */
typedef struct sj_freed_since {
    const sj_freed *freed;
    uint32_t seen;
} sj_freed_since;

SJ_MUST_CHECK sj_status sj_freed_init(sj_freed *freed); /* SJ_ENOMEM */
void sj_freed_deinit(sj_freed *freed);                  /* safe on a zeroed one */

/* sj_freed_add notes functions that are free from `ticks` on. */
void sj_freed_add(sj_freed *freed, const uint32_t *functions, size_t count, uint64_t ticks);

/* sj_freed_remove notes functions that are about to be hooked, or may not be free. */
void sj_freed_remove(sj_freed *freed, const uint32_t *functions, size_t count);

/* sj_freed_changes returns the number of the last change, and its time. */
uint32_t sj_freed_changes(const sj_freed *freed, uint64_t *ticks);

/* sj_freed_has tells whether a function was set free since; `since` is a sj_freed_since. */
bool sj_freed_has(void *since, uint32_t function);

/* sj_freed_is_free tells whether a function has been free since the change of this number, or an
 * earlier one. */
bool sj_freed_is_free(const sj_freed *freed, uint32_t function, uint32_t change);

#endif
