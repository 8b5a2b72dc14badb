/* Memory that the store needs for one frame: for its protobuf message, and scratch. */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"

static void *arena_alloc(void *context, size_t size)
{
    sj_store *store = context;
    const size_t rounded = (size + 15) & ~(size_t)15;
    if (rounded < size || rounded > SJ_STORE_ARENA_BYTES - store->arena.used) {
        return NULL;
    }
    void *memory = store->arena.bytes + store->arena.used;
    store->arena.used += rounded;
    return memory;
}

static void arena_free(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

ProtobufCAllocator sj_store_allocator(sj_store *store)
{
    store->arena.used = 0;
    return (ProtobufCAllocator){.alloc = arena_alloc, .free = arena_free, .allocator_data = store};
}

sj_status sj_store_scratch(sj_store *store, size_t size, uint8_t **bytes)
{
    SJ_TRY(sj_array_reserve(&store->scratch, &store->scratch_capacity, 0, size, 1));
    *bytes = store->scratch;
    return SJ_OK;
}

sj_status sj_store_explain(sj_status status, sj_error *error)
{
    if (status == SJ_OK || error->text[0] != '\0') {
        return status;
    }
    return sj_fail(error, status, "%s",
                   status == SJ_ENOMEM ? "the store is short of memory" : "the store failed");
}
