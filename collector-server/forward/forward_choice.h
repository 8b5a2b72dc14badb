/* The tables that a lab sends to a cluster: all, or those that its owner names. The tables that
 * identify sessions and functions are always sent, and so is the list of omitted tables. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CHOICE_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CHOICE_H

#include "collector-server/forward/forward_tables.h"

enum { SJ_FORWARD_LIST_BYTES = 512 };

typedef struct sj_forward_choice {
    bool is_left_out[SJ_FORWARD_MOST_TABLES]; /* by index in sj_forward_tables */
    bool without_commands;                    /* the audit of commands is omitted */
    /* names of the omitted tables, as a JSON array; "[]": none */
    char left_out[SJ_FORWARD_LIST_BYTES];
} sj_forward_choice;

/* Reads a comma-separated list of the tables to send; NULL: all tables. Returns SJ_EINVAL if a
 * table does not exist. */
SJ_MUST_CHECK sj_status sj_forward_choice_read(const char *list, sj_forward_choice *choice,
                                               sj_error *error);

#endif
