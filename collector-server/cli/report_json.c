#include "collector-server/cli/report_json.h"

#include "agent/abi/skip_text.h"
#include "agent/host/directories.h"
#include "collector-server/cli/report_shortfalls.h"
#include "collector-server/export/json_text.h"

#include <sys/wait.h>

static void json_number(FILE *file, const char *name, uint64_t value)
{
    fprintf(file, ",\n  \"%s\": %llu", name, (unsigned long long)value);
}

static void json_reasons(FILE *file, const sj_recording_summary *summary)
{
    const char *separator = "";
    fputs(",\n  \"left_out\": {", file);
    for (int i = 1; i < SJ_REGISTRY_SKIPS; i++) {
        if (summary->registry.skips[i] != 0) {
            fputs(separator, file);
            sj_json_text(file, sj_skip_text(i));
            fprintf(file, ": %llu", (unsigned long long)summary->registry.skips[i]);
            separator = ", ";
        }
    }
    fputc('}', file);
}

static void json_left_alone(FILE *file, const sj_registry_counters *registry)
{
    if (registry->unrecorded_runtime[0] != '\0') {
        fputs(",\n  \"unrecorded_runtime\": ", file);
        sj_json_text(file, registry->unrecorded_runtime);
    }
    if (registry->plan_failures != 0) {
        json_number(file, "unplanned_modules", registry->plan_failures);
        fputs(",\n  \"unplanned_module\": ", file);
        sj_json_text(file, registry->plan_failure);
    }
    if (registry->unjoined != 0) {
        json_number(file, "processes_not_recorded", registry->unjoined);
        fputs(",\n  \"unjoined_process\": ", file);
        sj_json_text(file, registry->first_unjoined);
    }
}

static void json_unrecorded(FILE *file, const sj_recording_summary *summary)
{
    const char *separator = "";
    fputs(",\n  \"unrecorded_programs\": {", file);
    for (int i = 0; i < SJ_UNRECORDED_KINDS; i++) {
        if (summary->drain.unrecorded[i] != 0 && sj_report_unrecorded_text(i) != NULL) {
            fprintf(file, "%s\"%s\": %llu", separator, sj_report_unrecorded_text(i),
                    (unsigned long long)summary->drain.unrecorded[i]);
            separator = ", ";
        }
    }
    fputs("}", file);
}

static void json_unrecorded_processes(FILE *file, const sj_recording_summary *summary)
{
    json_number(file, "left_processes", summary->left_processes);
    json_number(file, "left_hooked", summary->left_hooked);
    json_number(file, "full_after_ns", summary->full_after_ns);
    fputs(",\n  \"left\": [", file);
    for (uint32_t i = 0; i < summary->left_processes && i < SJ_LEFT_NAMED; i++) {
        fprintf(file, "%s{\"pid\": %d, \"name\": ", i != 0 ? ", " : "", (int)summary->left[i].pid);
        sj_json_text(file, summary->left[i].name);
        fputc('}', file);
    }
    fputc(']', file);
}

static void json_cost(FILE *file, const sj_recording_summary *summary)
{
    json_number(file, "elapsed_ns", summary->elapsed_ns);
    json_number(file, "traced_cpu_ns", summary->traced_cpu_ns);
    json_number(file, "estimated_probe_ns", summary->estimated_probe_ns);
    json_number(file, "hook_ns", summary->registry.hook_ns);
    json_number(file, "start_ns", summary->cost.start_cpu_ns);
    json_number(file, "watch_ns", summary->cost.watch_cpu_ns);
    json_number(file, "plan_ns", summary->registry.plan_ns);
}

static void json_attach(FILE *file, const sj_recording_summary *summary)
{
    json_number(file, "attach_ns", summary->attach.prepare_ns);
    json_number(file, "attach_stopped_ns", summary->attach.stopped_ns);
    json_number(file, "attach_stopped_cpu_ns", summary->attach.stopped_cpu_ns);
    json_number(file, "attach_patches", summary->attach.patches);
    json_number(file, "attach_refused", summary->attach.refused);
    json_number(file, "attach_moved", summary->attach.moved);
    json_number(file, "open_calls", summary->open_calls);
    json_number(file, "detach_stopped_ns", summary->detach.stopped_ns);
    json_number(file, "detach_stopped_cpu_ns", summary->detach.stopped_cpu_ns);
    json_number(file, "left_bytes", summary->detach.left_bytes);
    json_number(file, "guarded_blocks", summary->detach.heap_blocks);
    json_number(file, "message_stubs", summary->detach.message_stubs);
    json_number(file, "api_trampoline_bytes", summary->detach.api_trampoline_bytes);
}

