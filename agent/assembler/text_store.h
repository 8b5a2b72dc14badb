/* Texts of values that are kept together for a while, and dropped together. One thread at a time.
 */
#ifndef SJ_AGENT_ASSEMBLER_TEXT_STORE_H
#define SJ_AGENT_ASSEMBLER_TEXT_STORE_H

#include "proto/base/status.h"

#include <stddef.h>

/* Zeroed is empty. */
typedef struct sj_text_store {
    char **pieces;
    size_t piece_count;
    size_t piece_capacity;
    size_t used;        /* of the last piece */
    size_t total_bytes; /* of all texts */
} sj_text_store;

void sj_text_store_deinit(sj_text_store *store);

/* sj_text_store_clear drops all texts; some of the memory is kept for those that come. */
void sj_text_store_clear(sj_text_store *store);

/* sj_text_store_add makes room for a text of at most SJ_VALUE_TEXT_MOST bytes, which stays where it
 * is until the store is cleared. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_text_store_add(sj_text_store *store, size_t bytes, char **text);

#endif
