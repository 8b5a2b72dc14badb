/* Texts of values that are kept and freed together. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_TEXT_STORE_H
#define SJ_AGENT_ASSEMBLER_TEXT_STORE_H

#include "proto/base/status.h"

#include <stddef.h>

/* All zero: empty. */
typedef struct sj_text_store {
    char **pieces;
    size_t piece_count;
    size_t piece_capacity;
    size_t used;        /* bytes used in the last piece */
    size_t total_bytes; /* sum of the sizes of all texts */
} sj_text_store;

void sj_text_store_deinit(sj_text_store *store);

/* Removes all texts. Keeps some of the memory for later ones. */
void sj_text_store_clear(sj_text_store *store);

/* Allocates a text of at most SJ_VALUE_TEXT_MOST bytes. The text is borrowed and stays at its
 * address until the store is cleared. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_text_store_add(sj_text_store *store, size_t bytes, char **text);

#endif
