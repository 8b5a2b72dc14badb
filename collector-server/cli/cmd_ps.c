#include "agent/attach/detach.h"
#include "agent/attach/preflight.h"
#include "agent/host/directories.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/process_list.h"
#include "collector-server/cli/terminal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_COMMAND_BYTES = 60 };

typedef struct ps_options {
    bool all;      /* processes of all users, and processes that cannot be attached to */
    bool recorded; /* only recorded processes */
    bool as_json;
    const char *agent_path; /* NULL: the agent is not found */
} ps_options;

/* Writes the state of a process to `text`: recorded, can be attached to, or why not. Returns false
 * if the options exclude the process from the list. */
static bool describe_process(pid_t pid, const ps_options *options, char *text, size_t capacity)
{
    sj_error error = {0};
    sj_recorded recorded = {0};
    char session[SJ_SESSION_TEXT_BYTES];
    if (sj_detach_find(pid, &recorded, &error) == SJ_OK && recorded.has_agent) {
        sj_session_text(&recorded.session, session);
        if (recorded.is_silent) {
            snprintf(text, capacity, "%s: session %.8s, by a recorder that does not answer",
                     recorded.is_active ? "recorded" : "being attached to or left", session);
        } else if (recorded.recorder != 0) {
            snprintf(text, capacity, "%s: session %.8s, by process %d",
                     recorded.is_active && !recorded.is_joining ? "recorded"
                                                                : "being attached to or left",
                     session, (int)recorded.recorder);
        } else {
            snprintf(text, capacity,
                     recorded.is_active ? "hooked by a recorder that has ended: `sojourn detach %d`"
                                        : "left by a recorder; `sojourn detach %d` cleans up",
                     (int)pid);
        }
        return true;
    }
    const bool can_attach = sj_preflight_check(pid, options->agent_path, &error) == SJ_OK;
    snprintf(text, capacity, "%s", can_attach ? "can be attached to" : error.text);
    return !options->recorded && (can_attach || options->all);
}

static json_t *describe_as_json(pid_t pid, const sj_proc_status *facts, const char *state)
{
    char user[SJ_USER_NAME_BYTES];
    char command[SJ_COMMAND_LINE_BYTES];
    sj_process_user(facts->user, user);
    sj_process_command(pid, command);
    return json_pack("{sI so so sI so so}", "pid", (json_int_t)pid, "user",
                     sj_json_clean_string(user), "name", sj_json_clean_string(facts->name),
                     "threads", (json_int_t)facts->threads, "state", sj_json_clean_string(state),
                     "command", sj_json_clean_string(command));
}

/* Marks a cut command line with "...". */
static void print_process(pid_t pid, const sj_proc_status *facts, const char *state)
{
    char user[SJ_USER_NAME_BYTES];
    char command[SJ_COMMAND_LINE_BYTES];
    sj_process_user(facts->user, user);
    sj_process_command(pid, command);
    printf("%7d  %-8s  %-16s  %7u  %s%s%.*s%s\n", (int)pid, user, facts->name, facts->threads,
           state, command[0] != '\0' ? ": " : "", SHOWN_COMMAND_BYTES, command,
           strlen(command) > SHOWN_COMMAND_BYTES ? "..." : "");
}

/* Appends the processes to `list`, or prints them if `list` is NULL. */
static void list_processes(const ps_options *options, json_t *list)
{
    pid_t *pids = NULL;
    const size_t count = sj_process_list(&pids);
    if (list == NULL) {
        printf("%7s  %-8s  %-16s  %7s  %s\n", "pid", "user", "name", "threads",
               "state: command line");
    }
    for (size_t i = 0; i < count; i++) {
        sj_proc_status facts;
        char text[SJ_ERROR_TEXT_BYTES];
        if (pids[i] == getpid() || sj_proc_status_read(pids[i], &facts) != SJ_OK ||
            (facts.user != geteuid() && !options->all && geteuid() != 0) || facts.is_kernel ||
            !describe_process(pids[i], options, text, sizeof(text))) {
            continue;
        }
        if (list != NULL) {
            json_array_append_new(list, describe_as_json(pids[i], &facts, text));
        } else {
            print_process(pids[i], &facts, text);
        }
    }
    free(pids);
}

static int run_ps(int argc, char **argv)
{
    ps_options chosen = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_ps, argc, argv, &chosen, &first);
    if (code >= 0) {
        return code;
    }
    if (first != argc) {
        return sj_command_usage_error(&sj_command_ps, "there are no arguments");
    }
    char agent_path[PATH_MAX];
    sj_error ignored;
    if (sj_agent_find(NULL, NULL, agent_path, sizeof(agent_path), &ignored) == SJ_OK) {
        chosen.agent_path = agent_path;
    }
    if (chosen.as_json) {
        json_t *list = json_array();
        list_processes(&chosen, list);
        return sj_json_output(&sj_command_ps, list);
    }
    sj_terminal terminal;
    sj_terminal_open(&terminal);
    sj_terminal_page(&terminal);
    list_processes(&chosen, NULL);
    return sj_terminal_close(&terminal)
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_ps, SJ_EXIT_FAILED, "cannot write the list");
}

static const sj_option ps_table[] = {
    {.name = "all",
     .letter = 'a',
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(ps_options, all),
     .help = "processes of all users, also if they cannot be attached to, with the reason"},
    {.name = "recorded",
     .letter = 'r',
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(ps_options, recorded),
     .help = "only recorded processes"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(ps_options, as_json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_ps = {
    .name = "ps",
    .summary = "list processes that can be attached to, and those that are recorded",
    .usage = "sojourn ps [OPTIONS]",
    .options = ps_table,
    .examples = "Examples:\n"
                "  sojourn ps\n"
                "  sojourn ps --recorded\n",
    .run = run_ps,
};
