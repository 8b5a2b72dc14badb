#include "collector-server/cli/wait_steps.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>

#define TICK_NS INT64_C(4000000) /* tick of the kernel's timer at 250 Hz */

enum { MOST_STEPS = 4 * 1024 * 1024 };

static int64_t at_least_0(int64_t ns)
{
    return ns > 0 ? ns : 0;
}

/* Appends a step. If the step overlaps the one before, appends only the part after it: times are
 * rounded, and a device may send wrong times. Skips a step without a valid length. */
static sj_status add_step(void *context, sqlite3_stmt *row)
{
    sj_wait_steps *steps = context;
    sj_wait_step step = {.thread_id = sqlite3_column_int64(row, 0),
                         .from_ns = sqlite3_column_int64(row, 1),
                         .to_ns = sqlite3_column_int64(row, 2),
                         .cpu_ns = sqlite3_column_int64(row, 3)};
    const sj_wait_step *last = steps->count != 0 ? &steps->steps[steps->count - 1] : NULL;
    if (last != NULL && last->thread_id == step.thread_id) {
        step.from_ns = step.from_ns < last->to_ns ? last->to_ns : step.from_ns;
        step.working_before = last->working_before + last->cpu_ns;
        step.waiting_before = last->waiting_before + last->to_ns - last->from_ns - last->cpu_ns;
    }
    if (step.from_ns < -INT64_MAX / 4 || step.to_ns > INT64_MAX / 4 || step.to_ns <= step.from_ns) {
        return SJ_OK;
    }
    if (steps->count == MOST_STEPS) {
        return SJ_ELIMIT;
    }
    const int64_t length_ns = step.to_ns - step.from_ns;
    step.cpu_ns = at_least_0(step.cpu_ns < length_ns ? step.cpu_ns : length_ns);
    SJ_TRY(
        sj_array_reserve(&steps->steps, &steps->capacity, steps->count, 1, sizeof(*steps->steps)));
    steps->steps[steps->count++] = step;
    return SJ_OK;
}

sj_status sj_wait_steps_read(sqlite3 *database, int64_t session_id, sj_wait_steps *steps,
                             sj_error *error)
{
    static const char sql[] =
        "SELECT t.thread_id, x.from_ns, x.to_ns, x.cpu_ns FROM thread_times AS x "
        "JOIN threads AS t ON t.session_id = ?1 AND t.number = x.thread_number "
        "WHERE x.session_id = ?1 ORDER BY 1, 2";
    const sj_status status =
        sj_sql_each(database, sql, SJ_SQL_INTS(session_id), add_step, steps, error);
    return status == SJ_ELIMIT
               ? sj_fail(error, status, "no memory for the times of threads on processors")
               : status;
}

void sj_wait_steps_deinit(sj_wait_steps *steps)
{
    free(steps->steps);
    *steps = (sj_wait_steps){0};
}

/* Returns the index of the thread's first step that ends after `ns`. If there is none, returns the
 * index of the next thread's first step, or steps->count. */
static size_t find_step(const sj_wait_steps *steps, int64_t thread_id, int64_t ns)
{
    const sj_wait_step *all = steps->steps;
    return SJ_BISECT(0, steps->count, i,
                     all[i].thread_id < thread_id ||
                         (all[i].thread_id == thread_id && all[i].to_ns <= ns));
}

/* Adds to the sums at least how long the thread worked and waited in the part of a step between two
 * moments. */
static void add_part(const sj_wait_step *step, int64_t from_ns, int64_t to_ns, int64_t *working_ns,
                     int64_t *waiting_ns)
{
    const int64_t from = from_ns > step->from_ns ? from_ns : step->from_ns;
    const int64_t to = to_ns < step->to_ns ? to_ns : step->to_ns;
    const int64_t inside = at_least_0(to - from);
    const int64_t outside = step->to_ns - step->from_ns - inside;
    *working_ns += at_least_0(step->cpu_ns - outside);
    *waiting_ns += at_least_0(inside - step->cpu_ns);
}

void sj_wait_steps_bound(const sj_wait_steps *steps, int64_t thread_id, int64_t from_ns,
                         int64_t to_ns, int64_t *working_ns, int64_t *waiting_ns)
{
    const size_t first = find_step(steps, thread_id, from_ns);
    size_t last = find_step(steps, thread_id, to_ns);
    *working_ns = *waiting_ns = 0;
    if (last == steps->count || steps->steps[last].thread_id != thread_id ||
        steps->steps[last].from_ns >= to_ns) {
        last--; /* wraps around for 0; the next check then returns */
    }
    if (first >= steps->count || steps->steps[first].thread_id != thread_id ||
        steps->steps[first].from_ns >= to_ns) {
        return;
    }
    add_part(&steps->steps[first], from_ns, to_ns, working_ns, waiting_ns);
    if (last > first) {
        const sj_wait_step *after = &steps->steps[first + 1];
        *working_ns += steps->steps[last].working_before - after->working_before;
        *waiting_ns += steps->steps[last].waiting_before - after->waiting_before;
        add_part(&steps->steps[last], from_ns, to_ns, working_ns, waiting_ns);
    }
    *working_ns = at_least_0(*working_ns - TICK_NS);
    *waiting_ns = at_least_0(*waiting_ns - TICK_NS);
}
