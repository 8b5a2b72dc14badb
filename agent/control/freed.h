/* The functions of a process that were hooked and have been set free: calls of them that were open
 * at that moment have no exit any more, which whoever pairs entries and exits has to know, also
 * when they are hooked again before it looks; so have calls whose entry was under way and is told
 * later, as long as they stay free. Whoever changes functions tells this while the program is still
 * stopped for it: records made after the change are then never read without it.
 *
 * One thread at a time changes it (the governor's, or for a change of the policy, while the
 * governor rests, the one that makes it); any thread asks. */
#ifndef SJ_AGENT_CONTROL_FREED_H
#define SJ_AGENT_CONTROL_FREED_H

#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_FREED_FUNCTIONS = 1 << 22 }; /* ids from here on are never in it */

typedef struct sj_freed sj_freed;

/* Those that were set free after the change number `seen`. */
typedef struct sj_freed_since {
    const sj_freed *freed;
    uint32_t seen;
} sj_freed_since;

SJ_MUST_CHECK sj_status sj_freed_new(sj_freed **freed); /* SJ_ENOMEM */

/* sj_freed_share returns `freed`, for one more owner; sj_freed_release is for each of them, the
 * last one frees it. Any thread. `freed` of the latter may be NULL. */
sj_freed *sj_freed_share(sj_freed *freed);
void sj_freed_release(sj_freed *freed);

/* sj_freed_add notes functions that may be free from `ticks` on. */
void sj_freed_add(sj_freed *freed, const uint32_t *functions, size_t count, uint64_t ticks);

/* sj_freed_remove notes functions that are hooked again, or may not be free. */
void sj_freed_remove(sj_freed *freed, const uint32_t *functions, size_t count);

/* sj_freed_follow notes that the calls that are told as of `function` are of `hooked`. */
void sj_freed_follow(sj_freed *freed, uint32_t function, uint32_t hooked);

/* sj_freed_changes returns how often functions were set free: the number of the last change. The
 * first is 1. */
uint32_t sj_freed_changes(const sj_freed *freed);

/* sj_freed_time returns when a change was; for an old one perhaps the time of a later one. */
uint64_t sj_freed_time(const sj_freed *freed, uint32_t change);

/* sj_freed_changes_until returns the number of the last change not later than `ticks`. */
uint32_t sj_freed_changes_until(const sj_freed *freed, uint64_t ticks);

/* sj_freed_has tells whether a function was set free since; `since` is a sj_freed_since. */
bool sj_freed_has(void *since, uint32_t function);

/* sj_freed_is_free tells whether a function has been free since the change of this number, or an
 * earlier one. */
bool sj_freed_is_free(const sj_freed *freed, uint32_t function, uint32_t change);

#endif
