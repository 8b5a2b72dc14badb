/* Growing arrays: the one way in which lists outside of the traced program get their room. */
#ifndef SJ_PROTO_BASE_ARRAY_H
#define SJ_PROTO_BASE_ARRAY_H

#include "proto/base/status.h"

#include <stddef.h>

/* sj_array_reserve makes room for `count` + `more` elements of `element_bytes` in the array that
 * `items` (the address of a pointer from malloc, or to NULL) leads to, whose room is `*capacity`.
 * New room is zeroed, and doubles at least. SJ_ENOMEM, SJ_ELIMIT past 2^32 elements; the array is
 * unchanged then. One thread. */
SJ_MUST_CHECK sj_status sj_array_reserve(void *items, size_t *capacity, size_t count, size_t more,
                                         size_t element_bytes);

#endif
