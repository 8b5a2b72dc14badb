/* Growing arrays, for lists outside the traced program. */
#ifndef SJ_PROTO_BASE_ARRAY_H
#define SJ_PROTO_BASE_ARRAY_H

#include "proto/base/status.h"

#include <stddef.h>

/* Makes sure that an array has space for `more` elements after its first `count`. `items` is the
 * address of the array pointer, which comes from malloc or is NULL. `*capacity` is the number of
 * elements that fit; the function updates it. A growing array at least doubles, and its new part is
 * zeroed. Returns SJ_ENOMEM, or SJ_ELIMIT beyond 2^32 elements; then the array is unchanged. Not
 * thread-safe. */
SJ_MUST_CHECK sj_status sj_array_reserve(void *items, size_t *capacity, size_t count, size_t more,
                                         size_t element_bytes);

#endif
