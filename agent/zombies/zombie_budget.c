#include "agent/zombies/zombie_budget.h"

enum { PATIENCE_LEAST = 10, PATIENCE_MOST = 2000, MILLE = 1000, SPARE = 4 };

static bool watch_less(sj_zombie_budget *budget, const sj_zombie_costs *costs, uint64_t allowed)
{
    const uint32_t least = budget->patience > PATIENCE_LEAST ? budget->patience : PATIENCE_LEAST;
    const bool can_sample_less = budget->shift < SJ_ZOMBIE_SHIFT_MOST && costs->heap != 0;
    budget->patience = budget->is_attempt && least * 2 <= PATIENCE_MOST ? least * 2 : least;
    budget->is_attempt = false;
    budget->calm = 0;
    if (!budget->is_paused && costs->history != 0 &&
        (costs->history > costs->heap || !can_sample_less)) {
        budget->is_paused = true;
        return true;
    }
    if (!can_sample_less) {
        return false;
    }
    uint64_t spent = costs->heap + costs->history;
    do {
        budget->shift++;
        spent /= 2;
    } while (spent > allowed && budget->shift < SJ_ZOMBIE_SHIFT_MOST);
    return true;
}

static bool watch_more(sj_zombie_budget *budget)
{
    budget->calm = 0;
    budget->is_attempt = true;
    if (budget->shift != 0) {
        budget->shift--;
        return true;
    }
    const bool was_paused = budget->is_paused;
    budget->is_paused = false;
    return was_paused;
}

bool sj_zombie_budget_look(sj_zombie_budget *budget, const sj_zombie_costs *costs,
                           uint32_t per_mille)
{
    const uint64_t allowed = costs->program * per_mille / MILLE;
    const uint64_t spent = costs->heap + costs->history;
    if (spent > allowed) {
        return watch_less(budget, costs, allowed);
    }
    budget->calm = spent * SPARE <= allowed ? budget->calm + 1 : 0;
    const uint32_t wanted = budget->patience > PATIENCE_LEAST ? budget->patience : PATIENCE_LEAST;
    return budget->calm >= wanted && (budget->shift != 0 || budget->is_paused) &&
           watch_more(budget);
}
