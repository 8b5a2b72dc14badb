#include "collector-server/cli/command.h"

#include "collector-server/cli/work_progress.h"

#include <stdarg.h>
#include <stdio.h>

int sj_command_help(const sj_command *command)
{
    printf("Usage: %s\n\n%s.\n\n", command->usage, command->summary);
    if (command->help != NULL) {
        printf("%s\n", command->help);
    }
    sj_options_print(command->options);
    printf("\n%s", command->examples);
    return SJ_EXIT_OK;
}

int sj_command_usage_error(const sj_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "sojourn %s: ", command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nUsage: %s\nTry \"sojourn %s --help\".\n", command->usage, command->name);
    va_end(arguments);
    return SJ_EXIT_USAGE;
}

int sj_command_error(const sj_command *command, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sj_work_progress_hide();
    fprintf(stderr, "sojourn %s: ", command->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return exit_code;
}
