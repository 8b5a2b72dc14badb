/* Finds the place of a value in a JSON text. The parser, jansson, does not keep places. */
#ifndef SJ_AGENT_POLICY_JSON_PLACE_H
#define SJ_AGENT_POLICY_JSON_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* One step from a value to a value inside it. */
typedef struct sj_json_step {
    const char *key; /* key of an object; NULL: an array */
    size_t index;    /* index in an array */
} sj_json_step;

typedef struct sj_json_place {
    unsigned line; /* from 1 */
    unsigned column;
} sj_json_place;

/* Follows `steps` through the valid JSON `text` of `size` bytes. `want_key`: returns the place of
 * the last step's key, instead of its value. If a step fails, returns the place of the value
 * reached so far. Keys are compared as written. */
sj_json_place sj_json_find(const char *text, size_t size, const sj_json_step *steps, size_t count,
                           bool want_key);

#endif
