#include "proto/base/progress.h"

#include <stdatomic.h>
#include <stddef.h>

enum { MOST_LEVELS = 8 }; /* of nested work; deeper work is not counted */

typedef struct level {
    sj_progress_work work;
    uint64_t done;
    uint64_t total; /* 0: unknown */
    bool is_list;
} level;

static _Thread_local struct {
    sj_progress_show *show;
    level levels[MOST_LEVELS]; /* the outermost first */
    unsigned count;
} watched;

void sj_progress_watch(sj_progress_show *show)
{
    watched.show = show;
    watched.count = 0;
}

bool sj_progress_is_watched(void)
{
    return watched.show != NULL;
}

/* Returns the finished fraction of the outermost work, or -1 if it is unknown. If the outermost
 * work is a list, the fraction includes the finished part of its current item. */
static double done_part(void)
{
    double part = 0;
    double share = 1; /* fraction of the outermost work that one part of this level stands for */
    for (unsigned i = 0; i < watched.count; i++) {
        const level *each = &watched.levels[i];
        if (each->total == 0) {
            return i == 0 ? -1 : part;
        }
        share /= (double)each->total;
        part += share * (double)(each->done < each->total ? each->done : each->total);
        if (!each->is_list || each->done >= each->total) {
            break;
        }
    }
    return part;
}

static void show(void)
{
    const sj_progress progress = {.part = done_part()};
    watched.show(&progress);
}

static sj_progress_work begin(uint64_t total, bool is_list)
{
    static _Atomic uint64_t last;
    if (watched.show == NULL || watched.count == MOST_LEVELS) {
        return 0;
    }
    level *made = &watched.levels[watched.count];
    *made = (level){.work = ++last, .total = total, .is_list = is_list};
    if (watched.count != 0 && !made[-1].is_list) {
        made[-1].total = made->total = 0;
    }
    if (++watched.count == 1) {
        show();
    }
    return made->work;
}

sj_progress_work sj_progress_begin(uint64_t total)
{
    return begin(total, false);
}

sj_progress_work sj_progress_begin_list(uint64_t total)
{
    return begin(total, true);
}

/* Returns the level of the work. NULL: it has ended or belongs to another thread. */
static level *find(sj_progress_work work)
{
    for (unsigned i = 0; work != 0 && i < watched.count; i++) {
        if (watched.levels[i].work == work) {
            return &watched.levels[i];
        }
    }
    return NULL;
}

void sj_progress_step(sj_progress_work work)
{
    level *found = find(work);
    if (found != NULL) {
        found->done++;
        show();
    }
}

void sj_progress_reach(sj_progress_work work, uint64_t done)
{
    level *found = find(work);
    if (found != NULL) {
        found->done = done;
        show();
    }
}

void sj_progress_end(sj_progress_work work)
{
    level *found = find(work);
    if (found == NULL) {
        return;
    }
    const level *end = &watched.levels[--watched.count];
    for (; found < end; found++) {
        found[0] = found[1];
    }
    if (watched.count == 0) {
        const sj_progress progress = {.part = 1, .has_ended = true};
        watched.show(&progress);
    }
}
