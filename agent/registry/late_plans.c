#include "agent/registry/late_plans.h"

#include "agent/host/clock.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TRIES_MOST = 20 };

static sj_late_plan *find_begun(const sj_late_plans *late, const char *path)
{
    for (size_t i = 0; i < late->count; i++) {
        if (sj_plan_ahead_is_of(late->items[i].ahead, path)) {
            return &late->items[i];
        }
    }
    return NULL;
}

static sj_late_plan *add_begun(sj_late_plans *late, sj_plan_ahead *ahead, bool is_owned)
{
    sj_late_plan *item = &late->items[late->count++];
    *item = (sj_late_plan){.ahead = ahead, .is_owned = is_owned};
    return item;
}

static void remove_begun(sj_late_plans *late, sj_late_plan *item)
{
    if (item->is_owned) {
        sj_plan_ahead_free(item->ahead);
    }
    *item = late->items[--late->count];
}

/* Returns the planning of a module, which it starts if necessary. Returns NULL if the caller must
 * plan the module itself. */
static sj_late_plan *find_or_begin(sj_late_plans *late, sj_plan_ahead *ahead,
                                   const sj_planner_options *options)
{
    sj_late_plan *begun = find_begun(late, options->module_path);
    if (begun != NULL || sj_array_reserve(&late->items, &late->capacity, late->count, 1,
                                          sizeof(*late->items)) != SJ_OK) {
        return begun;
    }
    if (sj_plan_ahead_is_of(ahead, options->module_path)) {
        return add_begun(late, ahead, false);
    }
    sj_plan_ahead *started = NULL;
    if (options->cache_directory == NULL || access(options->cache_directory, W_OK) != 0 ||
        sj_plan_is_cached(options) || sj_plan_ahead_start(options, &started) != SJ_OK) {
        return NULL;
    }
    return add_begun(late, started, true);
}

sj_plan_progress sj_late_plans_ask(sj_late_plans *late, sj_plan_ahead *ahead,
                                   const sj_planner_options *options, uint64_t asked_ns,
                                   uint64_t *left_ns)
{
    sj_late_plan *begun = find_or_begin(late, ahead, options);
    if (begun == NULL) {
        return SJ_PLAN_MADE;
    }
    const bool has_ended = sj_plan_ahead_wait(begun->ahead, 0);
    if (begun->late_ns != 0) {
        return has_ended && sj_plan_is_cached(options) ? SJ_PLAN_MADE : SJ_PLAN_LATE;
    }
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    const uint64_t waited_ns = now_ns - asked_ns;
    if (!has_ended && waited_ns < *left_ns) {
        return SJ_PLAN_BEING_MADE;
    }
    *left_ns = waited_ns < *left_ns ? *left_ns - waited_ns : 0;
    if (has_ended) {
        remove_begun(late, begun);
        return SJ_PLAN_MADE;
    }
    begun->late_ns = now_ns;
    return SJ_PLAN_LATE;
}

void sj_late_plans_note_planned(sj_late_plans *late, const char *path)
{
    sj_late_plan *begun = find_begun(late, path);
    if (begun != NULL) {
        begun->is_planned = true;
    }
}

bool sj_late_plan_is_ready(const sj_late_plan *plan)
{
    return plan->late_ns != 0 && !plan->is_settled && plan->tries < TRIES_MOST &&
           sj_plan_ahead_wait(plan->ahead, 0);
}

void sj_late_plans_deinit(sj_late_plans *late)
{
    for (size_t i = 0; i < late->count; i++) {
        if (late->items[i].is_owned) {
            sj_plan_ahead_free(late->items[i].ahead);
        }
    }
    free(late->items);
    *late = (sj_late_plans){0};
}
