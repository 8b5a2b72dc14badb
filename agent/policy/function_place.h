/* Function place: names a function by where it lies, as "MODULE+0xOFFSET". Functions without a name
 * can be selected only so. "MODULE+0xFROM-0xTO" names all functions that begin in that range, the
 * last offset included. "@BUILD-ID" at the end confines a place to one build of the module. */
#ifndef SJ_AGENT_POLICY_FUNCTION_PLACE_H
#define SJ_AGENT_POLICY_FUNCTION_PLACE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SJ_FUNCTION_PLACE_BYTES = 256, /* capacity of a pattern of modules, and of a build-id in hex */
    SJ_FUNCTION_KEY_BYTES = 4608   /* capacity of a function's key */
};

typedef struct sj_function_place {
    char module[SJ_FUNCTION_PLACE_BYTES]; /* glob of the module's file name */
    uint64_t low;
    uint64_t high;                          /* equals `low`: one function */
    char build_id[SJ_FUNCTION_PLACE_BYTES]; /* its first digits in hex; "": all builds */
} sj_function_place;

/* True if a pattern has the form of a place: "+0x" stands in it. */
bool sj_function_place_is(const char *text);

/* Parses a place of at most SJ_FUNCTION_PLACE_BYTES - 1 bytes. Returns SJ_EINVAL with the reason.
 */
SJ_MUST_CHECK sj_status sj_function_place_parse(const char *text, sj_function_place *place,
                                                sj_error *error);

/* A module whose functions get keys. A key is the text that patterns of functions are compared
 * with: the symbol and, after SJ_FUNCTION_KEY_PLACE, the place of the function. */
typedef struct sj_function_keys {
    char module[SJ_FUNCTION_PLACE_BYTES]; /* file name; "": the keys have no places */
    char build_id[SJ_FUNCTION_PLACE_BYTES];
    char key[SJ_FUNCTION_KEY_BYTES];
} sj_function_keys;

#define SJ_FUNCTION_KEY_PLACE '\x1f'

/* Prepares the keys of a module's functions. Modules with "!" or ":" in their file name have no
 * places: these characters mark calls into libraries and methods. */
void sj_function_keys_init(sj_function_keys *keys, const char *path, const uint8_t *build_id,
                           size_t build_id_bytes);

/* Returns the key of the function at `offset`; valid until the next call. Returns `symbol` if the
 * key does not fit, and for methods of Objective-C: their names are parsed. */
const char *sj_function_key(sj_function_keys *keys, const char *symbol, uint64_t offset);

/* True if `key` is of a function at the place. */
bool sj_function_place_has(const sj_function_place *place, const char *key);

#endif
