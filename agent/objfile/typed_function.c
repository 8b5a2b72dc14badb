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

void sj_typed_function_list(const sj_typed_function *function, uint8_t limit,
                            uint8_t places[SJ_PLACES_PER_FUNCTION])
{
    size_t used = 0;
    memset(places, 0, SJ_PLACES_PER_FUNCTION);
    for (size_t i = 0; i < function->count; i++) {
        const uint8_t place = function->values[i].place;
        if (place == 0 || memchr(places, place, used) != NULL) {
            continue;
        }
        if (limit != 0 && sj_value_kind_of(function->values[i].descriptor) == SJ_VALUE_STRING) {
            places[used++] = limit;
            limit = 0;
        }
        places[used++] = place;
    }
}
