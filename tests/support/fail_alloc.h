/* Failing allocations: a program that is linked with it can make the n-th one of a thread fail,
 * those of libraries included. */
#ifndef SJ_TESTS_SUPPORT_FAIL_ALLOC_H
#define SJ_TESTS_SUPPORT_FAIL_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* fail_alloc_at makes the n-th allocation of this thread from now on fail, once (from 0). */
void fail_alloc_at(uint64_t n);

/* Makes the n-th allocation of this thread from now on, and all that follow, fail. */
void fail_alloc_from(uint64_t n);

/* fail_alloc_stop ends that and returns whether one failed. */
bool fail_alloc_stop(void);

#endif
