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

/* Returns the parameter of SJ_PLACE_WORDS for a place: how many words to record, and whether from
 * the memory that the place points to or from the place itself. */
static uint8_t words_behind(const sj_typed_function *function, uint8_t place)
{
    uint32_t largest_end = 0;
    uint32_t base = 0;
    for (size_t i = 0; i < function->count; i++) {
        const sj_typed_value *value = &function->values[i];
        const uint32_t bytes = value->divided_by != 0 ? 16 : value->bytes;
        const uint32_t end = value->from_byte + bytes;
        if (value->place != place) {
            continue;
        }
        largest_end = value->is_behind && end > largest_end ? end : largest_end;
        base = value->is_own     ? (uint32_t)SJ_PLACE_OWN_WORDS
               : value->is_given ? (uint32_t)SJ_PLACE_SRET_WORDS
                                 : base;
    }
    return (uint8_t)(base + (largest_end + 7) / 8);
}

/* The entry of a list of places for one place. */
typedef struct listed_place {
    bool is_listed;
    /* parameter of SJ_PLACE_WORDS; 0: the place's value or text is recorded */
    uint8_t words;
    /* Limit for the length of the place's text. If the place is not listed, the limit at the end of
     * the list. */
    uint8_t limit;
} listed_place;

static listed_place find_place(const uint8_t places[SJ_PLACES_PER_FUNCTION], size_t used,
                               uint8_t place)
{
    listed_place found = {0};
    uint8_t limit = 0;
    uint8_t words = 0;
    for (size_t i = 0; i < used && !found.is_listed; i++) {
        if (sj_place_is_size(places[i]) && i + 1 < used) {
            words = places[i] == SJ_PLACE_WORDS ? places[i + 1] : 0;
            i++; /* the next byte is a parameter, not a place */
        } else if (sj_place_is_limit(places[i])) {
            limit = places[i];
        } else {
            found = (listed_place){.is_listed = places[i] == place, .words = words};
            words = 0;
        }
    }
    found.limit = limit;
    return found;
}

/* Adds the place of a value, unless it is listed. Clears `*complete` if the list is full, or if the
 * list records less of the place than the value needs. Returns the new length of the list. */
static size_t list_value(const sj_typed_function *function, const sj_typed_value *value,
                         uint8_t limit, uint8_t places[SJ_PLACES_PER_FUNCTION], size_t used,
                         bool *complete)
{
    const bool is_text =
        !value->is_behind && sj_value_kind_of(value->descriptor) == SJ_VALUE_STRING;
    const bool has_size = value->is_behind || value->is_given;
    const uint8_t words = has_size ? words_behind(function, value->place) : 0;
    const listed_place listed = find_place(places, used, value->place);
    const bool has_limit = is_text && limit > listed.limit;
    if (listed.is_listed) {
        *complete = *complete && listed.words >= words && !has_limit;
        return used;
    }
    if (used + (has_limit ? 1 : 0) + (has_size ? 3 : 1) > SJ_PLACES_PER_FUNCTION) {
        *complete = false;
        return used;
    }
    if (has_limit) {
        places[used++] = limit;
    }
    if (has_size) {
        places[used++] = SJ_PLACE_WORDS;
        places[used++] = words;
    }
    places[used] = value->place;
    return used + 1;
}

static bool list_values(const sj_typed_function *function, uint8_t limit, bool only_result,
                        uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    const uint8_t *end = memchr(places, 0, SJ_PLACES_PER_FUNCTION);
    size_t used = end != NULL ? (size_t)(end - places) : SJ_PLACES_PER_FUNCTION;
    bool complete = true;
    for (size_t i = 0; i < function->count; i++) {
        const uint8_t place = function->values[i].place;
        if (place != 0 && (!only_result || sj_value_position(place) == SJ_VALUE_RESULT)) {
            used = list_value(function, &function->values[i], limit, places, used, &complete);
        }
    }
    return complete;
}

bool sj_typed_function_list(const sj_typed_function *function, uint8_t limit,
                            uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    return list_values(function, limit, false, places);
}

bool sj_typed_function_list_result(const sj_typed_function *function, uint8_t limit,
                                   uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    return list_values(function, limit, true, places);
}

void sj_typed_function_fit(sj_typed_function *function)
{
    uint8_t places[SJ_PLACES_PER_FUNCTION] = {0};
    (void)sj_typed_function_list(function, 0, places);
    for (size_t i = 0; i < function->count; i++) {
        sj_typed_value *value = &function->values[i];
        if (value->place != 0 &&
            !find_place(places, SJ_PLACES_PER_FUNCTION, value->place).is_listed) {
            value->place = 0;
            value->descriptor = sj_value_descriptor(sj_value_position(value->descriptor), 0);
            value->state = SJ_TYPED_UNSUPPORTED;
        }
    }
}
