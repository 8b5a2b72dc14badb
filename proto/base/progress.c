#include "proto/base/progress.h"

#include <stddef.h>

static _Thread_local struct {
    sj_progress_show *show;
    sj_progress progress;
    uint32_t depth; /* of work within work */
} watched;

void sj_progress_watch(sj_progress_show *show)
{
    watched.show = show;
}

bool sj_progress_is_watched(void)
{
    return watched.show != NULL;
}

void sj_progress_begin(uint64_t total)
{
    if (watched.depth++ == 0) {
        watched.progress = (sj_progress){.total = total};
    } else {
        watched.progress.total = 0;
    }
}

void sj_progress_step(void)
{
    if (watched.show == NULL) {
        return;
    }
    watched.progress.done += watched.depth == 1;
    watched.show(&watched.progress);
}

void sj_progress_end(void)
{
    if (watched.depth == 0 || --watched.depth != 0 || watched.show == NULL) {
        return;
    }
    watched.progress.has_ended = true;
    watched.show(&watched.progress);
}
