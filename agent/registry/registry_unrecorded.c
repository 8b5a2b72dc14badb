/* Reports processes and modules that could not be recorded although the policy wants them.
 *
 * Each report has the numbers so far, so the last report of a session counts. Reports are sent when
 * a number reaches a power of two: a session has few of them, and a recorder that is killed has
 * reported at least half. */
#include "agent/host/clock.h"
#include "agent/registry/registry_internal.h"
#include "agent/session/json_report.h"
#include "proto/base/utf8_text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static uint64_t count_unrecorded(const sj_registry *registry)
{
    return registry->counters.unjoined + registry->counters.plan_failures;
}

/* Sends the numbers. If that fails, a later report or the last one of the session has them. */
static void report_numbers(sj_registry *registry)
{
    const sj_registry_counters *counters = &registry->counters;
    const char *text_of_first =
        counters->unjoined != 0 ? counters->first_unjoined : counters->plan_failure;
    char first[4 * sizeof(counters->plan_failure)]; /* an escaped byte has four characters */
    const size_t length = sj_utf8_escape(text_of_first, strlen(text_of_first), first);
    json_t *json =
        json_pack("{s:I, s:I, s:s#}", "processes", (json_int_t)counters->unjoined, "modules",
                  (json_int_t)counters->plan_failures, "first", first, (int)length);
    const sj_report report = {
        .ticks = sj_clock_ticks(), .monitor = "recorder", .kind = "not_recorded"};
    if (sj_json_report_send(registry->options.writer, report, json) == SJ_OK) {
        registry->unrecorded_reported = count_unrecorded(registry);
    }
}

static void report_if_due(sj_registry *registry, uint64_t count)
{
    if ((count & (count - 1)) == 0) {
        report_numbers(registry);
    }
}

void sj_registry_note_plan_failure(sj_registry *registry, const char *path, const sj_error *error)
{
    sj_registry_counters *counters = &registry->counters;
    if (counters->plan_failures++ == 0) {
        snprintf(counters->plan_failure, sizeof(counters->plan_failure), "%.200s: %.300s", path,
                 error->text);
    }
    report_if_due(registry, counters->plan_failures);
}

void sj_registry_note_unplanned(sj_registry *registry, const char *what, sj_status reason)
{
    sj_error error = {0};
    (void)!sj_fail(&error, reason, "%s", sj_status_text(reason));
    pthread_mutex_lock(&registry->mutex);
    sj_registry_note_plan_failure(registry, what, &error);
    pthread_mutex_unlock(&registry->mutex);
}

void sj_registry_note_unjoined(sj_registry *registry, pid_t pid, sj_status reason)
{
    pthread_mutex_lock(&registry->mutex);
    sj_registry_counters *counters = &registry->counters;
    if (counters->unjoined++ == 0) {
        snprintf(counters->first_unjoined, sizeof(counters->first_unjoined), "process %d: %s",
                 (int)pid, sj_status_text(reason));
    }
    report_if_due(registry, counters->unjoined);
    pthread_mutex_unlock(&registry->mutex);
}

void sj_registry_end_unrecorded(sj_registry *registry)
{
    pthread_mutex_lock(&registry->mutex);
    if (registry->unrecorded_reported != count_unrecorded(registry)) {
        report_numbers(registry);
    }
    pthread_mutex_unlock(&registry->mutex);
}
