/* What the rows of a session say about its functions and call paths: keys that hold across labs,
 * and texts as they are sent. Read once for a batch, since joining each row with its function costs
 * more than the row. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FUNCTION_KEYS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FUNCTION_KEYS_H

#include "collector-server/forward/row_values.h"

#include <sqlite3.h>

/* Texts are in RowBinary, with their lengths. */
typedef struct sj_forward_function {
    int64_t function_id;
    uint64_t key;        /* (build-id, offset); never 0 */
    uint64_t symbol_key; /* the same function in other builds */
    uint64_t offset;
    sj_byte_buffer name, build_id, module;
} sj_forward_function;

typedef struct sj_function_keys sj_function_keys;

/* sj_function_keys_new prepares for a database, which is borrowed. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_function_keys_new(sqlite3 *database, sj_function_keys **keys,
                                             sj_error *error);
void sj_function_keys_free(sj_function_keys *keys); /* NULL is allowed */

/* sj_function_keys_forget forgets what was read: the database may have changed. */
void sj_function_keys_forget(sj_function_keys *keys);

/* sj_function_keys_get borrows a function until the next call; one that the database does not have
 * has empty texts. NULL: no memory, or the database cannot be read. */
const sj_forward_function *sj_function_keys_get(sj_function_keys *keys, int64_t function_id);

/* sj_function_keys_read_paths makes the keys of a session's call paths: the hash of the caller's
 * path and the symbol key. A path whose caller is missing counts as outermost. SJ_ENOMEM, SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_function_keys_read_paths(sj_function_keys *keys, int64_t session_id,
                                                    sj_error *error);

/* sj_function_keys_path is the key of a path of the session whose paths were read last; 0: none. */
uint64_t sj_function_keys_path(const sj_function_keys *keys, int64_t path_id);

#endif
