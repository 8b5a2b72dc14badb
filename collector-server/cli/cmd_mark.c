#include "agent/link/link_requests.h"
#include "collector-server/cli/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int report_candidates(const sj_command *command, const sj_link_peers *recordings)
{
    const int code =
        sj_command_error(command, SJ_EXIT_USAGE,
                         "%zu recordings are running; name one with --session:", recordings->count);
    for (size_t i = 0; i < recordings->count; i++) {
        fprintf(stderr, "  %s\n", recordings->sessions[i]);
    }
    return code;
}

static int send_request(const sj_command *command, const char *session, sj_link_type type, bool end,
                        const char *name)
{
    sj_error error = {0};
    const sj_link_mark mark = {.end = end, .name_bytes = (uint32_t)strlen(name)};
    const sj_status status =
        sj_link_request(session, type, &mark, sizeof(mark), name, NULL, 0, &error);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(command, &error);
}

/* Sends a mark or a trigger to the only recording whose session id begins with `prefix`. Fails if
 * the recording does not exist, or several match. */
static int send_live(const sj_command *command, const char *prefix, sj_link_type type, bool end,
                     const char *name)
{
    sj_link_peers recordings;
    sj_error error = {0};
    if (name[0] == '\0' || strlen(name) > SJ_LINK_MARK_NAME_BYTES) {
        return sj_command_usage_error(command, "a name has at least 1 and at most %d bytes",
                                      SJ_LINK_MARK_NAME_BYTES);
    }
    const sj_status status = sj_link_peer_find(prefix, &recordings, &error);
    if (status != SJ_OK) {
        return sj_command_failed(command, &error);
    }
    if (recordings.count == 0) {
        return sj_command_error(command, SJ_EXIT_NOT_FOUND, "nothing is being recorded%s%s",
                                prefix[0] != '\0' ? " as session " : "", prefix);
    }
    return recordings.count == 1 ? send_request(command, recordings.sessions[0], type, end, name)
                                 : report_candidates(command, &recordings);
}

typedef struct mark_options {
    const char *session;
} mark_options;

static int run_mark(int argc, char **argv)
{
    mark_options options = {.session = ""};
    int first = 0;
    const int code = sj_options_parse(&sj_command_mark, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const bool begin = first < argc && strcmp(argv[first], "begin") == 0;
    const bool end = first < argc && strcmp(argv[first], "end") == 0;
    if (argc - first != 2 || (!begin && !end)) {
        return sj_command_usage_error(&sj_command_mark, "say begin or end, and a name");
    }
    return send_live(&sj_command_mark, options.session, SJ_LINK_MARK, end, argv[first + 1]);
}

static int run_trigger(int argc, char **argv)
{
    mark_options options = {.session = ""};
    int first = 0;
    const int code = sj_options_parse(&sj_command_trigger, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (argc - first != 1) {
        return sj_command_usage_error(&sj_command_trigger, "name one trigger");
    }
    return send_live(&sj_command_trigger, options.session, SJ_LINK_TRIGGER, false, argv[first]);
}

static const sj_option options_table[] = {
    {.name = "session",
     .argument = "ID",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(mark_options, session),
     .letter = 's',
     .help = "the session, or the first digits of its id; needed when several are\n"
             "being recorded"},
    {0}};

const sj_command sj_command_mark = {
    .name = "mark",
    .summary = "mark the beginning or the end of a phase in a running recording",
    .usage = "sojourn mark [--session ID] begin|end NAME",
    .help = "Puts a mark with the present time in the session that is being recorded on this\n"
            "machine by this user: a test case, a phase, a moment. Marks are rows of the table\n"
            "marks. A program can mark by itself with sojourn.h.\n",
    .options = options_table,
    .examples = "Examples:\n"
                "  sojourn mark begin login\n"
                "  sojourn mark --session 4f2a end login\n",
    .run = run_mark,
};

const sj_command sj_command_trigger = {
    .name = "trigger",
    .summary = "set off a trigger \"command\" of the policy of a running recording",
    .usage = "sojourn trigger [--session ID] NAME",
    .help = "The policy defines the action: a dump of the last seconds in flight mode, a start, a\n"
            "stop, a mark. NAME is the name of a trigger with \"on\": \"command\"; a trigger "
            "without a\n"
            "name accepts any.\n",
    .options = options_table,
    .examples = "Examples:\n"
                "  sojourn trigger dump\n"
                "  sojourn trigger --session 4f2a stop\n",
    .run = run_trigger,
};
