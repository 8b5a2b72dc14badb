/* The options of a command. The parser and --help read the same table. */
#ifndef SJ_COLLECTOR_SERVER_CLI_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_OPTIONS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sj_command;

/* The way an option is parsed, and the type of the member at its offset. */
typedef enum sj_option_kind {
    SJ_ARG_HEADING, /* not an option: `help` is a heading for the options that follow */
    SJ_ARG_FLAG,    /* bool, set to true */
    SJ_ARG_CHOICE,  /* int or enum; the member is set to `least` */
    SJ_ARG_TEXT,    /* const char *; borrowed from argv */
    SJ_ARG_NUMBER,  /* int64_t from `least` to `most` */
    /* int64_t in ms from `least` to `most` (0: 30 years): "16ms", "1.5s", "2h"; without a unit:
     * seconds */
    SJ_ARG_TIME,
    SJ_ARG_PARSED, /* `parse` reads it */
    /* not an option: the parser continues with the rows of `table`, and does not return to this
     * table; if a name occurs twice, the first row counts */
    SJ_ARG_TABLE
} sj_option_kind;

typedef struct sj_option {
    /* without dashes; a row without name ends the table, unless it is a heading */
    const char *name;
    const char *argument; /* as --help shows it; NULL: the option has no argument */
    const char *help;     /* lines separated by \n; NULL: not shown by --help */
    sj_option_kind kind;
    size_t offset; /* offset of the member in the structure that sj_options_parse writes */
    int64_t least;
    int64_t most;
    /* Parses the argument into `values`, the structure of sj_options_parse. `value` is NULL if the
     * option has no argument. */
    sj_status (*parse)(const struct sj_option *option, void *values, const char *value,
                       sj_error *error);
    const struct sj_option *table; /* the next table, for SJ_ARG_TABLE */
    char letter;                   /* short form; 0: none */
    bool is_optional;              /* the argument may be missing; its value is "" then */
    bool is_hidden;                /* SJ_ARG_TABLE: --help does not show that table */
    bool is_common;                /* --help shows it in a group before all others */
    /* parsed before all other options, wherever it is given (for example --policy); its errors exit
     * 1, not 2 */
    bool is_first;
} sj_option;

/* Parses the options of argv into `values`, a structure with the offsets of the table. Returns -1
 * if the command should continue; argv[*first] is then the first argument that is not an option.
 * Else --help or a message was printed, and the function returns an exit code. Not thread-safe,
 * because of getopt. */
int sj_options_parse(const struct sj_command *command, int argc, char **argv, void *values,
                     int *first);

/* sj_option_first returns the first option or heading of a table. sj_option_next returns the option
 * or heading after `option`. Both return NULL at the end. Both follow SJ_ARG_TABLE; they enter
 * hidden tables only if `with_hidden` is true. */
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

#endif
