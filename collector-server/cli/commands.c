#include "collector-server/cli/commands.h"

#include "agent/policy/suggest.h"
#include "collector-server/cli/terminal.h"

#include <stdio.h>
#include <string.h>

const sj_command *const sj_commands[] = {
    /* clang-format off */
    &sj_command_record,
    &sj_command_attach,
    &sj_command_bench,
    &sj_command_detach,
    &sj_command_ps,
    &sj_command_mark,
    &sj_command_policy,
    &sj_command_trigger,
    &sj_command_functions,
    &sj_command_flush,
    &sj_command_devices,
    &sj_command_device,
    &sj_command_token,
    &sj_command_audit,
    &sj_command_doctor,
    &sj_command_sessions,
    &sj_command_session,
    &sj_command_report,
    &sj_command_coverage,
    &sj_command_tree,
    &sj_command_replay,
    &sj_command_flame,
    &sj_command_diff,
    &sj_command_check,
    &sj_command_zombies,
    &sj_command_stalls,
    &sj_command_sql,
    &sj_command_export,
    &sj_command_import,
    &sj_command_symbols,
    &sj_command_forward,
    &sj_command_verify,
    &sj_command_backup,
    &sj_command_restore,
    &sj_command_salvage,
    &sj_ui_command,
    &sj_command_completion,
    &sj_command_help_page,
    &sj_command_version,
    NULL,
    /* clang-format on */
};

enum { COMMANDS_MAX = 64 };

const sj_command *sj_command_find(const char *name)
{
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        if (strcmp(sj_commands[i]->name, name) == 0) {
            return sj_commands[i];
        }
    }
    return NULL;
}

const char *sj_command_nearest(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    while (sj_commands[count] != NULL && count < COMMANDS_MAX) {
        names[count] = sj_commands[count]->name;
        count++;
    }
    return sj_suggest(name, names, count);
}

/* Prints the commands, in lines that fit on the terminal. */
static void print_commands(void)
{
    enum { SUMMARY_COLUMN = 15, LINE_BYTES = 256 };
    sj_terminal terminal;
    char line[LINE_BYTES];
    sj_terminal_open(&terminal);
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        snprintf(line, sizeof(line), "  %-12s %s\n", sj_commands[i]->name, sj_commands[i]->summary);
        sj_terminal_wrap(stdout, &terminal, line, SUMMARY_COLUMN);
    }
    sj_terminal_wrap(stdout, &terminal,
                     "\n\"sojourn COMMAND --help\" shows the options of each. To begin with:\n"
                     "  sojourn record -- ./app\n",
                     0);
}

/* `sojourn help [COMMAND]`; main also calls it, for `sojourn` without a command. */
static int run_help(int argc, char **argv)
{
    const char *topic = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    if (argc > 2) {
        return sj_command_usage_error(&sj_command_help_page, "one command at most");
    }
    if (topic != NULL && sj_command_find(argv[0]) == &sj_command_help_page) {
        const sj_command *command = sj_command_find(topic);
        const char *nearest = command == NULL ? sj_command_nearest(topic) : NULL;
        if (command == NULL) {
            return sj_command_usage_error(&sj_command_help_page, "unknown command \"%s\"%s%s%s",
                                          topic, nearest != NULL ? "; did you mean \"" : "",
                                          nearest != NULL ? nearest : "",
                                          nearest != NULL ? "\"?" : "");
        }
        return sj_command_help(command, false);
    }
    printf("Usage: sojourn COMMAND [OPTIONS] [ARGUMENTS]\n\n"
           "Records when every call of a program entered and left.\n\n"
           "Commands:\n");
    print_commands();
    return SJ_EXIT_OK;
}

const sj_command sj_command_help_page = {
    .name = "help",
    .summary = "list the commands, or show the options of one",
    .usage = "sojourn help [COMMAND]",
    .examples = "Examples:\n"
                "  sojourn help\n"
                "  sojourn help record\n",
    .run = run_help,
};
