/* Checks stored blocks. A sound block can be read, belongs to its row, names functions of its
 * session and agrees with the stack that it begins with. Blocks in frames are checked by the same
 * code (block_rules.h, proto/callgraph). One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_BLOCK_CHECK_H
#define SJ_COLLECTOR_SERVER_STORE_BLOCK_CHECK_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_block_checker sj_block_checker;

/* The result of one check. */
typedef struct sj_block_verdict {
    int64_t session_id; /* this and the next two fields are 0 if the row cannot be read */
    int64_t stream_id;
    int64_t calls;
    bool is_marked; /* an earlier check has marked the block as faulty (blocks.quarantined) */
    bool has_bytes; /* the check read the bytes of the block */
    /* The bytes of the block or of its stack are in a file that cannot be read now. Then `fault`
     * says so, too. */
    bool is_away;
    const char *fault; /* a sentence, valid until the next check; NULL if there is none */
} sj_block_verdict;

/* Prepares checks of the blocks in `schema` of `database` ("main" or the name of an attached
 * database). The caller keeps both open and frees the checker before it closes them. Returns
 * SJ_ENOMEM and errors of SQLite. */
SJ_MUST_CHECK sj_status sj_block_checker_new(sqlite3 *database, const char *schema,
                                             sj_block_checker **checker, sj_error *error);
void sj_block_checker_free(sj_block_checker *checker); /* NULL is allowed */

/* Checks one block. Returns SJ_OK whatever the verdict is, SJ_ENOTFOUND if the block no longer
 * exists, SJ_ENOMEM, or an error of SQLite other than damage. Blocks while it reads the block, its
 * stack and the modules of its session. */
SJ_MUST_CHECK sj_status sj_block_checker_check(sj_block_checker *checker, int64_t block_id,
                                               sj_block_verdict *verdict);

#endif
