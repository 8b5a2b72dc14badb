#include "collector-server/cli/work_progress.h"

#include "agent/host/clock.h"

#include <stdio.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define QUIET_NS NS_PER_S          /* shorter work shows no line */
#define BETWEEN_NS (NS_PER_S / 10) /* between two updates of the line */

static int64_t started_ns; /* monotonic; 0: no work runs */
static int64_t shown_ns;   /* monotonic time of the latest update; 0: no line is shown */

const char *sj_work_progress_text(int64_t elapsed_ns, const sj_progress *progress,
                                  char text[SJ_PROGRESS_TEXT_BYTES])
{
    const double elapsed = (double)elapsed_ns / (double)NS_PER_S;
    const double part = progress->part;
    if (part <= 0) {
        snprintf(text, SJ_PROGRESS_TEXT_BYTES, "%.1f s", elapsed);
        return text;
    }
    snprintf(text, SJ_PROGRESS_TEXT_BYTES, "%.1f s, %.0f %% done, about %.0f s left", elapsed,
             100 * part, elapsed / part - elapsed);
    return text;
}

void sj_work_progress_hide(void)
{
    if (shown_ns != 0) {
        fputs("\r\033[K", stderr);
        shown_ns = 0;
    }
}

static void show_progress(const sj_progress *progress)
{
    const int64_t now = (int64_t)sj_clock_ns(CLOCK_MONOTONIC);
    if (progress->has_ended) {
        sj_work_progress_hide();
        started_ns = 0;
        return;
    }
    started_ns = started_ns != 0 ? started_ns : now;
    if (now - started_ns < QUIET_NS || now - shown_ns < BETWEEN_NS) {
        return;
    }
    char text[SJ_PROGRESS_TEXT_BYTES];
    shown_ns = now;
    fprintf(stderr, "\r\033[K... %s", sj_work_progress_text(now - started_ns, progress, text));
}

void sj_work_progress_start(void)
{
    if (isatty(STDERR_FILENO) == 1) {
        sj_progress_watch(show_progress);
    }
}

void sj_work_progress_stop(void)
{
    sj_work_progress_hide();
    sj_progress_watch(NULL);
}
