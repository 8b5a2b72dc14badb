#include "collector-server/callgraph/function_histograms.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void sj_function_histograms_deinit(sj_function_histograms *all)
{
    for (uint32_t i = 0; i < all->capacity; i++) {
        sj_histogram_deinit(&all->places[i].histogram);
    }
    free(all->places);
    *all = (sj_function_histograms){0};
}

/* The place of a function, or the free one where it belongs. */
static sj_function_histogram *find_place(const sj_function_histograms *all, uint32_t function)
{
    uint32_t place = (uint32_t)((function * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    for (;; place++) {
        sj_function_histogram *here = &all->places[place & (all->capacity - 1)];
        if (here->function == function || here->function == 0) {
            return here;
        }
    }
}

static sj_status grow(sj_function_histograms *all)
{
    sj_function_histograms grown = {
        .capacity = all->capacity != 0 ? all->capacity * 2 : FIRST_CAPACITY, .count = all->count};
    grown.places = calloc(grown.capacity, sizeof(*grown.places));
    if (grown.places == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < all->capacity; i++) {
        if (all->places[i].function != 0) {
            *find_place(&grown, all->places[i].function) = all->places[i];
        }
    }
    free(all->places);
    *all = grown;
    return SJ_OK;
}

sj_status sj_function_histograms_add(sj_function_histograms *all, uint32_t function,
                                     const sj_histogram *part)
{
    if (part->octave_count == 0) {
        return SJ_OK;
    }
    if (all->count * 2 >= all->capacity) {
        SJ_TRY(grow(all));
    }
    sj_function_histogram *place = find_place(all, function);
    SJ_TRY(sj_histogram_merge(&place->histogram, part));
    all->count += place->function == 0;
    place->function = function;
    return SJ_OK;
}

void sj_function_histograms_subtract(sj_function_histograms *all, uint32_t function,
                                     const sj_histogram *part)
{
    if (part->octave_count != 0 && all->capacity != 0) {
        sj_histogram_subtract(&find_place(all, function)->histogram, part);
    }
}

const sj_histogram *sj_function_histograms_find(const sj_function_histograms *all,
                                                uint32_t function)
{
    if (all->capacity == 0) {
        return NULL;
    }
    const sj_function_histogram *place = find_place(all, function);
    return place->function == function ? &place->histogram : NULL;
}
