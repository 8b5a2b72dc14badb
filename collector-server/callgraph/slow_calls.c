#include "collector-server/callgraph/slow_calls.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void sj_slow_calls_deinit(sj_slow_calls *slow)
{
    free(slow->lists);
    free(slow->table);
    free(slow->dirty);
    *slow = (sj_slow_calls){0};
}

/* The place of a function in the table, or the free one where it belongs. */
static uint32_t find_place(const sj_slow_calls *slow, uint32_t function)
{
    const uint32_t mask = slow->list_capacity * 2 - 1;
    uint32_t place = (uint32_t)((function * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (slow->table[place] != 0 && slow->lists[slow->table[place] - 1].function != function) {
        place = (place + 1) & mask;
    }
    return place;
}

static const sj_slow_list *find_list(const sj_slow_calls *slow, uint32_t function)
{
    const uint32_t found = slow->list_count != 0 ? slow->table[find_place(slow, function)] : 0;
    return found != 0 ? &slow->lists[found - 1] : NULL;
}

static sj_status grow(sj_slow_calls *slow)
{
    const uint32_t capacity = slow->list_capacity != 0 ? slow->list_capacity * 2 : FIRST_CAPACITY;
    sj_slow_list *lists = realloc(slow->lists, (size_t)capacity * sizeof(*lists));
    slow->lists = lists != NULL ? lists : slow->lists;
    uint32_t *dirty = realloc(slow->dirty, (size_t)capacity * sizeof(*dirty));
    slow->dirty = dirty != NULL ? dirty : slow->dirty;
    uint32_t *table = calloc((size_t)capacity * 2, sizeof(*table));
    if (lists == NULL || dirty == NULL || table == NULL) {
        free(table);
        return SJ_ENOMEM;
    }
    free(slow->table);
    slow->table = table;
    slow->list_capacity = capacity;
    for (uint32_t i = 0; i < slow->list_count; ++i) {
        table[find_place(slow, lists[i].function)] = i + 1;
    }
    return SJ_OK;
}

static sj_status take_list(sj_slow_calls *slow, uint32_t function, sj_slow_list **list)
{
    if (slow->list_count == slow->list_capacity) {
        SJ_TRY(grow(slow));
    }
    const uint32_t place = find_place(slow, function);
    if (slow->table[place] == 0) {
        slow->lists[slow->list_count++] = (sj_slow_list){.function = function};
        slow->table[place] = slow->list_count;
    }
    *list = &slow->lists[slow->table[place] - 1];
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

/* Lets the shorter half of all calls go. */
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
    SJ_TRY(take_list(slow, function, &list));
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

void sj_slow_calls_clean(sj_slow_calls *slow)
{
    for (uint32_t i = 0; i < slow->dirty_count; ++i) {
        slow->lists[slow->dirty[i]].dirty = false;
    }
    slow->dirty_count = 0;
}
