/* Which calls of a session a command is about: of a thread, a process, a phase, a window; of some
 * functions or a module. One table of options for report, tree and flame. */
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
    const char *callers;  /* pattern of the functions whose callers are shown; NULL: none */
    int64_t from_ns, to_ns;
    bool has_from, has_to;
    /* by sj_call_choice_find, sqlite3_malloc: JSON arrays, NULL: everything */
    char *selection; /* of [stream_id, from_ns, to_ns] */
    char *functions; /* of function_ids */
    char *callees;   /* likewise; of `callers` */
} sj_call_choice;

/* sj_moment_parse is the parser of an option that is a moment or length in ns: "1.5s", "20ms",
 * "3us", "7ns", without a unit seconds; into the int64_t at the option's offset. */
sj_status sj_moment_parse(const sj_option *option, void *values, const char *text, sj_error *error);

/* Parsers of --from and --to: the sj_call_choice is at the option's offset. */
sj_status sj_call_choice_from(const sj_option *option, void *values, const char *text,
                              sj_error *error);
sj_status sj_call_choice_to(const sj_option *option, void *values, const char *text,
                            sj_error *error);

/* sj_call_choice_check returns -1; or says that the window, when all options are parsed, ends
 * before it begins, and returns the exit code. */
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

/* sj_call_choice_find finds what the options name in a session. SJ_ENOTFOUND: a thread, process,
 * mark or function is not there, and how to list them; SJ_EIO. sj_call_choice_deinit frees, and the
 * choice can be found again. */
SJ_MUST_CHECK sj_status sj_call_choice_find(sqlite3 *database, int64_t session_id,
                                            sj_call_choice *choice, sj_error *error);
void sj_call_choice_deinit(sj_call_choice *choice); /* safe on a zeroed one */

/* sj_call_choice_bind binds selection, functions and callees to the parameters ?11, ?12 and ?13 of
 * a statement, as far as it has them. */
void sj_call_choice_bind(const sj_call_choice *choice, sqlite3_stmt *statement);

#endif
