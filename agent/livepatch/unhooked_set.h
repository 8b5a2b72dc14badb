/* The functions of a process that were hooked and have been unhooked: calls of them that were open
 * at that moment have no exit any more, which the assembler has to know, also
 * when they are hooked again before it looks; so have calls whose entry was under way and is
 * reported later, as long as they stay free. The code that changes functions records this while the
 * program is still stopped for it: records made after the change are then never read without it.
 *
 * One thread at a time changes it (the governor's, or for a change of the policy, while the
 * governor rests, the one that makes it); any thread asks. */
#ifndef SJ_AGENT_LIVEPATCH_UNHOOKED_SET_H
#define SJ_AGENT_LIVEPATCH_UNHOOKED_SET_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_UNHOOKED_SET_FUNCTIONS = 1 << 22 }; /* ids from here on are never in it */

typedef struct sj_unhooked_set sj_unhooked_set;

/* Those that were unhooked after the change number `seen`. */
typedef struct sj_unhooked_set_since {
    const sj_unhooked_set *freed;
    uint32_t seen;
} sj_unhooked_set_since;

SJ_MUST_CHECK sj_status sj_unhooked_set_new(sj_unhooked_set **freed); /* SJ_ENOMEM */

/* sj_unhooked_set_share returns `freed`, for one more owner; sj_unhooked_set_release is for each of
 * them, the last one frees it. Any thread. `freed` of the latter may be NULL. */
sj_unhooked_set *sj_unhooked_set_share(sj_unhooked_set *freed);
void sj_unhooked_set_release(sj_unhooked_set *freed);

/* sj_unhooked_set_add notes functions that may be free from `ticks` on. */
void sj_unhooked_set_add(sj_unhooked_set *freed, const uint32_t *functions, size_t count,
                         uint64_t ticks);

/* sj_unhooked_set_remove notes functions that are hooked again, or may not be free. */
void sj_unhooked_set_remove(sj_unhooked_set *freed, const uint32_t *functions, size_t count);

/* sj_unhooked_set_follow notes that the calls that are reported as of `function` are of `hooked`.
 */
void sj_unhooked_set_follow(sj_unhooked_set *freed, uint32_t function, uint32_t hooked);

/* sj_unhooked_set_changes returns how often functions were unhooked: the number of the last change.
 * The first is 1. */
uint32_t sj_unhooked_set_changes(const sj_unhooked_set *freed);

/* sj_unhooked_set_time returns when a change was; for an old one perhaps the time of a later one.
 */
uint64_t sj_unhooked_set_time(const sj_unhooked_set *freed, uint32_t change);

/* sj_unhooked_set_changes_until returns the number of the last change not later than `ticks`. */
uint32_t sj_unhooked_set_changes_until(const sj_unhooked_set *freed, uint64_t ticks);

/* sj_unhooked_set_has returns whether a function was unhooked since; `since` is a
 * sj_unhooked_set_since. */
bool sj_unhooked_set_has(void *since, uint32_t function);

/* sj_unhooked_set_is_free returns whether a function has been free since the change of this number,
 * or an earlier one. */
bool sj_unhooked_set_is_free(const sj_unhooked_set *freed, uint32_t function, uint32_t change);

/* sj_unhooked_set_was_changed returns whether a function was ever unhooked; `freed` is an
 * sj_unhooked_set. */
bool sj_unhooked_set_was_changed(void *freed, uint32_t function);

#endif
