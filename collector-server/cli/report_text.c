#include "collector-server/cli/report_text.h"

#include "agent/abi/skip_text.h"
#include "agent/host/directories.h"
#include "collector-server/cli/highlights_text.h"
#include "collector-server/cli/report_cost.h"
#include "collector-server/cli/report_progress.h"
#include "collector-server/cli/report_shortfalls.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOP_REASONS = 3, HIGHLIGHT_LINES = 7 };

static void report_reasons(FILE *file, const sj_recording_summary *summary)
{
    const uint64_t *skips = summary->registry.skips;
    uint64_t bound = UINT64_MAX;
    int last = -1;
    for (int reported = 0; reported < TOP_REASONS; reported++) {
        int best = -1;
        for (int i = 1; i < SJ_REGISTRY_SKIPS; i++) {
            const bool is_next = skips[i] < bound || (skips[i] == bound && i > last);
            if (skips[i] != 0 && is_next && (best < 0 || skips[i] > skips[best])) {
                best = i;
            }
        }
        if (best < 0) {
            break;
        }
        fprintf(file, "%s%llu %s", reported == 0 ? "; not recorded: " : ", ",
                (unsigned long long)skips[best], sj_skip_text(best));
        bound = skips[best];
        last = best;
    }
    fputc('\n', file);
}

static void report_unknown_code(FILE *file, const sj_registry_counters *registry)
{
    if (registry->poor_modules == 0) {
        return;
    }
    fprintf(file, "  code       %llu %% of the code of %s is in no known function",
            (unsigned long long)registry->poor_module_percent, registry->poor_module);
    if (registry->poor_modules > 1) {
        fprintf(file, ", and much of %s", SJ_COUNTED(registry->poor_modules - 1, "other module"));
    }
    fputs("; its debug package, or --map with its linker map, names it\n", file);
}

static void report_unmatched(FILE *file, const sj_recording_summary *summary)
{
    if (summary->unmatched[0] != '\0') {
        fprintf(file, "  policy     nothing matched %s\n", summary->unmatched);
    }
}

static void report_budget(FILE *file, const sj_recording_summary *summary)
{
    const sj_overhead_governor_counters *budget = &summary->drain.budget;
    if (budget->unhooked == 0 && budget->failures == 0 && budget->overhead_percent <= 0) {
        return;
    }
    fprintf(file, "  budget     about %.2f %% spent, %s unhooked, %llu hooked again",
            budget->overhead_percent, SJ_COUNTED(budget->unhooked, "function"),
            (unsigned long long)budget->rehooked);
    if (budget->failures != 0) {
        fprintf(file, ", refused %s", SJ_COUNTED(budget->failures, "time"));
    }
    fputc('\n', file);
}

/* Reports lost values. The calls of most of these values were recorded. */
static void report_lost_values(FILE *file, const sj_recording_summary *summary)
{
    if (summary->drain.lost_values != 0) {
        fprintf(file,
                "sojourn: lost %s of calls: too many calls were open at once, had "
                "begun before they were recorded, or lie in gaps, or rules by number or signature "
                "meet others by debug data at one function\n",
                SJ_COUNTED(summary->drain.lost_values, "value"));
    }
}

/* Reports events that found a full buffer. Events of signal handlers are reported separately: a
 * handler that interrupts its thread while that reserves buffer space cannot wait. */
static void report_drops(FILE *file, const sj_report_text *text, const sj_drain_counters *drain)
{
    const uint64_t handler_events = drain->handler_events < drain->dropped_events
                                        ? drain->handler_events
                                        : drain->dropped_events;
    if (handler_events != 0) {
        fprintf(file,
                "sojourn: dropped %s of signal handlers while their thread waited for "
                "buffer space; record fewer functions or use --mode profile\n",
                SJ_COUNTED(handler_events, "event"));
    }
    if (drain->dropped_events != handler_events) {
        fprintf(file, "sojourn: %s found a full buffer; %s\n",
                SJ_COUNTED(drain->dropped_events - handler_events, "event"),
                text->drops
                    ? "--when-full block lets the program wait for buffer space"
                    : "a longer --block-ms lets the program wait (not in signal handlers, nor "
                      "behind a filter of system calls); fewer functions or --mode "
                      "profile make fewer events");
    }
}

