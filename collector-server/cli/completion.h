/* Completion scripts of the shells, made from the tables of commands and options, and the words
 * that they ask for while somebody types. */
#ifndef SJ_COLLECTOR_SERVER_CLI_COMPLETION_H
#define SJ_COLLECTOR_SERVER_CLI_COMPLETION_H

#include "collector-server/cli/command.h"

/* sj_completion_bash, _zsh and _fish print the script of a shell. Names of commands and options are
 * letters, digits and dashes: they need no quotes. */
void sj_completion_bash(void);
void sj_completion_zsh(void);
void sj_completion_fish(void);

/* sj_completion_kind names the words that an option's argument is one of, for
 * sj_completion_words: "sessions", "functions", "processes", "files"; "" when any text may stand.
 */
const char *sj_completion_kind(const sj_option *option);

/* sj_completion_words prints words of a kind, a line each: sessions and functions of the database
 * that a command would choose (`file`, NULL: none is named), or processes of this user. Prints
 * nothing when there are none; false when there is no such kind. Blocks on the database. */
bool sj_completion_words(const char *kind, const char *file);

#endif
