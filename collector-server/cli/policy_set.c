#include "collector-server/cli/policy_set.h"

#include "agent/attach/detach.h"
#include "agent/link/link_requests.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/policy_options.h"
#include "collector-server/cli/process_list.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct set_options {
    sj_policy_draft *draft; /* first member, for sj_policy_options */
    bool as_json;
} set_options;

static const sj_option set_table[] = {
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(set_options, as_json),
     .help = "as JSON"},
    {.kind = SJ_ARG_TABLE, .table = sj_policy_options, .is_hidden = true},
    {0}};

/* `sojourn policy set`. It is a command because it has its own options. */
static const sj_command set_command = {
    .name = "policy",
    .summary = "change what is recorded of a process, without a restart",
    .usage = "sojourn policy set [OPTIONS] PID",
    .options = set_table,
    .examples =
        "The options of `sojourn record` that belong to a policy mean the same here: --policy,\n"
        "--mode, --budget, --module, --function, --exclude, --minimum, ...\n\n"
        "Examples:\n"
        "  sojourn policy set 4711 --mode trace --function 'net_*'\n"
        "  sojourn policy set --policy nightly.json 4711\n",
};

/* Finds the recording of a process. */
static sj_status find_session(const char *pid_text, char session[SJ_SESSION_TEXT_BYTES],
                              sj_error *error)
{
    pid_t pid = 0;
    sj_recorded recorded;
    SJ_TRY(sj_process_find(pid_text, &pid, error));
    SJ_TRY(sj_detach_find(pid, &recorded, error));
    if (recorded.recorder == 0 && !recorded.is_silent) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "process %d is not being recorded; `sojourn ps --recorded` lists those that "
                       "are",
                       (int)pid);
    }
    sj_session_text(&recorded.session, session);
    return SJ_OK;
}

static void print_reply(const char *pid, const json_t *reply)
{
    char paused[SJ_DURATION_TEXT_BYTES];
    const json_t *problems = json_object_get(reply, "not_applied");
    size_t index;
    json_t *problem;
    printf("process %s: policy %lld, mode %s", pid,
           json_integer_value(json_object_get(reply, "policy")),
           json_string_value(json_object_get(reply, "mode")));
    if (json_integer_value(json_object_get(reply, "processes")) != 0) {
        printf(
            "; %s hooked, %lld unhooked (%s), paused %s",
            SJ_COUNTED(json_integer_value(json_object_get(reply, "hooked")), "function"),
            json_integer_value(json_object_get(reply, "freed")),
            SJ_COUNTED(json_integer_value(json_object_get(reply, "processes")), "process"),
            sj_format_duration(json_integer_value(json_object_get(reply, "stopped_ns")), paused));
    }
    putchar('\n');
    json_array_foreach(problems, index, problem)
    {
        printf("  not applied: %s\n", json_string_value(problem));
    }
}

static int set_policy(const char *pid, const sj_policy *policy, bool as_json)
{
    char session[SJ_SESSION_TEXT_BYTES];
    char text[SJ_LINK_MAX_BYTES];
    sj_error error = {0};
    sj_status status = find_session(pid, session, &error);
    if (status == SJ_OK) {
        status = sj_link_request(session, SJ_LINK_POLICY, NULL, 0, policy->document, text,
                                 sizeof(text), &error);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&set_command, &error);
    }
    json_t *reply = json_loads(text, 0, NULL);
    if (as_json) {
        return sj_json_output(&set_command, reply);
    }
    if (reply != NULL) {
        print_reply(pid, reply);
    } else {
        puts(text);
    }
    json_decref(reply);
    return SJ_EXIT_OK;
}

int sj_policy_set_run(int argc, char **argv)
{
    set_options options = {0};
    sj_policy policy = {0};
    sj_error error = {0};
    int first = 0;
    sj_status status = sj_policy_draft_new(&options.draft, &error);
    if (status != SJ_OK) {
        return sj_command_failed(&set_command, &error);
    }
    int code = sj_options_parse(&set_command, argc, argv, &options, &first);
    if (code < 0 && first + 1 != argc) {
        code = sj_command_usage_error(&set_command, "name one process by its number or name");
    }
    if (code < 0) {
        code = sj_policy_draft_finish(options.draft, &policy, &error) == SJ_OK
                   ? set_policy(argv[first], &policy, options.as_json)
                   : sj_command_usage_error(&set_command, "%s", error.text);
    }
    sj_policy_free(&policy);
    sj_policy_draft_free(options.draft);
    return code;
}

int sj_policy_show_running(const char *pid)
{
    char session[SJ_SESSION_TEXT_BYTES];
    char text[SJ_LINK_MAX_BYTES];
    sj_error error = {0};
    sj_status status = find_session(pid, session, &error);
    if (status == SJ_OK) {
        status =
            sj_link_request(session, SJ_LINK_POLICY_ASK, NULL, 0, "", text, sizeof(text), &error);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&set_command, &error);
    }
    puts(text);
    return SJ_EXIT_OK;
}
