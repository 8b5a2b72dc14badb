#include "proto/callgraph/slow_calls.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_slow_calls_deinit(sj_slow_calls *slow)
{
    free(slow->lists);
    sj_hash_map_deinit(&slow->by_function);
    free(slow->dirty);
    *slow = (sj_slow_calls){0};
}

static sj_slow_list *find_list(const sj_slow_calls *slow, uint32_t function)
{
    const sj_hash_entry *known = sj_hash_map_find(&slow->by_function, function, 1);
    return known != NULL ? &slow->lists[known->first] : NULL;
}

static sj_status find_or_add_list(sj_slow_calls *slow, uint32_t function, sj_slow_list **list)
{
    *list = find_list(slow, function);
    if (*list != NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&slow->lists, &slow->list_capacity, slow->list_count, 1,
                            sizeof(*slow->lists)));
    SJ_TRY(sj_array_reserve(&slow->dirty, &slow->dirty_capacity, slow->list_count, 1,
                            sizeof(*slow->dirty)));
    SJ_TRY(sj_hash_map_put(&slow->by_function,
                           &(sj_hash_entry){.key = function, .sub = 1, .first = slow->list_count}));
    *list = &slow->lists[slow->list_count++];
    **list = (sj_slow_list){.function = function};
    return SJ_OK;
}

static void touch(sj_slow_calls *slow, sj_slow_list *list)
{
    if (!list->dirty) {
        list->dirty = true;
        slow->dirty[slow->dirty_count++] = (uint32_t)(list - slow->lists);
    }
}

static int compare_ticks(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Drops the shorter half of all calls, and sets the floor to the longest dropped duration. */
static sj_status raise_floor(sj_slow_calls *slow)
{
    uint64_t *durations = malloc(slow->call_count * sizeof(*durations));
    if (durations == NULL) {
        return SJ_ENOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < slow->list_count; ++i) {
        for (uint32_t k = 0; k < slow->lists[i].count; ++k) {
            durations[count++] = slow->lists[i].calls[k].duration_ticks;
        }
    }
    qsort(durations, count, sizeof(*durations), compare_ticks);
    slow->floor_ticks = durations[count / 2];
    free(durations);
    for (uint32_t i = 0; i < slow->list_count; ++i) {
        sj_slow_list *list = &slow->lists[i];
        while (list->count > 0 &&
               list->calls[list->count - 1].duration_ticks <= slow->floor_ticks) {
            --list->count;
            --slow->call_count;
            touch(slow, list);
        }
    }
    return SJ_OK;
}

uint64_t sj_slow_calls_threshold(const sj_slow_calls *slow, uint32_t function)
{
    const sj_slow_list *list = find_list(slow, function);
    const bool full = list != NULL && list->count == SJ_SLOW_CALLS_A_FUNCTION;
    const uint64_t shortest = full ? list->calls[list->count - 1].duration_ticks : 0;
    return shortest > slow->floor_ticks ? shortest : slow->floor_ticks;
}

sj_status sj_slow_calls_add(sj_slow_calls *slow, uint32_t function, const sj_slow_call *call)
{
    if (call->duration_ticks <= sj_slow_calls_threshold(slow, function)) {
        return SJ_OK;
    }
    sj_slow_list *list;
    SJ_TRY(find_or_add_list(slow, function, &list));
    if (slow->call_count == SJ_SLOW_CALLS_A_SESSION && list->count < SJ_SLOW_CALLS_A_FUNCTION) {
        SJ_TRY(raise_floor(slow));
        return sj_slow_calls_add(slow, function, call);
    }
    uint32_t place = list->count;
    if (place == SJ_SLOW_CALLS_A_FUNCTION) {
        --place;
    } else {
        ++list->count;
        ++slow->call_count;
    }
    for (; place > 0 && list->calls[place - 1].duration_ticks < call->duration_ticks; --place) {
        list->calls[place] = list->calls[place - 1];
    }
    list->calls[place] = *call;
    touch(slow, list);
    return SJ_OK;
}

void sj_slow_calls_move(sj_slow_calls *slow, const uint32_t *moved, uint32_t count)
{
    for (uint32_t i = 0; i < slow->list_count; ++i) {
        sj_slow_list *list = &slow->lists[i];
        for (uint32_t k = 0; k < list->count; ++k) {
            const uint32_t node = list->calls[k].node;
            list->calls[k].node = node < count ? moved[node] : 0;
        }
        touch(slow, list);
    }
}

void sj_slow_calls_clean(sj_slow_calls *slow)
{
    for (uint32_t i = 0; i < slow->dirty_count; ++i) {
        slow->lists[slow->dirty[i]].dirty = false;
    }
    slow->dirty_count = 0;
}
