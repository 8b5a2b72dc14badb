/* Completion scripts for shells, made from the tables of commands and options. While the user
 * types, a script runs `sojourn completion --words` to get names of sessions, functions and
 * processes. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_COMPLETION_H

#include "collector-server/cli/command.h"

/* Print the completion script of a shell. Names of commands and options are not quoted: they
 * consist of letters, digits and dashes. */
void sj_completion_bash(void);
void sj_completion_zsh(void);
void sj_completion_fish(void);

/* Returns what an option's argument names: "sessions", "functions", "processes" or "files". Returns
 * "" if the argument may be any text. All of these except "files" and "" are kinds for
 * sj_completion_words. */
const char *sj_completion_kind(const sj_option *option);

/* Prints the words of a kind, one per line. Sessions and functions come from the database that
 * sj_database_choose chooses for `file`, which may be NULL. The words for processes are the
 * processes of this user, or all processes for root. Prints nothing if there are no words. Returns
 * false if the kind is unknown. Blocks on the database. */
bool sj_completion_words(const char *kind, const char *file);

#endif
