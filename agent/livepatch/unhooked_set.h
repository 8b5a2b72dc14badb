/* The functions of a process that were hooked and then unhooked. Calls that were open at that
 * moment have no exit record. The assembler has to know that, even if the functions are hooked
 * again before it checks. Calls whose entry is reported later do not have an exit record either, as
 * long as the functions stay unhooked. The change is recorded while the program is still stopped
 * for it, so that later records are never read without it.
 *
 * Only one thread at a time changes the set. It is the governor's thread or, while the governor is
 * suspended, the thread that changes the policy. Any thread may read it. */
#ifndef SJ_AGENT_LIVEPATCH_UNHOOKED_SET_H
#define SJ_AGENT_LIVEPATCH_UNHOOKED_SET_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_UNHOOKED_SET_FUNCTIONS = 1 << 22 }; /* Larger ids are never in the set. */

typedef struct sj_unhooked_set sj_unhooked_set;

/* Functions that were unhooked after the change number `seen`. */
typedef struct sj_unhooked_set_since {
    const sj_unhooked_set *freed;
    uint32_t seen;
} sj_unhooked_set_since;

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_unhooked_set_new(sj_unhooked_set **freed);

/* sj_unhooked_set_share returns `freed` for one more owner. Each owner calls
 * sj_unhooked_set_release; the last one frees it, and NULL is allowed. Thread-safe. */
sj_unhooked_set *sj_unhooked_set_share(sj_unhooked_set *freed);
void sj_unhooked_set_release(sj_unhooked_set *freed);

/* Records functions that may be unhooked from `ticks` on. */
void sj_unhooked_set_add(sj_unhooked_set *freed, const uint32_t *functions, size_t count,
                         uint64_t ticks);

/* Records functions that are hooked again, or that may still be hooked. */
void sj_unhooked_set_remove(sj_unhooked_set *freed, const uint32_t *functions, size_t count);

/* Records that `hooked` is the function that is hooked in place of `function`. The functions below
 * then look `hooked` up when they get `function`. */
void sj_unhooked_set_follow(sj_unhooked_set *freed, uint32_t function, uint32_t hooked);

/* Returns the number of the last change, that is, how often sj_unhooked_set_add was called. 0:
 * never. */
uint32_t sj_unhooked_set_changes(const sj_unhooked_set *freed);

/* Returns the time of a change. For an old change it may be the time of a later one. */
uint64_t sj_unhooked_set_time(const sj_unhooked_set *freed, uint32_t change);

/* Returns the number of the last change that is not later than `ticks`. */
uint32_t sj_unhooked_set_changes_until(const sj_unhooked_set *freed, uint64_t ticks);

/* True if a function was unhooked after the change number since->seen. `since` is an
 * sj_unhooked_set_since. */
bool sj_unhooked_set_has(void *since, uint32_t function);

/* True if a function is unhooked now, and was last unhooked by the change of this number or by an
 * earlier one. */
bool sj_unhooked_set_is_free(const sj_unhooked_set *freed, uint32_t function, uint32_t change);

/* True if a function was ever unhooked. `freed` is an sj_unhooked_set. */
bool sj_unhooked_set_was_changed(void *freed, uint32_t function);

#endif
