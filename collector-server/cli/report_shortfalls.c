#include "collector-server/cli/report_shortfalls.h"

#include "collector-server/export/json_text.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

static void report_late(FILE *file, const sj_registry_counters *registry)
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

static void json_number(FILE *file, const char *name, uint64_t value)
{
    fprintf(file, ",\n  \"%s\": %llu", name, (unsigned long long)value);
}

static void json_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\n  \"%s\": ", name);
    sj_json_text(file, text);
}

static void json_late(FILE *file, const sj_registry_counters *registry)
{
    if (registry->late_plans != 0) {
        json_number(file, "late_plans", registry->late_plans);
        json_number(file, "late_unhooked", registry->late_unhooked);
        json_number(file, "late_missed_ns", registry->late_missed_ns);
        json_text(file, "late_module", registry->late_module);
    }
}

void sj_report_shortfalls(FILE *file, const sj_recording_summary *summary)
{
    report_late(file, &summary->registry);
}

void sj_report_shortfalls_json(FILE *file, const sj_recording_summary *summary)
{
    json_late(file, &summary->registry);
}