static void report_losses(FILE *file, const sj_report_text *text,
                          const sj_recording_summary *summary)
{
    const uint64_t unreported = text->quiet ? summary->drain.dropped_events : summary->lost_events;
    if (summary->lost_calls == 0 && unreported == 0 && summary->drain.refused_threads == 0) {
        if (!text->quiet) {
            fprintf(file, "  lost       %s%s\n",
                    summary->drain.lost_values == 0 ? "nothing" : "no call, but values",
                    summary->left_processes != 0 ? ", up to the end of the recording" : "");
        }
        return;
    }
    /* Both may be 0: in a flight recording, events outside of all dumps are not counted here. */
    if (summary->lost_calls != 0 || summary->lost_events != 0) {
        fprintf(file, "%s%s, %s; marked as gaps\n",
                text->quiet ? "sojourn: lost " : "  lost       ",
                SJ_COUNTED(summary->lost_calls, "call"), SJ_COUNTED(summary->lost_events, "event"));
    }
    if (summary->drain.refused_pages != 0) {
        fprintf(file,
                "sojourn: shared memory was full: %s and %s were not recorded; "
                "enlarge /dev/shm (docker run --shm-size=1g) or point XDG_RUNTIME_DIR at a larger "
                "tmpfs\n",
                SJ_COUNTED(summary->drain.dropped_events, "event"),
                SJ_COUNTED(summary->drain.refused_threads, "thread"));
        return;
    }
    if (summary->drain.refused_threads != 0) {
        fprintf(file,
                "sojourn: %s exceeded the number of threads that are recorded at once; "
                "use a larger --threads\n",
                SJ_COUNTED(summary->drain.refused_threads, "thread"));
    }
    report_drops(file, text, &summary->drain);
}

static const char *const unrecorded_texts[SJ_UNRECORDED_KINDS] = {
    [SJ_UNRECORDED_KIND] = "static or for another machine",
    [SJ_UNRECORDED_SET_USER] = "set-user-id or set-group-id",
    [SJ_UNRECORDED_SANITIZER] = "built with AddressSanitizer's shared runtime",
    [SJ_UNRECORDED_ROOT] = "under a root directory without the agent or the recorder",
    [SJ_UNRECORDED_FILTER] = "behind a filter of system calls",
    [SJ_UNRECORDED_FORK] = "forked by a system call of the program's own instead of fork()",
    [SJ_UNRECORDED_USER] = "of a user who may not reach the recorder",
    [SJ_UNRECORDED_UNKNOWN] = "of a file that cannot be read, or in which the agent did not start",
    [SJ_UNRECORDED_UNFOLLOWED] = "not followed here (`sojourn record --children all` follows them)",
    [SJ_UNRECORDED_UNSEEN] = "run by a system call of the program's own instead of exec()",
    [SJ_UNRECORDED_ENVIRONMENT] = "run with more environment variables than the agent can pass on"};

const char *sj_report_unrecorded_text(int kind)
{
    return unrecorded_texts[kind];
}

static void report_unrecorded(FILE *file, const sj_recording_summary *summary)
{
    const char *separator = "  not recorded  ";
    for (int i = 0; i < SJ_UNRECORDED_KINDS; i++) {
        const uint64_t count = summary->drain.unrecorded[i];
        if (count != 0 && unrecorded_texts[i] != NULL) {
            fprintf(file, "%s%llu %s %s", separator, (unsigned long long)count,
                    count == 1 ? "process that is" : "processes that are", unrecorded_texts[i]);
            separator = ", ";
        }
    }
    if (separator[0] == ',') {
        fputc('\n', file);
    }
}

/* Reports functions whose values or callers were not recorded, because a table in the process was
 * full. */
static void report_refused(FILE *file, const sj_recording_summary *summary)
{
    if (summary->drain.refused_functions != 0) {
        fprintf(
            file,
            "sojourn: a full table in the program left out %s whose values are read at exits, or "
            "that rules name as callers; use narrower patterns\n",
            SJ_COUNTED(summary->drain.refused_functions, "function"));
    }
}

