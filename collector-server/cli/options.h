/* Options of a command: one table that is parsed and printed by --help. */
#ifndef SJ_COLLECTOR_SERVER_CLI_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_OPTIONS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sj_command;

/* How an option is parsed, and the type of the member at its offset. */
typedef enum sj_option_kind {
    SJ_ARG_HEADING, /* no option: `help` is a line before those that follow */
    SJ_ARG_FLAG,    /* bool, set to true */
    SJ_ARG_CHOICE,  /* int or enum, set to `least` */
    SJ_ARG_TEXT,    /* const char *, borrowed from argv */
    SJ_ARG_NUMBER,  /* int64_t from `least` to `most` */
    SJ_ARG_TIME,    /* int64_t, ms from `least` to `most` (0: 30 years): "16ms", "1.5s", "2h";
                     * without a unit seconds */
    SJ_ARG_PARSED,  /* `parse` */
    SJ_ARG_TABLE    /* no option: ends this table, `table` goes on; a name that came before hides a
                     * later one */
} sj_option_kind;

typedef struct sj_option {
    const char *name;     /* without dashes; NULL ends the table, unless it is a heading */
    const char *argument; /* as --help shows it; NULL: the option has none */
    const char *help;     /* lines separated by \n; NULL: not shown by --help */
    sj_option_kind kind;
    size_t offset; /* of the member, in the structure that is given to sj_options_parse */
    int64_t least;
    int64_t most;
    /* `values` as given to sj_options_parse; `value` is NULL for an option without argument. */
    sj_status (*parse)(const struct sj_option *option, void *values, const char *value,
                       sj_error *error);
    const struct sj_option *table; /* SJ_ARG_TABLE */
    char letter;                   /* short form; 0: none */
    bool is_optional;              /* the argument may be left out: its value is "" then */
    bool is_hidden;                /* SJ_ARG_TABLE: --help does not show it */
    bool is_common;                /* --help shows it in a group of its own, before all others */
    bool is_first; /* names what all others build on: parsed before them, wherever it stands; its
                    * errors are no wrong use */
} sj_option;

/* sj_options_parse reads the options of argv into `values`, a structure that the table's offsets
 * belong to. -1: go on, argv[*first] is the first argument; else an exit code, after --help or a
 * message. Uses getopt's state, so one thread at a time. */
int sj_options_parse(const struct sj_command *command, int argc, char **argv, void *values,
                     int *first);

/* sj_option_first returns the first option or heading of a table, and sj_option_next what comes
 * behind one; NULL: nothing does. Both follow SJ_ARG_TABLE, to hidden ones if asked. */
static inline const sj_option *sj_option_first(const sj_option *row, bool with_hidden)
{
    while (row != NULL && row->kind == SJ_ARG_TABLE && (with_hidden || !row->is_hidden)) {
        row = row->table;
    }
    return row == NULL || (row->name == NULL && row->help == NULL) ? NULL : row;
}

static inline const sj_option *sj_option_next(const sj_option *option, bool with_hidden)
{
    return sj_option_first(option + 1, with_hidden);
}

/* sj_options_print prints the table (NULL: an empty one) as --help shows it, with --help itself:
 * the common options first, then each heading with the rest of its options. A heading without such
 * options is left out. */
void sj_options_print(const sj_option *options);

#endif
