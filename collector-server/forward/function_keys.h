/* Facts about the functions and call paths of a session: keys that are the same in all labs, and
 * texts as they are sent. They are read once for a batch, because a join of each row with its
 * function costs more than the row. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FUNCTION_KEYS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FUNCTION_KEYS_H

#include "collector-server/forward/row_values.h"

#include <sqlite3.h>

/* A function. Its texts have ClickHouse's RowBinary form: the length, then the bytes. */
typedef struct sj_forward_function {
    int64_t function_id;
    uint64_t key;        /* hash of build-id and offset; never 0 */
    uint64_t symbol_key; /* equal for the same function in other builds of its module */
    uint64_t offset;
    sj_byte_buffer name, build_id, module;
} sj_forward_function;

typedef struct sj_function_keys sj_function_keys;

/* Prepares to read a database, which is borrowed. Returns SJ_ENOMEM or SJ_EIO on failure. */
SJ_MUST_CHECK sj_status sj_function_keys_new(sqlite3 *database, sj_function_keys **keys,
                                             sj_error *error);
void sj_function_keys_free(sj_function_keys *keys); /* NULL is allowed */

/* Discards everything that was read, because the database may have changed. */
void sj_function_keys_forget(sj_function_keys *keys);

/* Returns a function, borrowed until the next call of a function of this header. If the database
 * does not have it, its texts are empty. Returns NULL if out of memory, or if the database cannot
 * be read. */
const sj_forward_function *sj_function_keys_get(sj_function_keys *keys, int64_t function_id);

/* Computes the keys of a session's call paths: a hash of the caller's path and the symbol key. A
 * path whose caller is missing counts as outermost. Returns SJ_ENOMEM or an error of the
 * database. */
SJ_MUST_CHECK sj_status sj_function_keys_read_paths(sj_function_keys *keys, int64_t session_id,
                                                    sj_error *error);

/* Returns the key of a call path. The path's session must be the one whose paths were read last.
 * Returns 0 if that session does not have the path. */
uint64_t sj_function_keys_path(const sj_function_keys *keys, int64_t path_id);

#endif
