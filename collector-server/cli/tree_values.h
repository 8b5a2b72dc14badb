/* For `tree`: the values of the calls of each call path of a session, and the duration of these
 * calls. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* Calls of one path with the same values. */
typedef struct sj_path_values {
    int64_t path_id;
    /* in the format of a call: (path='/etc/hosts', flags=0) = 3. Arguments or results of 1,024
     * bytes or more are cut and end with an ellipsis. */
    char *text;
    uint64_t hash; /* hash of the uncut text */
    int64_t calls;
    int64_t total_ns; /* duration of the calls that ended */
} sj_path_values;

typedef struct sj_tree_values sj_tree_values;

/* Reads every call of the session. Leaves out calls whose path was folded because it is rare. After
 * 65,536 different values, also leaves out calls with other values. sj_tree_values_left_out counts
 * both. Fails with SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_tree_values_read(sqlite3 *database, int64_t session_id,
                                            sj_tree_values **values, sj_error *error);
void sj_tree_values_free(sj_tree_values *values); /* NULL is allowed */

/* Returns the number of different values of the calls of a path. Stores them, by total time,
 * longest first, in `*of` (borrowed). */
size_t sj_tree_values_of(const sj_tree_values *values, int64_t path_id, const sj_path_values **of);

/* Returns how many calls with values are in none of the lines. */
int64_t sj_tree_values_left_out(const sj_tree_values *values);

#endif
