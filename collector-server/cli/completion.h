/* Completion scripts for shells. They are made from the tables of commands and options. While the
 * user types, the scripts run `sojourn completion --words` for sessions, functions and
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
 * "" if the argument may be any text. All but "files" are kinds for sj_completion_words. */
const char *sj_completion_kind(const sj_option *option);

/* Prints the words of a kind, one per line. Sessions and functions come from the database that
 * sj_database_choose chooses for `file`, which may be NULL. The words for processes are the
 * processes of this user, or all processes for root. Prints nothing if there are none. Returns
 * false if the kind is unknown. Blocks on the database. */
bool sj_completion_words(const char *kind, const char *file);

#endif