static void report_size_limit(FILE *file, const sj_recording_summary *summary)
{
    sj_time_text after;
    if (summary->full_after_ns != 0) {
        fprintf(file,
                "sojourn: the size limit was reached after %s: the functions were unhooked, and "
                "later calls are not counted; use a larger --max-bytes\n",
                sj_format_time(summary->full_after_ns, &after));
    } else {
        fputs("sojourn: the size limit was reached: later calls are counted as lost; use a larger "
              "--max-bytes\n",
              file);
    }
}

static void report_calls(FILE *file, const sj_report_text *text,
                         const sj_recording_summary *summary)
{
    sj_time_text texts[2];
    char bytes[SJ_BYTES_TEXT_BYTES];
    fprintf(file, "  calls      %llu by %s of %s in %s", (unsigned long long)summary->calls,
            SJ_COUNTED(summary->drain.threads, "thread"),
            SJ_COUNTED(summary->registry.processes, "process"),
            sj_format_time(summary->elapsed_ns, &texts[0]));
    if (summary->traced_cpu_ns != 0) {
        fprintf(file, " (%s CPU)", sj_format_time(summary->traced_cpu_ns, &texts[1]));
    }
    if (summary->writer.block_calls != 0) {
        fprintf(file, "; %s sent", sj_format_bytes((int64_t)summary->writer.bytes, bytes));
    }
    fputc('\n', file);
    sj_report_cost(file, &summary->cost);
    report_unmatched(file, summary);
    report_budget(file, summary);
    report_unrecorded(file, summary);
    report_refused(file, summary);
    report_losses(file, text, summary);
    report_lost_values(file, summary);
}

static void report_function_log(FILE *file, const sj_report_text *text,
                                const sj_recording_summary *summary)
{
    const sj_function_log_counters *log = &summary->function_log;
    if (log->lines != 0 && !text->quiet) {
        fprintf(file, "  lines      %llu in function.txt", (unsigned long long)log->lines);
        if (log->removed_files != 0) {
            fprintf(file, "; removed %s (--function-txt-files)",
                    SJ_COUNTED(log->removed_files, "older file"));
        }
        fputc('\n', file);
    }
    if (log->failure != 0) {
        fprintf(file, "sojourn: function.txt is incomplete: %s\n", strerror(log->failure));
    }
    if (log->unwritten_lines != 0) {
        fprintf(file, "sojourn: function.txt lacks %s: out of memory\n",
                SJ_COUNTED(log->unwritten_lines, "line"));
    }
}

/* Says why memory of the agent stays in a program, and until when. */
static const char *why_left(const sj_recording_summary *summary)
{
    return summary->detach.stays
               ? "stay until the process ends, which has code that needs them, or whose loader was "
                 "locked when it was forked"
               : "a thread may still come to; gone at the next attach or detach";
}

/* Reports how long attaching paused the process, and what detaching left in it. */
static void report_attach(FILE *file, const sj_recording_summary *summary)
{
    const sj_attach_report *attach = &summary->attach;
    sj_time_text texts[3];
    if (attach->prepare_ns == 0) {
        return;
    }
    fprintf(file, "  attached   in %s; paused %s on attach, %s on detach\n",
            sj_format_time(attach->prepare_ns, &texts[0]),
            sj_format_time(attach->stopped_ns, &texts[1]),
            sj_format_time(summary->detach.stopped_ns, &texts[2]));
    if (summary->open_calls != 0) {
        fprintf(file, "  open       %s %s open when recording began\n",
                SJ_COUNTED(summary->open_calls, "call"), summary->open_calls == 1 ? "was" : "were");
    }
    if (summary->registry.jvm_batches != 0) {
        fprintf(file, "  java       %s transformed again in %s: %s, the longest %s\n",
                SJ_COUNTED(summary->registry.jvm_retransformed, "loaded class"),
                SJ_COUNTED(summary->registry.jvm_batches, "batch"),
                sj_format_time(summary->registry.jvm_total_ns, &texts[0]),
                sj_format_time(summary->registry.jvm_longest_ns, &texts[1]));
    }
    if (summary->registry.jvm_hidden_before != 0) {
        fprintf(file, "  java       %s %s there before: listed, not recorded\n",
                SJ_COUNTED(summary->registry.jvm_hidden_before, "hidden class"),
                summary->registry.jvm_hidden_before == 1 ? "was" : "were");
    }
    if (summary->jvm_unjoined) {
        fputs(
            "  java       the JVM was not joined (it starts, it ends, or it refused): no methods\n",
            file);
    }
    if (summary->replaced) {
        fputs("  ended      the process executed another program, which is not recorded\n", file);
    }
    if (summary->detach.left_bytes != 0) {
        fprintf(file, "  left over  %llu KiB that %s\n",
                (unsigned long long)summary->detach.left_bytes / 1024, why_left(summary));
    }
    if (summary->detach.heap_blocks != 0) {
        fprintf(file, "  left over  %s; the program's calls of free stay redirected\n",
                SJ_COUNTED(summary->detach.heap_blocks, "guarded block"));
    }
    if (summary->detach.message_stubs != 0) {
        fprintf(
            file,
            "  left over  %s for messages, because the program may have kept addresses; nothing "
            "is recorded there\n",
            SJ_COUNTED(summary->detach.message_stubs, "stub"));
    }
    if (summary->detach.api_trampoline_bytes != 0) {
        fprintf(file, "  left over  %llu KiB that its calls by sojourn.h go through\n",
                (unsigned long long)summary->detach.api_trampoline_bytes / 1024);
    }
}

