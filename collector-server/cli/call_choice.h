/* The calls of a session that a command reads. The user chooses them by thread, process, phase,
 * time window, function or module. `report`, `tree` and `flame` share this table of options. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CALL_CHOICE_H
#define SJ_COLLECTOR_SERVER_CLI_CALL_CHOICE_H

#include "collector-server/cli/command.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_call_choice {
    const char *thread;   /* name, tid or number; NULL: all */
    const char *process;  /* name of its program, pid or number; NULL: all */
    const char *mark;     /* name of a phase; NULL: none */
    const char *function; /* pattern; NULL: all */
    const char *module;   /* pattern of its file's name; NULL: all */
    /* pattern of function names; the tree shows the callers of these functions; NULL: none */
    const char *callers;
    int64_t from_ns, to_ns; /* since the session's start; valid only if has_from, has_to is true */
    bool has_from, has_to;
    /* JSON arrays, which sj_call_choice_find allocates with sqlite3_malloc. NULL: no
     * restriction. */
    char *selection; /* [stream_id, from_ns, to_ns] of each chosen part of a stream */
    char *functions; /* function_ids */
    char *callees;   /* function_ids of the functions that `callers` names */
} sj_call_choice;

/* Parses a moment or a duration, such as "1.5s", "20ms", "3us" or "7ns". A number without a unit is
 * in seconds. Writes the nanoseconds as an int64_t at the option's offset in `values`. Fails with
 * SJ_EINVAL. */
sj_status sj_moment_parse(const sj_option *option, void *values, const char *text, sj_error *error);

/* Parse --from and --to into the sj_call_choice at the option's offset in `values`. Fail with
 * SJ_EINVAL. */
sj_status sj_call_choice_from(const sj_option *option, void *values, const char *text,
                              sj_error *error);
sj_status sj_call_choice_to(const sj_option *option, void *values, const char *text,
                            sj_error *error);

/* Returns -1 if the time window is valid. If the window ends before it begins, prints a message and
 * returns the exit code. Call this function after all options are parsed. */
int sj_call_choice_check(const sj_command *command, const sj_call_choice *choice);

/* clang-format off */
#define SJ_CALL_CHOICE_OPTIONS(base) \
    {.name = "thread", .argument = "T", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, thread), \
     .help = "only calls of this thread: its name, tid or number in the session"}, \
    {.name = "process", .argument = "P", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, process), \
     .help = "only calls of this process: its program's name, pid or number"}, \
    {.name = "mark", .argument = "NAME", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, mark), \
     .help = "only calls that began between the begin and the end of this phase"}, \
    {.name = "from", .argument = "TIME", .kind = SJ_ARG_PARSED, .parse = sj_call_choice_from, \
     .offset = (base), \
     .help = "only calls entered from then on, since the session's start: 1.5s, 20ms"}, \
    {.name = "to", .argument = "TIME", .kind = SJ_ARG_PARSED, .parse = sj_call_choice_to, \
     .offset = (base), .help = "only calls entered up to then"}
#define SJ_CALL_FUNCTION_OPTIONS(base, function_help, module_help) \
    {.name = "function", .argument = "GLOB", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, function), .help = (function_help)}, \
    {.name = "module", .argument = "GLOB", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, module), .help = (module_help)}
#define SJ_CALL_CALLERS_OPTION(base) \
    {.name = "callers", .argument = "GLOB", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_call_choice, callers), \
     .help = "who calls these functions: they are the roots, their callers below"}
/* clang-format on */

/* Fills selection, functions and callees of the choice from its options. Fails with SJ_ENOTFOUND if
 * the session does not have the named thread, process, mark or function. Fails with SJ_EIO if the
 * database cannot be read, and with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_choice_find(sqlite3 *database, int64_t session_id,
                                            sj_call_choice *choice, sj_error *error);
/* Frees the arrays. sj_call_choice_find can then fill them again. Safe on a zeroed choice. */
void sj_call_choice_deinit(sj_call_choice *choice);

/* Binds selection, functions and callees to the parameters ?11, ?12 and ?13 of a statement.
 * Parameters that the statement does not have are skipped. */
void sj_call_choice_bind(const sj_call_choice *choice, sqlite3_stmt *statement);

#endif
