#include "agent/zombies/zombie_budget.h"

enum { MIN_PATIENCE = 10, MAX_PATIENCE = 2000, MILLE = 1000, CALM_PARTS = 4 };

/* Increases the shift until the estimated cost is within the budget: each step halves it. */
static void increase_shift(uint32_t *shift, uint64_t spent, uint64_t allowed)
{
    do {
        (*shift)++;
        spent /= 2;
    } while (spent > allowed && *shift < SJ_ZOMBIE_SHIFT_MOST);
}

/* Reduces the most expensive part that can still be reduced. Returns false if none can. */
static bool reduce_monitoring(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                              uint64_t allowed)
{
    const uint32_t least = budget->patience > MIN_PATIENCE ? budget->patience : MIN_PATIENCE;
    const uint64_t spent = costs->heap + costs->history + costs->delayed_free;
    const uint64_t heap = budget->shift < SJ_ZOMBIE_SHIFT_MOST ? costs->heap : 0;
    const uint64_t history = budget->is_paused ? 0 : costs->history;
    const uint64_t delayed_free =
        budget->delayed_shift < SJ_ZOMBIE_SHIFT_MOST ? costs->delayed_free : 0;
    budget->patience = budget->is_attempt && least * 2 <= MAX_PATIENCE ? least * 2 : least;
    budget->is_attempt = false;
    budget->calm = 0;
    if (history > heap && history > delayed_free) {
        budget->is_paused = true;
    } else if (delayed_free > heap) {
        increase_shift(&budget->delayed_shift, spent, allowed);
    } else if (heap != 0) {
        increase_shift(&budget->shift, spent, allowed);
    }
    return history + heap + delayed_free != 0;
}

/* Undoes one step of reduction. Returns true. */
static bool increase_monitoring(sj_zombie_budget *budget)
{
    budget->calm = 0;
    budget->is_attempt = true;
    if (budget->shift != 0) {
        budget->shift--;
    } else if (budget->delayed_shift != 0) {
        budget->delayed_shift--;
    } else {
        budget->is_paused = false;
    }
    return true;
}

bool sj_zombie_budget_check(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                            uint32_t per_mille)
{
    const uint64_t allowed = costs->program * per_mille / MILLE;
    const uint64_t spent = costs->heap + costs->history + costs->delayed_free;
    if (spent > allowed) {
        return reduce_monitoring(budget, costs, allowed);
    }
    budget->calm = spent * CALM_PARTS <= allowed ? budget->calm + 1 : 0;
    const uint32_t wanted = budget->patience > MIN_PATIENCE ? budget->patience : MIN_PATIENCE;
    const bool is_limited = budget->shift != 0 || budget->delayed_shift != 0 || budget->is_paused;
    return budget->calm >= wanted && is_limited && increase_monitoring(budget);
}
