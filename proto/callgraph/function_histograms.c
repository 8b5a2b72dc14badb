#include "proto/callgraph/function_histograms.h"
#include "proto/base/array.h"

#include <stdlib.h>

void sj_function_histograms_deinit(sj_function_histograms *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        sj_histogram_deinit(&all->histograms[i]);
    }
    free(all->histograms);
    sj_hash_map_deinit(&all->by_function);
    *all = (sj_function_histograms){0};
}

static sj_histogram *find(const sj_function_histograms *all, uint32_t function)
{
    const sj_hash_entry *known = sj_hash_map_find(&all->by_function, function, 0);
    return known != NULL ? &all->histograms[known->first] : NULL;
}

sj_status sj_function_histograms_add(sj_function_histograms *all, uint32_t function,
                                     const sj_path_histogram *part)
{
    if (sj_path_histogram_is_empty(part)) {
        return SJ_OK;
    }
    sj_histogram *known = find(all, function);
    if (known != NULL) {
        return sj_path_histogram_add_to(part, known);
    }
    sj_histogram added = {0};
    SJ_TRY(sj_array_reserve(&all->histograms, &all->capacity, all->count, 1,
                            sizeof(*all->histograms)));
    sj_status status = sj_path_histogram_add_to(part, &added);
    if (status == SJ_OK) {
        status = sj_hash_map_put(&all->by_function,
                                 &(sj_hash_entry){.key = function, .first = all->count});
    }
    if (status != SJ_OK) {
        sj_histogram_deinit(&added);
        return status;
    }
    all->histograms[all->count++] = added;
    return SJ_OK;
}

void sj_function_histograms_subtract(sj_function_histograms *all, uint32_t function,
                                     const sj_path_histogram *part)
{
    sj_histogram *known = find(all, function);
    if (known != NULL) {
        sj_path_histogram_subtract_from(part, known);
    }
}

const sj_histogram *sj_function_histograms_find(const sj_function_histograms *all,
                                                uint32_t function)
{
    return find(all, function);
}
