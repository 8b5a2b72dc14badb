/* Completion scripts for shells, made from the tables of commands and options. Also the words that
 * these scripts ask for while the user types. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_COMPLETION_H

#include "collector-server/cli/command.h"

/* Print the completion script of a shell. Names of commands and options consist of letters, digits
 * and dashes, so they need no quotes. */
void sj_completion_bash(void);
void sj_completion_zsh(void);
void sj_completion_fish(void);

/* Returns the kind of words that an option's argument is one of, for sj_completion_words:
 * "sessions", "functions", "processes" or "files". Returns "" if the argument may be any text. */
const char *sj_completion_kind(const sj_option *option);

/* Prints the words of a kind, one per line. Sessions and functions are those of the database that a
 * command would choose; `file` names it (NULL: not named). Processes are those of this user. Prints
 * nothing if there are none. Returns false if the kind is unknown. Blocks on the database. */
bool sj_completion_words(const char *kind, const char *file);

#endif
