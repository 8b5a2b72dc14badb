#include "agent/registry/late_plans.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <unistd.h>

static sj_plan_ahead *find_begun(const sj_late_plans *late, sj_plan_ahead *ahead, const char *path)
{
    if (sj_plan_ahead_is_of(ahead, path)) {
        return ahead;
    }
    for (size_t i = 0; i < late->count; i++) {
        if (sj_plan_ahead_is_of(late->items[i], path)) {
            return late->items[i];
        }
    }
    return NULL;
}

bool sj_late_plans_wait(sj_late_plans *late, sj_plan_ahead *ahead,
                        const sj_planner_options *options, uint32_t most_ms)
{
    sj_plan_ahead *begun = find_begun(late, ahead, options->module_path);
    if (begun != NULL) {
        return sj_plan_ahead_wait(begun, most_ms);
    }
    if (options->cache_directory == NULL || access(options->cache_directory, W_OK) != 0 ||
        sj_plan_is_cached(options) ||
        sj_array_reserve(&late->items, &late->capacity, late->count, 1, sizeof(*late->items)) !=
            SJ_OK ||
        sj_plan_ahead_start(options, &begun) != SJ_OK) {
        return true;
    }
    const bool has_ended = sj_plan_ahead_wait(begun, most_ms);
    if (has_ended) {
        sj_plan_ahead_free(begun);
    } else {
        late->items[late->count++] = begun;
    }
    return has_ended;
}

void sj_late_plans_deinit(sj_late_plans *late)
{
    for (size_t i = 0; i < late->count; i++) {
        sj_plan_ahead_free(late->items[i]);
    }
    free(late->items);
    *late = (sj_late_plans){0};
}
