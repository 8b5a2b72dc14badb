#include "proto/callgraph/outline.h"

#include "proto/block/block.h"

#include <stdlib.h>
#include <string.h>

static void swap(sj_outline_call *one, sj_outline_call *other)
{
    const sj_outline_call kept = *one;
    *one = *other;
    *other = kept;
}

static void sift_up(sj_outline_call *heap, size_t place)
{
    while (place > 0) {
        const size_t above = (place - 1) / 2;
        if (heap[above].duration_ticks <= heap[place].duration_ticks) {
            return;
        }
        swap(&heap[above], &heap[place]);
        place = above;
    }
}

static void sift_down(sj_outline_call *heap, size_t count)
{
    for (size_t place = 0;;) {
        size_t least = 2 * place + 1;
        if (least >= count) {
            return;
        }
        if (least + 1 < count && heap[least + 1].duration_ticks < heap[least].duration_ticks) {
            least++;
        }
        if (heap[place].duration_ticks <= heap[least].duration_ticks) {
            return;
        }
        swap(&heap[place], &heap[least]);
        place = least;
    }
}

void sj_outline_add(sj_outline *outline, const sj_outline_call *call)
{
    if (outline->call_count < SJ_OUTLINE_CALLS) {
        outline->calls[outline->call_count] = *call;
        sift_up(outline->calls, outline->call_count++);
    } else {
        outline->calls[0] = *call;
        sift_down(outline->calls, SJ_OUTLINE_CALLS);
    }
    if (outline->call_count == SJ_OUTLINE_CALLS) {
        outline->floor_ticks = outline->calls[0].duration_ticks;
    }
}

uint64_t sj_outline_longest(const sj_outline *outline)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < outline->call_count; i++) {
        const uint64_t duration = outline->calls[i].duration_ticks;
        longest = duration > longest ? duration : longest;
    }
    return longest;
}

static int compare_entries(const void *left, const void *right)
{
    const uint64_t a = ((const sj_outline_call *)left)->call_index;
    const uint64_t b = ((const sj_outline_call *)right)->call_index;
    return (a > b) - (a < b);
}

static void keep_longer(sj_outline *outline, uint64_t floor_ticks)
{
    size_t kept = 0;
    for (size_t i = 0; i < outline->call_count; i++) {
        const sj_outline_call *call = &outline->calls[i];
        if (call->ending == SJ_NOT_ENDED || call->duration_ticks > floor_ticks) {
            outline->calls[kept++] = *call;
        }
    }
    outline->call_count = kept;
    outline->floor_ticks = floor_ticks;
}

void sj_outline_finish(sj_outline *outline, const sj_outline_call *open, size_t open_count)
{
    keep_longer(outline, outline->floor_ticks);
    outline->has_all_open = open_count <= SJ_OUTLINE_OPEN;
    if (outline->has_all_open && open_count > 0) {
        memcpy(outline->calls + outline->call_count, open, open_count * sizeof(*open));
        outline->call_count += open_count;
    }
    qsort(outline->calls, outline->call_count, sizeof(*outline->calls), compare_entries);
}

static int compare_durations(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

void sj_outline_shorten(sj_outline *outline, size_t most)
{
    uint64_t durations[SJ_OUTLINE_CALLS];
    size_t count = 0;
    for (size_t i = 0; i < outline->call_count; i++) {
        if (outline->calls[i].ending != SJ_NOT_ENDED) {
            durations[count++] = outline->calls[i].duration_ticks;
        }
    }
    if (count > most) {
        qsort(durations, count, sizeof(*durations), compare_durations);
        keep_longer(outline, durations[most]);
    }
}
