/* Which tables a lab gives to a cluster: all, or those that its owner names. What tells sessions
 * and functions apart goes always, and so does the list of what is left out. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CHOICE_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_CHOICE_H

#include "collector-server/forward/forward_tables.h"

enum { SJ_FORWARD_LIST_BYTES = 512 };

typedef struct sj_forward_choice {
    bool is_left_out[SJ_FORWARD_MOST_TABLES]; /* by place in sj_forward_tables */
    bool without_commands;
    char left_out[SJ_FORWARD_LIST_BYTES]; /* their names as a JSON array; "[]": none */
} sj_forward_choice;

/* sj_forward_choice_read reads names with commas between them; NULL: all tables. SJ_EINVAL: there
 * is no such table. */
SJ_MUST_CHECK sj_status sj_forward_choice_read(const char *list, sj_forward_choice *choice,
                                               sj_error *error);

#endif
