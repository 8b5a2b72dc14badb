#include "agent/control/attach.h"
#include "agent/control/attach_check.h"
#include "agent/control/directories.h"
#include "collector-server/cli/commands.h"

#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ps_options {
    bool all;      /* of every user, and what cannot be attached to */
    bool recorded; /* only what is recorded */
} ps_options;

/* describe writes what can be done with a process; false when it is not to be listed. */
static bool describe(pid_t pid, const ps_options *options, char *text, size_t capacity)
{
    sj_error error = {0};
    sj_recorded recorded = {0};
    char session[SJ_SESSION_TEXT_BYTES];
    if (sj_attach_look(pid, &recorded, &error) == SJ_OK && recorded.has_agent) {
        sj_session_text(&recorded.session, session);
        if (recorded.companion != 0) {
            snprintf(text, capacity, "%s: session %.8s, by process %d",
                     recorded.is_active ? "recorded" : "being attached to or left", session,
                     (int)recorded.companion);
        } else {
            snprintf(text, capacity,
                     recorded.is_active ? "hooked by a recorder that is gone: `sojourn detach %d`"
                                        : "left by a recorder; `sojourn detach %d` cleans up",
                     (int)pid);
        }
        return true;
    }
    const bool can = sj_attach_check(pid, NULL, &error) == SJ_OK;
    snprintf(text, capacity, "%s", can ? "can be attached to" : error.text);
    return !options->recorded && (can || options->all);
}

static int compare_pids(const void *left, const void *right)
{
    return *(const pid_t *)left - *(const pid_t *)right;
}

static size_t list_pids(pid_t **pids)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    *pids = NULL;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        pid_t *grown = pid > 0 ? realloc(*pids, (count + 1) * sizeof(*grown)) : NULL;
        if (grown != NULL) {
            *pids = grown;
            grown[count++] = pid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (count != 0) {
        qsort(*pids, count, sizeof(**pids), compare_pids);
    }
    return count;
}

static void list_processes(const ps_options *options)
{
    pid_t *pids = NULL;
    const size_t count = list_pids(&pids);
    printf("%7s  %-16s  %7s  %s\n", "pid", "name", "threads", "state");
    for (size_t i = 0; i < count; i++) {
        sj_process_facts facts;
        char text[SJ_ERROR_TEXT_BYTES];
        if (pids[i] == getpid() || sj_process_facts_read(pids[i], &facts) != SJ_OK ||
            (facts.user != geteuid() && !options->all && geteuid() != 0) ||
            (facts.is_kernel && !options->all) || !describe(pids[i], options, text, sizeof(text))) {
            continue;
        }
        printf("%7d  %-16s  %7u  %s\n", (int)pids[i], facts.name, facts.threads, text);
    }
    free(pids);
}

static int run_ps(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"recorded", no_argument, NULL, 'r'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    ps_options chosen = {0};
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "arh", options, NULL)) != -1) {
        switch (option) {
        case 'a':
            chosen.all = true;
            break;
        case 'r':
            chosen.recorded = true;
            break;
        case 'h':
            return sj_command_help(&sj_command_ps);
        default:
            return sj_command_usage_error(&sj_command_ps, "there is no option %s",
                                          argv[optind - 1]);
        }
    }
    if (optind != argc) {
        return sj_command_usage_error(&sj_command_ps, "there are no arguments");
    }
    list_processes(&chosen);
    return SJ_EXIT_OK;
}

const sj_command sj_command_ps = {
    .name = "ps",
    .summary = "list processes that can be attached to, and those that are recorded",
    .usage = "sojourn ps [OPTIONS]",
    .help =
        "  -a, --all       of all users, and those that cannot be attached to, with the reason\n"
        "  -r, --recorded  only those that are recorded\n\n"
        "Examples:\n"
        "  sojourn ps\n"
        "  sojourn ps --recorded\n",
    .run = run_ps,
};
