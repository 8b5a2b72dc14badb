#include "collector-server/cli/policy_set.h"

#include "agent/control/attach.h"
#include "agent/control/live.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/policy_options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(sj_status status, const sj_error *error)
{
    return sj_command_error(&sj_command_policy,
                            status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED, "%s",
                            error->text);
}

/* find_session finds the recording of a process. */
static sj_status find_session(const char *pid_text, char session[SJ_SESSION_TEXT_BYTES],
                              sj_error *error)
{
    uint64_t pid = 0;
    sj_recorded recorded;
    if (sj_option_number("", pid_text, INT32_MAX, &pid, NULL) != SJ_OK || pid == 0) {
        return sj_fail(error, SJ_EINVAL, "\"%s\" is no number of a process", pid_text);
    }
    SJ_TRY(sj_attach_look((pid_t)pid, &recorded, error));
    if (recorded.companion == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "process %d is not being recorded; `sojourn ps --recorded` lists those that "
                       "are",
                       (int)pid);
    }
    sj_session_text(&recorded.session, session);
    return SJ_OK;
}

static void print_answer(const char *pid, const json_t *answer)
{
    const json_t *problems = json_object_get(answer, "not_applied");
    size_t index;
    json_t *problem;
    printf("process %s: policy %lld, mode %s", pid,
           json_integer_value(json_object_get(answer, "policy")),
           json_string_value(json_object_get(answer, "mode")));
    if (json_integer_value(json_object_get(answer, "processes")) != 0) {
        printf("; %lld functions hooked, %lld set free in %lld processes, stopped for %.2f ms",
               json_integer_value(json_object_get(answer, "hooked")),
               json_integer_value(json_object_get(answer, "freed")),
               json_integer_value(json_object_get(answer, "processes")),
               (double)json_integer_value(json_object_get(answer, "stopped_ns")) / 1e6);
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
        status = sj_live_request(session, SJ_LINK_POLICY, NULL, 0, policy->document, text,
                                 sizeof(text), &error);
    }
    if (status != SJ_OK) {
        return fail(status, &error);
    }
    json_t *answer = json_loads(text, 0, NULL);
    if (as_json || answer == NULL) {
        puts(text);
    } else {
        print_answer(pid, answer);
    }
    json_decref(answer);
    return SJ_EXIT_OK;
}

/* take_options returns -1, or an exit code. */
static int take_options(int argc, char **argv, sj_policy_draft **draft, bool *as_json)
{
    static const struct option options[] = {SJ_POLICY_OPTIONS,
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    sj_error error = {0};
    int option;
    const sj_status status = sj_policy_options_load(argc, argv, ":h", options, draft, &error);
    if (status != SJ_OK) {
        return fail(status, &error);
    }
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        bool taken = false;
        if (option == 'h') {
            return sj_command_help(&sj_command_policy);
        }
        if (option == 'j') {
            *as_json = true;
            continue;
        }
        if (option == ':' || option == '?') {
            return sj_command_usage_error(&sj_command_policy, "%s: unknown option or no value",
                                          argv[optind - 1]);
        }
        if (sj_policy_options_take(*draft, option, optarg, &taken, &error) != SJ_OK) {
            return sj_command_usage_error(&sj_command_policy, "%s", error.text);
        }
    }
    return optind + 1 == argc
               ? -1
               : sj_command_usage_error(&sj_command_policy, "name one process by its number");
}

int sj_policy_set_run(int argc, char **argv)
{
    sj_policy_draft *draft = NULL;
    sj_policy policy = {0};
    sj_error error = {0};
    bool as_json = false;
    int code = take_options(argc, argv, &draft, &as_json);
    if (code < 0) {
        code = sj_policy_draft_finish(draft, &policy, &error) == SJ_OK
                   ? set_policy(argv[optind], &policy, as_json)
                   : sj_command_usage_error(&sj_command_policy, "%s", error.text);
    }
    sj_policy_free(&policy);
    sj_policy_draft_free(draft);
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
            sj_live_request(session, SJ_LINK_POLICY_ASK, NULL, 0, "", text, sizeof(text), &error);
    }
    if (status != SJ_OK) {
        return fail(status, &error);
    }
    puts(text);
    return SJ_EXIT_OK;
}
