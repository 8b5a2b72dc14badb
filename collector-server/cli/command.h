/* A command of the `sojourn` program: one file that exports one constant descriptor, listed in
 * commands.c. `sojourn NAME ARGS...` calls `run` with argv[0] = NAME. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMMAND_H
#define SJ_COLLECTOR_SERVER_CLI_COMMAND_H

#include "collector-server/cli/options.h"

#include <stdbool.h>

/* Exit codes of every command but `record`, which ends as the recorded program did (128 + signal
 * when it was killed) and uses 125 to 127 as env(1) and timeout(1) do. */
enum {
    SJ_EXIT_OK = 0,
    SJ_EXIT_FAILED = 1,       /* the operation failed; the message says why and what to do */
    SJ_EXIT_USAGE = 2,        /* wrong options or arguments */
    SJ_EXIT_NOT_FOUND = 3,    /* the session, function, file ... that was named is not there */
    SJ_EXIT_DIFFERS = 4,      /* diff, check: a regression or difference was found */
    SJ_EXIT_INCONCLUSIVE = 5, /* check: too few sessions or too much noise for a verdict; diff, too:
                                 stripped programs that cannot be compared */
    SJ_EXIT_RECORD_FAILED = 125,
    SJ_EXIT_NOT_EXECUTABLE = 126,
    SJ_EXIT_PROGRAM_NOT_FOUND = 127
};

typedef struct sj_command {
    const char *name;
    const char *summary; /* one line for `sojourn help` */
    const char *usage;   /* "sojourn report [OPTIONS] [FILE]" */
    const char *help;    /* what it does, printed by --help before the options; NULL: nothing */
    const sj_option *options; /* printed by --help; NULL: --help only */
    const char *examples;     /* what --help prints last: exit status, at least two examples */
    bool stops_at_argument;   /* options end at the first argument */
    int (*run)(int argc, char **argv);
} sj_command;

/* sj_commands lists every command, NULL-terminated, in the order in which help shows them. */
extern const sj_command *const sj_commands[];

/* sj_command_help prints usage and help to standard output and returns SJ_EXIT_OK. */
int sj_command_help(const sj_command *command);

/* sj_command_usage_error prints "sojourn NAME: MESSAGE", the usage and how to get help to standard
 * error, and returns SJ_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int sj_command_usage_error(const sj_command *command,
                                                                 const char *format, ...);

/* sj_command_error prints "sojourn NAME: MESSAGE" to standard error and returns `exit_code`. */
__attribute__((format(printf, 3, 4))) int sj_command_error(const sj_command *command, int exit_code,
                                                           const char *format, ...);

/* sj_exit_code is what a command exits with when it fails: not found, or failed. */
static inline int sj_exit_code(sj_status status)
{
    return status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED;
}

/* sj_command_failed prints the text of `error` as sj_command_error does and returns the exit code
 * of its status. */
static inline int sj_command_failed(const sj_command *command, const sj_error *error)
{
    return sj_command_error(command, sj_exit_code(error->status), "%s", error->text);
}

#endif