static void json_watched(FILE *file, const sj_session_highlights *highlights)
{
    if (highlights->was_watched) {
        fputs(",\n  \"watched_memory\": ", file);
        sj_zombie_coverage_json(file, &highlights->coverage);
    }
}

void sj_report_json(FILE *file, const sj_report_text *text, const sj_recording_summary *summary,
                    uint64_t file_bytes)
{
    char session[SJ_SESSION_TEXT_BYTES];
    sj_session_text(&summary->session, session);
    fprintf(file, "{\n  \"session\": \"%s\",\n  \"state\": \"%s\",\n  \"target\": ", session,
            summary->how);
    sj_json_text(file, text->target);
    fprintf(file, ",\n  \"delivered\": %s,\n  \"agent_reported\": %s",
            summary->delivered ? "true" : "false", summary->agent_reported ? "true" : "false");
    if (!summary->delivered) {
        fputs(",\n  \"spool\": ", file);
        sj_json_text(file, summary->spool_directory);
    }
    if (text->doubts.quarantine_reason[0] != '\0') {
        fputs(",\n  \"quarantine_reason\": ", file);
        sj_json_text(file, text->doubts.quarantine_reason);
        fputs(",\n  \"quarantine_remedy\": ", file);
        sj_json_text(file, SJ_QUARANTINE_NEXT);
    }
    json_number(file, "folded_paths", text->doubts.folded_paths);
    json_number(file, "folded_calls", text->doubts.folded_calls);
    const int status = summary->wait_status;
    json_number(file, "exit_code", WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 0);
    json_number(file, "exit_signal", WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0);
    json_number(file, "processes", summary->registry.processes);
    json_number(file, "threads", summary->drain.threads);
    json_number(file, "modules", summary->registry.modules);
    json_number(file, "functions", summary->registry.functions);
    json_number(file, "hooked", summary->registry.hooked);
    json_reasons(file, summary);
    json_number(file, "text_bytes", summary->registry.text_bytes);
    json_number(file, "unknown_text_bytes", summary->registry.unknown_text_bytes);
    json_number(file, "records", summary->drain.records);
    json_number(file, "untimed_records", summary->drain.short_records);
    json_number(file, "calls", summary->calls);
    json_number(file, "lost_calls", summary->lost_calls);
    json_number(file, "lost_events", summary->lost_events);
    json_number(file, "inherited_exits", summary->drain.inherited_exits);
    json_number(file, "orphan_exits", summary->drain.orphan_exits);
    json_number(file, "dropped_events", summary->drain.dropped_events);
    json_number(file, "handler_events", summary->drain.handler_events);
    json_number(file, "refused_threads", summary->drain.refused_threads);
    json_number(file, "refused_functions", summary->drain.refused_functions);
    json_number(file, "refused_pages", summary->drain.refused_pages);
    json_number(file, "lost_values", summary->drain.lost_values);
    json_unrecorded(file, summary);
    json_unrecorded_processes(file, summary);
    json_number(file, "processes_without_arena", summary->drain.processes_without_arena);
    json_number(file, "processes_unreadable", summary->drain.processes_unreadable);
    json_number(file, "torn", summary->drain.torn);
    json_number(file, "waited_ns",
                (uint64_t)((double)summary->drain.waited_ticks * summary->ns_per_tick));
    json_number(file, "blocks", summary->writer.blocks);
    json_number(file, "block_bytes", summary->writer.block_bytes);
    json_number(file, "sent_bytes", summary->writer.bytes);
    json_number(file, "file_bytes", file_bytes);
    json_cost(file, summary);
    json_attach(file, summary);
    if (summary->empty_because[0] != '\0') {
        fputs(",\n  \"empty_because\": ", file);
        sj_json_text(file, summary->empty_because);
    }
    json_watched(file, &text->highlights);
    sj_report_shortfalls_json(file, summary);
    json_left_alone(file, &summary->registry);
    if (summary->unchanging[0] != '\0') {
        fputs(",\n  \"unchanging\": ", file);
        sj_json_text(file, summary->unchanging);
    }
    fprintf(file, ",\n  \"replaced\": %s", summary->replaced ? "true" : "false");
    json_number(file, "drain_cpu_ns", summary->drain.cpu_ns);
    fputs("\n}\n", file);
}
