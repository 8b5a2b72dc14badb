#include "collector-server/cli/commands.h"

#include <stdio.h>
#include <string.h>

static int run_help(int argc, char **argv)
{
    const char *topic = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    if (argc > 2) {
        return sj_command_usage_error(&sj_command_help_page, "one command at most");
    }
    if (topic != NULL && sj_command_find(argv[0]) == &sj_command_help_page) {
        const sj_command *command = sj_command_find(topic);
        if (command == NULL) {
            return sj_command_usage_error(&sj_command_help_page, "there is no command \"%s\"",
                                          topic);
        }
        return sj_command_help(command);
    }
    printf("Usage: sojourn COMMAND [OPTIONS] [ARGUMENTS]\n\n"
           "Records when every call of a program entered and left.\n\n"
           "Commands:\n");
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        printf("  %-12s %s\n", sj_commands[i]->name, sj_commands[i]->summary);
    }
    printf("\n\"sojourn COMMAND --help\" tells the options of each. To begin with:\n"
           "  sojourn record -- ./app\n");
    return SJ_EXIT_OK;
}

const sj_command sj_command_help_page = {
    .name = "help",
    .summary = "list the commands, or tell the options of one",
    .usage = "sojourn help [COMMAND]",
    .help = "Examples:\n"
            "  sojourn help\n"
            "  sojourn help record\n",
    .run = run_help,
};
