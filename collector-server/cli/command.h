/* A command of the `sojourn` program. Each command is one file that exports one constant
 * descriptor; commands.c lists them. `sojourn NAME ARGS...` calls `run` with argv[0] = NAME. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMMAND_H
#define SJ_COLLECTOR_SERVER_CLI_COMMAND_H

#include "collector-server/cli/options.h"

#include <stdbool.h>

/* Exit codes of every command except `record`. `record` exits as the recorded program did (128 +
 * signal if a signal killed it). It uses 125 to 127 as env(1) and timeout(1) do: for its own
 * failures, for a program that cannot be executed, and for one that is not found. */
enum {
    SJ_EXIT_OK = 0,
    SJ_EXIT_FAILED = 1,    /* the operation failed; the message says why and what to do */
    SJ_EXIT_USAGE = 2,     /* wrong options or arguments */
    SJ_EXIT_NOT_FOUND = 3, /* the session, function, file ... that the user named does not exist */
    SJ_EXIT_DIFFERS = 4,   /* diff, check: a regression or difference was found */
    /* check: too few sessions or too much noise for a verdict. diff: stripped programs that cannot
     * be compared. */
    SJ_EXIT_INCONCLUSIVE = 5,
    SJ_EXIT_RECORD_FAILED = 125,
    SJ_EXIT_NOT_EXECUTABLE = 126,
    SJ_EXIT_PROGRAM_NOT_FOUND = 127
};

typedef struct sj_command {
    const char *name;
    const char *summary; /* one line for `sojourn help` */
    const char *usage;   /* "sojourn report [OPTIONS] [FILE]" */
    /* what the command does; --help prints it before the options; NULL: nothing */
    const char *help;
    const sj_option *options; /* printed by --help; NULL: the only option is --help */
    const char *examples;     /* --help prints this last: exit status, at least two examples */
    bool stops_at_argument;   /* options after the first argument are not parsed */
    int (*run)(int argc, char **argv);
} sj_command;

/* All commands, NULL-terminated, in the order of `sojourn help`. */
extern const sj_command *const sj_commands[];

/* Prints usage and help to standard output. Returns SJ_EXIT_OK. If the command has common options,
 * `shows_all` decides whether the others are shown, too. */
int sj_command_help(const sj_command *command, bool shows_all);

/* True if the command has common options: --help shows these, --help-all shows all. */
bool sj_command_has_common(const sj_command *command);

/* Prints "sojourn NAME: MESSAGE", the usage line and a hint at --help to standard error. Returns
 * SJ_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int sj_command_usage_error(const sj_command *command,
                                                                 const char *format, ...);

/* Removes a progress line from the terminal, then prints "sojourn NAME: MESSAGE" to standard error.
 * Returns `exit_code`. */
__attribute__((format(printf, 3, 4))) int sj_command_error(const sj_command *command, int exit_code,
                                                           const char *format, ...);

/* Returns the exit code of a command that failed with `status`. */
static inline int sj_exit_code(sj_status status)
{
    return status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED;
}

/* Prints the text of `error` like sj_command_error. Returns the exit code of the error's status. */
static inline int sj_command_failed(const sj_command *command, const sj_error *error)
{
    return sj_command_error(command, sj_exit_code(error->status), "%s", error->text);
}

#endif
