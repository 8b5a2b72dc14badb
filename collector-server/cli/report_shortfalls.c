#include "collector-server/cli/report_shortfalls.h"

#include "collector-server/export/json_text.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

static void report_late_plans(FILE *file, const sj_registry_counters *registry)
{
    char missed[SJ_DURATION_TEXT_BYTES];
    if (registry->late_plans == 0) {
        return;
    }
    fprintf(
        file,
        "sojourn: a plan took longer than the program waits: calls of %s are missing for %s, %s",
        registry->late_module, sj_format_duration((int64_t)registry->late_missed_ns, missed),
        registry->late_unhooked != 0 ? "to the end; the plan is kept for the next recording"
                                     : "until it was hooked");
    if (registry->late_plans > 1) {
        fprintf(file, "; so are calls of %s for some time",
                SJ_COUNTED(registry->late_plans - 1, "other module"));
    }
    fputc('\n', file);
}

static void report_overwritten(FILE *file, const sj_registry_counters *registry)
{
    if (registry->overwritten != 0) {
        fprintf(
            file,
            "sojourn: the program has overwritten the hooks of %s, the first is %s: later calls "
            "are missing or have no end\n",
            SJ_COUNTED(registry->overwritten, "function"), registry->first_overwritten);
    }
}

static void json_number(FILE *file, const char *name, uint64_t value)
{
    fprintf(file, ",\n  \"%s\": %llu", name, (unsigned long long)value);
}

static void json_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\n  \"%s\": ", name);
    sj_json_text(file, text);
}

static void json_late_plans(FILE *file, const sj_registry_counters *registry)
{
    if (registry->late_plans != 0) {
        json_number(file, "late_plans", registry->late_plans);
        json_number(file, "late_unhooked", registry->late_unhooked);
        json_number(file, "late_missed_ns", registry->late_missed_ns);
        json_text(file, "late_module", registry->late_module);
    }
}

/* Reports an exception that ended many nested calls: it is most likely a StackOverflowError. */
static void report_deep_exception(FILE *file, const sj_drain_counters *drain)
{
    if (drain->longest_throw >= SJ_DEEP_THROW) {
        fprintf(file,
                "sojourn: an exception ended %llu nested calls of methods; if it was a "
                "StackOverflowError: methods with probes need more stack, a larger -Xss gives the "
                "depth back\n",
                (unsigned long long)drain->longest_throw);
    }
}

void sj_report_shortfalls(FILE *file, const sj_recording_summary *summary)
{
    report_late_plans(file, &summary->registry);
    report_overwritten(file, &summary->registry);
    report_deep_exception(file, &summary->drain);
}

void sj_report_shortfalls_json(FILE *file, const sj_recording_summary *summary)
{
    json_late_plans(file, &summary->registry);
    if (summary->registry.overwritten != 0) {
        json_number(file, "overwritten", summary->registry.overwritten);
        json_text(file, "first_overwritten", summary->registry.first_overwritten);
    }
    if (summary->drain.longest_throw >= SJ_DEEP_THROW) {
        json_number(file, "deep_exception_calls", summary->drain.longest_throw);
    }
}

void sj_report_undelivered(FILE *file, const char *target, const sj_recording_summary *summary)
{
    if (summary->set_aside[0] != '\0') {
        fprintf(file, "sojourn: %s does not have %s\n", target, summary->set_aside);
    }
    if (!summary->delivered && !summary->answered) {
        fprintf(
            file,
            "sojourn: %s has not accepted everything (%s); the rest is kept in %s: run \"sojourn "
            "flush\" later\n",
            target,
            summary->undelivered_reason[0] != '\0' ? summary->undelivered_reason : "no answer",
            summary->spool_directory);
    }
}
