#include "agent/control/detach.h"
#include "collector-server/cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static int detach(pid_t pid)
{
    sj_error error = {0};
    sj_detach_report report;
    const sj_status status = sj_detach(pid, &report, &error);
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_detach,
                                status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED, "%s",
                                error.text);
    }
    if (!report.recorded.has_agent) {
        printf("process %d is not recorded\n", (int)pid);
        return SJ_EXIT_OK;
    }
    printf("process %d is left", (int)pid);
    if (report.leave.left_bytes != 0) {
        printf("; %llu KiB stay mapped until %s",
               (unsigned long long)report.leave.left_bytes / 1024,
               report.recorded.is_launched || report.leave.stays
                   ? "it ends"
                   : "no thread can come to them: detach again later");
    }
    if (report.leave.message_stubs != 0) {
        printf("; %llu stubs of messages stay mapped with it",
               (unsigned long long)report.leave.message_stubs);
    }
    if (report.leave.api_gate_bytes != 0) {
        printf("; %llu KiB that its calls by sojourn.h go through stay mapped",
               (unsigned long long)report.leave.api_gate_bytes / 1024);
    }
    putchar('\n');
    return SJ_EXIT_OK;
}

static int run_detach(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    char *end = NULL;
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            return sj_command_help(&sj_command_detach);
        }
        return sj_command_usage_error(&sj_command_detach, "there is no option %s",
                                      argv[optind - 1]);
    }
    if (optind + 1 != argc) {
        return sj_command_usage_error(&sj_command_detach, "name one process by its number");
    }
    const long pid = strtol(argv[optind], &end, 10);
    if (*end != '\0' || pid <= 0 || pid > INT32_MAX) {
        return sj_command_usage_error(&sj_command_detach, "\"%s\" is no number of a process",
                                      argv[optind]);
    }
    return detach((pid_t)pid);
}

const sj_command sj_command_detach = {
    .name = "detach",
    .summary = "end the recording of a process and take everything out of it",
    .usage = "sojourn detach PID",
    .help =
        "A recording that is under way is ended as Ctrl-C in `sojourn attach` ends it. When its\n"
        "recorder was killed, what it left in the process is cleaned up: every byte of code is\n"
        "restored and the agent is unloaded. A process that is not recorded stays as it is.\n\n"
        "Examples:\n"
        "  sojourn detach 4711\n"
        "  sojourn detach $(pidof app)\n",
    .run = run_detach,
};
