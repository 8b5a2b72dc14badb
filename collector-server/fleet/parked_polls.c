#include "collector-server/fleet/parked_polls.h"

#include <stdlib.h>

enum { MAX_PARKED = 16384 };

bool sj_parked_polls_add(sj_parked_polls *polls, const sj_parked_poll *poll)
{
    if (polls->count == polls->capacity) {
        const size_t wanted = polls->capacity == 0 ? 64 : polls->capacity * 2;
        sj_parked_poll *moved =
            wanted <= MAX_PARKED ? realloc(polls->list, wanted * sizeof(*moved)) : NULL;
        if (moved == NULL) {
            return false;
        }
        polls->list = moved;
        polls->capacity = wanted;
    }
    polls->list[polls->count++] = *poll;
    return true;
}

bool sj_parked_polls_pop_older(sj_parked_polls *polls, const sj_parked_poll *poll,
                               sj_parked_poll *older)
{
    size_t count = 0;
    size_t oldest = 0;
    bool is_replaced = false;
    for (size_t i = 0; i < polls->count && !is_replaced; i++) {
        const sj_parked_poll *one = &polls->list[i];
        if (one->device_id == poll->device_id) {
            is_replaced = one->instance == poll->instance;
            if (count++ == 0 || is_replaced || one->deadline_ms < polls->list[oldest].deadline_ms) {
                oldest = i;
            }
        }
    }
    if (!is_replaced && count < SJ_PARKED_OF_A_DEVICE_MAX) {
        return false;
    }
    *older = polls->list[oldest];
    sj_parked_polls_remove(polls, oldest);
    return true;
}

void sj_parked_polls_remove(sj_parked_polls *polls, size_t index)
{
    polls->list[index] = polls->list[--polls->count];
}

void sj_parked_polls_deinit(sj_parked_polls *polls)
{
    free(polls->list);
    *polls = (sj_parked_polls){0};
}
