#include "agent/control/live.h"
#include "collector-server/cli/commands.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int exit_code_of(sj_status status)
{
    return status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED;
}

static int list_candidates(const sj_command *command, const sj_live_list *list)
{
    const int code = sj_command_error(
        command, SJ_EXIT_USAGE, "%zu recordings go on; name one with --session:", list->count);
    for (size_t i = 0; i < list->count; i++) {
        fprintf(stderr, "  %s\n", list->sessions[i]);
    }
    return code;
}

static int send_to(const sj_command *command, const char *session, sj_link_type type, bool end,
                   const char *name)
{
    sj_error error = {0};
    const sj_link_mark mark = {.end = end, .name_bytes = (uint32_t)strlen(name)};
    const sj_status status =
        sj_live_request(session, type, &mark, sizeof(mark), name, NULL, 0, &error);
    return status == SJ_OK ? SJ_EXIT_OK
                           : sj_command_error(command, exit_code_of(status), "%s", error.text);
}

/* send_live finds the one recording that is meant. */
static int send_live(const sj_command *command, const char *prefix, sj_link_type type, bool end,
                     const char *name)
{
    sj_live_list list;
    sj_error error = {0};
    if (name[0] == '\0' || strlen(name) > SJ_LINK_MARK_NAME_BYTES) {
        return sj_command_usage_error(command, "a name has at least 1 and at most %d bytes",
                                      SJ_LINK_MARK_NAME_BYTES);
    }
    const sj_status status = sj_live_find(prefix, &list, &error);
    if (status != SJ_OK) {
        return sj_command_error(command, SJ_EXIT_FAILED, "%s", error.text);
    }
    if (list.count == 0) {
        return sj_command_error(command, SJ_EXIT_NOT_FOUND, "nothing is being recorded%s%s",
                                prefix[0] != '\0' ? " as session " : "", prefix);
    }
    return list.count == 1 ? send_to(command, list.sessions[0], type, end, name)
                           : list_candidates(command, &list);
}

/* take_options gives the value of --session ("" when there is none); returns -1, or an exit code.
 */
static int take_options(const sj_command *command, int argc, char **argv, const char **session)
{
    static const struct option long_options[] = {{"session", required_argument, NULL, 's'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    int option;
    *session = "";
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":s:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            return sj_command_help(command);
        }
        if (option != 's') {
            return sj_command_usage_error(command, "%s: unknown option or no value",
                                          argv[optind - 1]);
        }
        *session = optarg;
    }
    return -1;
}

static int run_mark(int argc, char **argv)
{
    const char *session;
    const int code = take_options(&sj_command_mark, argc, argv, &session);
    if (code >= 0) {
        return code;
    }
    const bool begin = optind < argc && strcmp(argv[optind], "begin") == 0;
    const bool end = optind < argc && strcmp(argv[optind], "end") == 0;
    if (argc - optind != 2 || (!begin && !end)) {
        return sj_command_usage_error(&sj_command_mark, "say begin or end, and a name");
    }
    return send_live(&sj_command_mark, session, SJ_LINK_MARK, end, argv[optind + 1]);
}

static int run_trigger(int argc, char **argv)
{
    const char *session;
    const int code = take_options(&sj_command_trigger, argc, argv, &session);
    if (code >= 0) {
        return code;
    }
    if (argc - optind != 1) {
        return sj_command_usage_error(&sj_command_trigger, "name one trigger");
    }
    return send_live(&sj_command_trigger, session, SJ_LINK_TRIGGER, false, argv[optind]);
}

const sj_command sj_command_mark = {
    .name = "mark",
    .summary = "mark the beginning or the end of a phase in a recording that goes on",
    .usage = "sojourn mark [--session ID] begin|end NAME",
    .help = "Puts a mark with the present time in the session that is being recorded on this\n"
            "machine by this user: a test case, a phase, a moment. Marks are rows of the table\n"
            "marks. A program can mark by itself with sojourn.h.\n\n"
            "Options:\n"
            "  --session ID   the session, or the first digits of its id; needed when several are\n"
            "                 being recorded\n"
            "  --help         this text\n\n"
            "Examples:\n"
            "  sojourn mark begin login\n"
            "  sojourn mark --session 4f2a end login\n",
    .run = run_mark,
};

const sj_command sj_command_trigger = {
    .name = "trigger",
    .summary = "set off a trigger \"command\" of the policy of a recording that goes on",
    .usage = "sojourn trigger [--session ID] NAME",
    .help =
        "The policy decides what follows: a dump of the last seconds in flight mode, a start, a\n"
        "stop, a mark. The names that it knows are those of its triggers with \"on\":\n"
        "\"command\"; one without a name takes any.\n\n"
        "Options:\n"
        "  --session ID   the session, or the first digits of its id; needed when several are\n"
        "                 being recorded\n"
        "  --help         this text\n\n"
        "Examples:\n"
        "  sojourn trigger dump\n"
        "  sojourn trigger --session 4f2a stop\n",
    .run = run_trigger,
};
