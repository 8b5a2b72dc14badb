#include "agent/attach/detach_request.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/process_list.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct detach_options {
    bool as_json;
} detach_options;

static int print_json(pid_t pid, const sj_detach_report *report)
{
    return sj_json_output(&sj_command_detach,
                          json_pack("{si sb sI sI sI sI}", "pid", (int)pid, "was_recorded",
                                    (int)report->recorded.has_agent, "left_bytes",
                                    (json_int_t)report->process.left_bytes, "message_stubs",
                                    (json_int_t)report->process.message_stubs, "guarded_blocks",
                                    (json_int_t)report->process.heap_blocks, "api_bytes",
                                    (json_int_t)report->process.api_trampoline_bytes));
}

static int detach_process(pid_t pid, const detach_options *options)
{
    sj_error error = {0};
    sj_detach_report report = {0};
    const sj_status status = sj_detach(pid, &report, &error);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_detach, &error);
    }
    if (options->as_json) {
        return print_json(pid, &report);
    }
    if (!report.recorded.has_agent) {
        printf("process %d is not recorded\n", (int)pid);
        return SJ_EXIT_OK;
    }
    printf("process %d is left", (int)pid);
    if (report.process.left_bytes != 0) {
        printf("; %llu KiB stay mapped until %s",
               (unsigned long long)report.process.left_bytes / 1024,
               report.recorded.is_launched || report.process.stays
                   ? "it ends"
                   : "no thread can come to them: detach again later");
    }
    if (report.process.message_stubs != 0) {
        printf("; it keeps %s for messages, and nothing is recorded there",
               SJ_COUNTED(report.process.message_stubs, "stub"));
    }
    if (report.process.heap_blocks != 0) {
        printf("; it keeps %s, so its calls of free stay redirected",
               SJ_COUNTED(report.process.heap_blocks, "guarded block"));
    }
    if (report.process.api_trampoline_bytes != 0) {
        printf("; %llu KiB that its calls by sojourn.h go through stay mapped",
               (unsigned long long)report.process.api_trampoline_bytes / 1024);
    }
    putchar('\n');
    return SJ_EXIT_OK;
}

static int run_detach(int argc, char **argv)
{
    sj_error error = {0};
    pid_t pid = 0;
    detach_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_detach, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first + 1 != argc) {
        return sj_command_usage_error(&sj_command_detach, "name one process by its number or name");
    }
    if (sj_process_find(argv[first], &pid, &error) != SJ_OK) {
        return sj_process_refuse(&sj_command_detach, &error);
    }
    return detach_process(pid, &options);
}

static const sj_option detach_table[] = {{.name = "json",
                                          .kind = SJ_ARG_FLAG,
                                          .offset = offsetof(detach_options, as_json),
                                          .help = "as JSON, with what is left in the process"},
                                         {0}};

const sj_command sj_command_detach = {
    .name = "detach",
    .summary = "end the recording of a process and remove all hooks from it",
    .usage = "sojourn detach [--json] PID|NAME",
    .help =
        "Ends a running recording as Ctrl-C in `sojourn attach` does. If its recorder was killed,\n"
        "restores every byte of code and unloads the agent. A process that is not recorded is\n"
        "not modified.\n",
    .options = detach_table,
    .examples = "Examples:\n"
                "  sojourn detach 4711\n"
                "  sojourn detach $(pidof app)\n",
    .run = run_detach,
};
