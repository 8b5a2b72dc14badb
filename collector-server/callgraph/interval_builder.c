#include "collector-server/callgraph/interval_builder.h"

#include <stdbool.h>
#include <stdlib.h>

/* Sorted by (start, rank): rank puts the outer of two calls with one start first. */
typedef struct sort_item {
    uint64_t start;
    uint64_t rank_high; /* longer first, unless entry order decides */
    uint32_t rank_low;
    uint32_t source;
} sort_item;

static int compare_items(const void *left, const void *right)
{
    const sort_item *a = left;
    const sort_item *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    if (a->rank_high != b->rank_high) {
        return a->rank_high < b->rank_high ? -1 : 1;
    }
    return a->rank_low < b->rank_low ? -1 : a->rank_low > b->rank_low;
}

static sort_item item_of(const sj_interval *interval, uint32_t source, sj_interval_order order)
{
    sort_item item = {.start = interval->start_ticks, .rank_low = source, .source = source};
    if (order != SJ_INTERVALS_BY_ENTRY_DEPTH) {
        item.rank_high = UINT64_MAX - interval->end_ticks;
    }
    if (order == SJ_INTERVALS_BY_EXIT) {
        item.rank_low = UINT32_MAX - source;
    }
    return item;
}

/* The innermost open call that contains an interval, or by depth the one above it. Calls that
 * started earlier and end before it are closed: what follows starts no earlier than it. */
static uint32_t find_parent(const sj_interval *intervals, const sj_interval_call *calls,
                            uint32_t innermost, const sj_interval *interval, bool by_depth,
                            bool *overlaps)
{
    uint32_t open = innermost;
    while (open != SJ_INTERVAL_NO_PARENT) {
        const sj_interval *candidate = &intervals[calls[open].source];
        if (by_depth ? calls[open].depth < interval->depth
                     : candidate->end_ticks >= interval->end_ticks) {
            break;
        }
        *overlaps |= !by_depth && candidate->end_ticks > interval->start_ticks &&
                     candidate->end_ticks < interval->end_ticks;
        open = calls[open].parent;
    }
    return open;
}

static sj_status sweep(const sj_interval *intervals, const sort_item *items, size_t count,
                       bool by_depth, sj_interval_call *calls, size_t *overlapping)
{
    uint32_t innermost = SJ_INTERVAL_NO_PARENT;
    for (size_t i = 0; i < count; i++) {
        const sj_interval *interval = &intervals[items[i].source];
        bool overlaps = false;
        const uint32_t parent =
            find_parent(intervals, calls, innermost, interval, by_depth, &overlaps);
        const uint32_t depth = parent != SJ_INTERVAL_NO_PARENT ? calls[parent].depth + 1 : 0;
        if (by_depth && depth != interval->depth) {
            return SJ_EINVAL;
        }
        calls[i] = (sj_interval_call){.source = items[i].source, .parent = parent, .depth = depth};
        if (parent != SJ_INTERVAL_NO_PARENT) {
            overlaps = overlaps || intervals[calls[parent].source].end_ticks < interval->end_ticks;
            calls[parent].child_ticks += interval->end_ticks - interval->start_ticks;
        }
        *overlapping += overlaps;
        innermost = (uint32_t)i;
    }
    return SJ_OK;
}

sj_status sj_intervals_build(const sj_interval *intervals, size_t count, sj_interval_order order,
                             sj_interval_call *calls, size_t *overlapping)
{
    *overlapping = 0;
    if (count >= UINT32_MAX) {
        return SJ_ELIMIT;
    }
    if (count == 0) {
        return SJ_OK;
    }
    sort_item *items = malloc(count * sizeof(*items));
    if (items == NULL) {
        return SJ_ENOMEM;
    }
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        if (intervals[i].end_ticks < intervals[i].start_ticks) {
            free(items);
            return SJ_EINVAL;
        }
        items[i] = item_of(&intervals[i], (uint32_t)i, order);
        sorted = sorted && (i == 0 || compare_items(&items[i - 1], &items[i]) <= 0);
    }
    if (!sorted) {
        qsort(items, count, sizeof(*items), compare_items);
    }
    const sj_status status =
        sweep(intervals, items, count, order == SJ_INTERVALS_BY_ENTRY_DEPTH, calls, overlapping);
    free(items);
    return status;
}
