/* Which values the calls of each call path of a session had, and how long these took: for `tree`.
 */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* Calls of one path with the same values. */
typedef struct sj_path_values {
    int64_t path_id;
    char *text; /* as a call is written: (path='/etc/hosts', flags=0) = 3; of arguments or results
                 * with 1,024 bytes or more the beginning and an ellipsis */
    uint64_t hash; /* of the whole text */
    int64_t calls;
    int64_t total_ns; /* of those that ended */
} sj_path_values;

typedef struct sj_tree_values sj_tree_values;

/* sj_tree_values_read reads every call of the session. Calls whose path was folded because it is
 * rare, and those with values beyond 65,536 different ones, are left out: see
 * sj_tree_values_left_out. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_tree_values_read(sqlite3 *database, int64_t session_id,
                                            sj_tree_values **values, sj_error *error);
void sj_tree_values_free(sj_tree_values *values); /* NULL is allowed */

/* sj_tree_values_of gives what the calls of a path had, most time first, as `*of` (borrowed);
 * returns how many there are. */
size_t sj_tree_values_of(const sj_tree_values *values, int64_t path_id, const sj_path_values **of);

/* sj_tree_values_left_out returns how many calls with values belong to no line. */
int64_t sj_tree_values_left_out(const sj_tree_values *values);

#endif
