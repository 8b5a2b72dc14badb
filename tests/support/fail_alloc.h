/* Failing allocations. A program that is linked with this can make the n-th allocation of a thread
 * fail. Allocations by libraries count, too. */
#ifndef SJ_TESTS_SUPPORT_FAIL_ALLOC_H
#define SJ_TESTS_SUPPORT_FAIL_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* Makes one allocation of this thread fail: the n-th from now on, counted from 0. */
void fail_alloc_at(uint64_t n);

/* Makes the n-th allocation of this thread from now on fail, and all later ones. */
void fail_alloc_from(uint64_t n);

/* Ends the failures. True if an allocation failed. */
bool fail_alloc_stop(void);

#endif