/* Prints a line for each rule that should have changed calls and did not. */
static void report_unchanging(FILE *file, const char *lines)
{
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        fprintf(file, "sojourn: %.*s\n", (int)length, lines);
        lines += length + (lines[length] != '\0');
    }
}

static void report_unrecorded_processes(FILE *file, const sj_recording_summary *summary)
{
    const uint32_t count = summary->left_processes;
    if (count == 0) {
        return;
    }
    fprintf(file, "sojourn: %s of the program %s running and %s no longer recorded: ",
            SJ_COUNTED(count, "process"), count == 1 ? "is" : "are", count == 1 ? "is" : "are");
    for (uint32_t i = 0; i < count && i < SJ_LEFT_NAMED; i++) {
        fprintf(file, "%s%s (%d)", i != 0 ? ", " : "", summary->left[i].name,
                (int)summary->left[i].pid);
    }
    fprintf(file, "%s; \"sojourn attach PID\" records one from now on%s\n",
            count > SJ_LEFT_NAMED ? ", ..." : "",
            summary->program_left ? "" : ", --until-all-end would have recorded all to their end");
    if (summary->left_hooked != 0) {
        fprintf(
            file,
            "sojourn: %u of them keep%s the hooks, which record nothing; \"sojourn detach PID\" "
            "takes them out\n",
            summary->left_hooked, summary->left_hooked == 1 ? "s" : "");
    }
}

/* Reports the modules and processes that the recorder could not record. */
static void report_refusals(FILE *file, const sj_registry_counters *registry)
{
    if (registry->plan_failures != 0) {
        fprintf(file, "sojourn: left alone %s; the first: %s\n",
                SJ_COUNTED(registry->plan_failures, "module"), registry->plan_failure);
    }
    if (registry->unjoined != 0) {
        fprintf(file, "sojourn: %s could not be recorded; the first: %s\n",
                SJ_COUNTED(registry->unjoined, "process"), registry->first_unjoined);
    }
}

