#include "agent/assembler/text_store.h"

#include "proto/base/array.h"

#include <stdlib.h>

enum { PIECE_BYTES = 16 * 1024 };

void sj_text_store_deinit(sj_text_store *store)
{
    for (size_t i = 0; i < store->piece_count; i++) {
        free(store->pieces[i]);
    }
    free(store->pieces);
    *store = (sj_text_store){0};
}

void sj_text_store_clear(sj_text_store *store)
{
    while (store->piece_count > 1) {
        free(store->pieces[--store->piece_count]);
    }
    store->used = 0;
    store->total_bytes = 0;
}

static sj_status add_piece(sj_text_store *store)
{
    SJ_TRY(sj_array_reserve(&store->pieces, &store->piece_capacity, store->piece_count, 1,
                            sizeof(*store->pieces)));
    char *piece = malloc(PIECE_BYTES);
    if (piece == NULL) {
        return SJ_ENOMEM;
    }
    store->pieces[store->piece_count++] = piece;
    return SJ_OK;
}

sj_status sj_text_store_add(sj_text_store *store, size_t bytes, char **text)
{
    if (store->piece_count == 0 || bytes > PIECE_BYTES - store->used) {
        SJ_TRY(add_piece(store));
        store->used = 0;
    }
    *text = store->pieces[store->piece_count - 1] + store->used;
    store->used += bytes;
    store->total_bytes += bytes;
    return SJ_OK;
}
