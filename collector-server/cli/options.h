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
    SJ_ARG_PARSED   /* `parse` */
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
    char letter;      /* short form; 0: none */
    bool is_optional; /* the argument may be left out: its value is "" then */
    bool is_first;    /* names what all others build on: parsed before them, wherever it stands; its
                       * errors are no wrong use */
} sj_option;

/* sj_options_parse reads the options of argv into `values`, a structure that the table's offsets
 * belong to. -1: go on, argv[*first] is the first argument; else an exit code, after --help or a
 * message. Uses getopt's state, so one thread at a time. */
int sj_options_parse(const struct sj_command *command, int argc, char **argv, void *values,
                     int *first);

/* sj_option_is_last is true of the element that ends a table. */
static inline bool sj_option_is_last(const sj_option *option)
{
    return option->name == NULL && option->help == NULL;
}

/* sj_options_print prints the table as --help shows it, with --help itself. */
void sj_options_print(const sj_option *options);

#endif
