#include "collector-server/cli/report_progress.h"

#include "agent/host/clock.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <unistd.h>

#define WAITING_NS UINT64_C(1000000000) /* a longer wait is reported */

enum { WAIT_INDENT = 9 /* columns of "sojourn: " */ };

static const char *format_amount(char *text, size_t capacity, uint64_t count)
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    double value = (double)count;
    size_t unit = 0;
    while (value >= 10000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000;
        unit++;
    }
    snprintf(text, capacity, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
    return text;
}

void sj_report_progress_clear(sj_report_text *text)
{
    sj_work_progress_hide();
    if (text->line_shown) {
        fputs("\r\033[K", stderr);
        text->line_shown = false;
    }
}

static void report_wait(sj_report_text *text, const sj_recording_progress *progress)
{
    sj_terminal terminal;
    char *line = NULL;
    text->is_wait_reported = true;
    sj_report_progress_clear(text);
    if (asprintf(&line, "sojourn: waiting for %s to take %s (%s)%s%s\n", text->target,
                 SJ_COUNTED(progress->spool.pending_frames, "frame"),
                 SJ_COUNTED(progress->spool.pending_bytes, "byte"),
                 progress->uplink.message[0] != '\0' ? ": " : "", progress->uplink.message) < 0) {
        return;
    }
    sj_terminal_describe(STDERR_FILENO, &terminal);
    sj_terminal_begin_line(stderr, &terminal);
    sj_terminal_wrap(stderr, &terminal, line, WAIT_INDENT);
    free(line);
}

/* Shows that frames wait for the collector. A short wait is not shown: the embedded collector
 * usually needs less than WAITING_NS. */
static void show_wait(sj_report_text *text, const sj_recording_progress *progress)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    const uint64_t pending = progress->spool.pending_frames;
    if (text->quiet) {
        return;
    }
    if (text->waiting_since_ns == 0) {
        text->waiting_since_ns = now_ns;
        text->awaited_frames = pending;
        sj_work_progress_start();
        text->wait = sj_progress_begin(pending);
    }
    if (!text->is_wait_reported && pending != 0 && now_ns - text->waiting_since_ns >= WAITING_NS) {
        report_wait(text, progress);
    }
    if (text->is_wait_reported) {
        sj_progress_reach(text->wait,
                          pending < text->awaited_frames ? text->awaited_frames - pending : 0);
    }
}

/* Reports once that the recorder waits for the JVM, if the wait is longer than WAITING_NS. */
static void report_wait_for_budget(sj_report_text *text)
{
    sj_terminal terminal;
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (text->waiting_for_budget_ns == 0) {
        text->waiting_for_budget_ns = now_ns;
    }
    if (text->quiet || text->is_budget_wait_reported ||
        now_ns - text->waiting_for_budget_ns < WAITING_NS) {
        return;
    }
    text->is_budget_wait_reported = true;
    sj_report_progress_clear(text);
    sj_terminal_describe(STDERR_FILENO, &terminal);
    sj_terminal_begin_line(stderr, &terminal);
    sj_terminal_wrap(stderr, &terminal,
                     "sojourn: waiting for the JVM, which changes classes for the budget; then the "
                     "process is left\n",
                     WAIT_INDENT);
}

void sj_report_progress(void *context, const sj_recording_progress *progress)
{
    sj_report_text *text = context;
    char calls[32];
    char bytes[SJ_BYTES_TEXT_BYTES];
    if (progress->phase == SJ_PHASE_WAITING_FOR_COLLECTOR) {
        show_wait(text, progress);
        return;
    }
    if (progress->phase == SJ_PHASE_WAITING_FOR_BUDGET) {
        report_wait_for_budget(text);
        return;
    }
    if (text->quiet || !text->has_terminal) {
        return;
    }
    fprintf(stderr, "\r\033[Ksojourn: %.1f s, %s call%s, %s, %s%s",
            (double)progress->elapsed_ns / 1e9,
            format_amount(calls, sizeof(calls), progress->drain.calls),
            progress->drain.calls == 1 ? "" : "s", SJ_COUNTED(progress->drain.threads, "thread"),
            sj_format_bytes((int64_t)progress->writer.bytes, bytes),
            progress->drain.lost_events != 0 ? " (losing some)" : "");
    if (progress->writer.reached_max_bytes) {
        fputs("  (size limit reached: not recording)", stderr);
    }
    text->line_shown = true;
}
