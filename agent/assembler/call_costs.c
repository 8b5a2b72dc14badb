#include "agent/assembler/call_costs.h"

#include "proto/base/array.h"

#include <stdlib.h>

void sj_call_costs_deinit(sj_call_costs *costs)
{
    free(costs->open);
    *costs = (sj_call_costs){0};
}

static uint32_t bit_of(sj_cost_counter counter)
{
    return UINT32_C(1) << counter;
}

sj_status sj_call_costs_enter(sj_call_costs *costs, const sj_costly_call *call,
                              sj_cost_counter counter, uint64_t reading)
{
    while (costs->count != 0 && costs->open[costs->count - 1].call.depth >= call->depth &&
           costs->open[costs->count - 1].call.call_index != call->call_index) {
        costs->count--; /* ended, or left by an exception or a jump */
    }
    if (costs->count == 0 || costs->open[costs->count - 1].call.call_index != call->call_index) {
        SJ_TRY(sj_array_reserve(&costs->open, &costs->capacity, costs->count, 1,
                                sizeof(*costs->open)));
        costs->open[costs->count++] = (sj_open_cost){.call = *call};
    }
    sj_open_cost *open = &costs->open[costs->count - 1];
    open->measured |= bit_of(counter);
    open->at_entry[counter] = reading;
    return SJ_OK;
}

/* Returns the innermost caller of the call at `place` whose counter was read at its entry. If
 * `function` is not NULL, only calls of `*function` count. Returns NULL if there is none. */
static sj_open_cost *find_above(const sj_call_costs *costs, size_t place, sj_cost_counter counter,
                                const uint32_t *function)
{
    while (place-- > 0) {
        sj_open_cost *open = &costs->open[place];
        if ((open->measured & bit_of(counter)) != 0 &&
            (function == NULL || open->call.function == *function)) {
            return open;
        }
    }
    return NULL;
}

bool sj_call_costs_leave(sj_call_costs *costs, uint64_t call_index, sj_cost_counter counter,
                         uint64_t reading, sj_call_cost *cost)
{
    size_t place = costs->count;
    while (place > 0 && costs->open[place - 1].call.call_index != call_index) {
        place--;
    }
    if (place == 0) {
        return false;
    }
    /* the calls inside this one have ended, even if their exits were not seen */
    costs->count = place;
    sj_open_cost *ended = &costs->open[--place];
    if ((ended->measured & bit_of(counter)) == 0) {
        return false;
    }
    ended->measured &= ~bit_of(counter);
    cost->all = reading > ended->at_entry[counter] ? reading - ended->at_entry[counter] : 0;
    cost->self = cost->all > ended->below[counter] ? cost->all - ended->below[counter] : 0;
    cost->is_nested = find_above(costs, place, counter, &ended->call.function) != NULL;
    cost->is_first = !ended->is_ended;
    ended->is_ended = true;
    sj_open_cost *above = find_above(costs, place, counter, NULL);
    if (above != NULL) {
        above->below[counter] += cost->all;
    }
    return !ended->is_distrusted;
}

void sj_call_costs_distrust(sj_call_costs *costs)
{
    for (size_t i = 0; i < costs->count; i++) {
        costs->open[i].is_distrusted = true;
    }
}
