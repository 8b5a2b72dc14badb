#include "agent/objfile/function_types.h"

#include <stdlib.h>
#include <string.h>

void sj_typed_function_free(sj_typed_function *function)
{
    for (size_t i = 0; function != NULL && i < function->count; i++) {
        sj_typed_value *value = &function->values[i];
        for (size_t j = 0; j < value->enumerator_count; j++) {
            free(value->enumerators[j].name);
        }
        free(value->enumerators);
        free(value->name);
        free(value->type);
    }
    free(function);
}

/* words_behind returns how many words are needed of where a place leads to, or of itself, as
 * SJ_PLACE_WORDS is told. */
static uint8_t words_behind(const sj_typed_function *function, uint8_t place)
{
    uint32_t most = 0;
    uint32_t base = 0;
    for (size_t i = 0; i < function->count; i++) {
        const sj_typed_value *value = &function->values[i];
        const uint32_t bytes = value->divided_by != 0 ? 16 : value->bytes;
        const uint32_t end = value->from_byte + bytes;
        if (value->place != place) {
            continue;
        }
        most = value->is_behind && end > most ? end : most;
        base = value->is_own     ? (uint32_t)SJ_PLACE_OWN_WORDS
               : value->is_given ? (uint32_t)SJ_PLACE_GIVEN_WORDS
                                 : base;
    }
    return (uint8_t)(base + (most + 7) / 8);
}

/* list_value adds the place of a value; `limit` is that of texts, which has no place yet. */
static size_t list_value(const sj_typed_function *function, const sj_typed_value *value,
                         uint8_t *limit, uint8_t places[SJ_PLACES_PER_FUNCTION], size_t used)
{
    const bool has_limit =
        !value->is_behind && *limit != 0 && sj_value_kind_of(value->descriptor) == SJ_VALUE_STRING;
    const bool has_size = value->is_behind || value->is_given;
    if (used + (has_limit ? 1 : 0) + (has_size ? 3 : 1) > SJ_PLACES_PER_FUNCTION) {
        return used;
    }
    if (has_limit) {
        places[used++] = *limit;
        *limit = 0;
    }
    if (has_size) {
        places[used++] = SJ_PLACE_WORDS;
        places[used++] = words_behind(function, value->place);
    }
    places[used] = value->place;
    return used + 1;
}

void sj_typed_function_list(const sj_typed_function *function, uint8_t limit,
                            uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    uint8_t seen[SJ_PLACES_PER_FUNCTION] = {0};
    size_t seen_count = 0;
    size_t used = 0;
    memset(places, 0, SJ_PLACES_PER_FUNCTION);
    for (size_t i = 0; i < function->count; i++) {
        const sj_typed_value *value = &function->values[i];
        if (value->place == 0 || memchr(seen, value->place, seen_count) != NULL) {
            continue;
        }
        seen[seen_count++] = value->place;
        used = list_value(function, value, &limit, places, used);
    }
}

static bool is_listed(const uint8_t places[SJ_PLACES_PER_FUNCTION], uint8_t place)
{
    size_t at = 0;
    while (at < SJ_PLACES_PER_FUNCTION && places[at] != place) {
        at += places[at] == SJ_PLACE_WORDS ? 2 : 1;
    }
    return at < SJ_PLACES_PER_FUNCTION;
}

void sj_typed_function_fit(sj_typed_function *function)
{
    uint8_t places[SJ_PLACES_PER_FUNCTION];
    sj_typed_function_list(function, 0, places);
    for (size_t i = 0; i < function->count; i++) {
        sj_typed_value *value = &function->values[i];
        if (value->place != 0 && !is_listed(places, value->place)) {
            value->place = 0;
            value->descriptor = sj_value_descriptor(sj_value_position(value->descriptor), 0);
            value->state = SJ_TYPED_UNSUPPORTED;
        }
    }
}
