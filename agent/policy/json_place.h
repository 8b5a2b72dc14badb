/* Where a value stands in a JSON text: what jansson, which reads it, does not remember. */
#ifndef SJ_AGENT_POLICY_JSON_PLACE_H
#define SJ_AGENT_POLICY_JSON_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* One step from a value to one inside it. */
typedef struct sj_json_step {
    const char *key; /* of an object; NULL: an array */
    size_t index;    /* in an array */
} sj_json_step;

typedef struct sj_json_place {
    unsigned line; /* from 1 */
    unsigned column;
} sj_json_place;

/* sj_json_find follows `steps` through the valid JSON `text` of `size` bytes. `want_key`: the place
 * of the last step's key rather than of its value. Where a step leads nowhere, the place of the
 * value that was reached is given. Keys are compared as they are written. */
sj_json_place sj_json_find(const char *text, size_t size, const sj_json_step *steps, size_t count,
                           bool want_key);

#endif