static void report_problems(FILE *file, const sj_report_text *text,
                            const sj_recording_summary *summary)
{
    if (summary->drain.processes_without_arena != 0 && (!text->quiet || !summary->agent_reported)) {
        fprintf(file,
                "sojourn: processes in which nothing could be recorded: %llu; full shared "
                "memory (/dev/shm, XDG_RUNTIME_DIR), a limit of their address space (ulimit -v) or "
                "of a file's size (ulimit -f) leaves no room for the records, or they ended at "
                "once\n",
                (unsigned long long)summary->drain.processes_without_arena);
    } else if (!summary->agent_reported && strcmp(summary->how, "interrupted") == 0) {
        fputs("sojourn: stopped before the program began; nothing was recorded\n", file);
    } else if (!summary->agent_reported) {
        fputs("sojourn: the agent never finished its start in the program, so nothing or not all "
              "was recorded; \"sojourn functions\" shows what can be recorded\n",
              file);
    }
    if (summary->empty_because[0] != '\0') {
        fprintf(file, "sojourn: nothing was recorded: %s\n", summary->empty_because);
    }
    report_unchanging(file, summary->unchanging);
    if (summary->registry.unrecorded_runtime[0] != '\0') {
        fprintf(file,
                "sojourn: methods of %s are not recorded with --clock adaptive; record again "
                "without it to have them\n",
                summary->registry.unrecorded_runtime);
    }
    if (summary->registry.jvm_virtual_calls != 0) {
        fprintf(
            file,
            "sojourn: only counted %s of Java methods in virtual threads, because such threads are "
            "not followed\n",
            SJ_COUNTED(summary->registry.jvm_virtual_calls, "call"));
    }
    sj_report_shortfalls(file, summary);
    report_refusals(file, &summary->registry);
    if (summary->drain.failure != SJ_OK) {
        fprintf(file, "sojourn: recording ended early: %s\n",
                sj_status_text(summary->drain.failure));
    }
    if (summary->writer.reached_max_bytes) {
        report_size_limit(file, summary);
    }
    if (summary->detach_problem[0] != '\0') {
        fprintf(file, "sojourn: the agent could not be detached: %s\n", summary->detach_problem);
    } else if (text->quiet && summary->detach.left_bytes != 0) {
        fprintf(file, "sojourn: left over in the program: %llu KiB that %s\n",
                (unsigned long long)summary->detach.left_bytes / 1024, why_left(summary));
    }
    if (summary->program_left && summary->attach.prepare_ns == 0) {
        fputs("sojourn: recording was stopped; the program continues without it\n", file);
    }
    report_unrecorded_processes(file, summary);
    sj_report_undelivered(file, text->target, summary);
    if (text->doubts.quarantine_reason[0] != '\0') {
        fprintf(file, "sojourn: the session has no sums (tree, functions, report): %s; %s\n",
                text->doubts.quarantine_reason, SJ_QUARANTINE_NEXT);
    }
    if (text->doubts.folded_paths != 0) {
        fprintf(file,
                "sojourn: the session has more call paths than are kept; the %llu rarest, with "
                "%s, were folded: %s\n",
                (unsigned long long)text->doubts.folded_paths,
                SJ_COUNTED(text->doubts.folded_calls, "call"), SJ_FOLDED_NEXT);
    }
}

enum { SUMMARY_INDENT = 13 };

static void print_summary(FILE *file, sj_report_text *text, const sj_recording_summary *summary,
                          uint64_t file_bytes)
{
    if (text->quiet) {
        report_refused(file, summary);
        report_losses(file, text, summary);
        report_lost_values(file, summary);
    } else {
        char session[SJ_SESSION_TEXT_BYTES];
        sj_session_text(&summary->session, session);
        fprintf(file, "sojourn: session %s, %s -> %s", session, summary->how, text->target);
        if (file_bytes != 0) {
            fprintf(file, " (%llu bytes)", (unsigned long long)file_bytes);
        }
        fprintf(file, "\n  functions  %llu of %llu instrumented (%llu %s)",
                (unsigned long long)summary->registry.hooked,
                (unsigned long long)summary->registry.functions,
                (unsigned long long)summary->registry.modules,
                summary->registry.modules == 1 ? "module" : "modules");
        report_reasons(file, summary);
        report_unknown_code(file, &summary->registry);
        report_attach(file, summary);
        report_calls(file, text, summary);
    }
    report_function_log(file, text, summary);
    report_problems(file, text, summary);
    if (text->is_stored && !text->quiet && summary->delivered) {
        sj_highlights_print(file, &text->highlights, strcmp(summary->how, "crashed") == 0,
                            text->target, HIGHLIGHT_LINES);
    }
}

void sj_report_text_summary(sj_report_text *text, const sj_recording_summary *summary,
                            uint64_t file_bytes)
{
    char *lines = NULL;
    size_t size = 0;
    sj_terminal terminal = {0};
    FILE *file = open_memstream(&lines, &size);
    sj_progress_end(text->wait);
    sj_report_progress_clear(text);
    sj_terminal_describe(STDERR_FILENO, &terminal);
    print_summary(file != NULL ? file : stderr, text, summary, file_bytes);
    if (file == NULL) {
        return;
    }
    fclose(file);
    if (lines[0] != '\0' && !text->has_terminal) {
        sj_terminal_begin_line(stderr, &terminal);
    }
    sj_terminal_wrap(stderr, &terminal, lines, SUMMARY_INDENT);
    free(lines);
}
