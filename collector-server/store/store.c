/* Design notes
 *
 * Metadata frames run in a savepoint, so that an inconsistent frame is rolled back alone and the
 * batch continues. Blocks are checked before anything is written, and need no savepoint. The state
 * in memory (call graphs, aggregates) is ahead of the database only within a batch. A rollback
 * drops it. */
#include "collector-server/store/store_internal.h"

#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "collector-server/store/page_size.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CALLGRAPH_BYTES = 24 << 20 };

static int note_wal_pages(void *context, sqlite3 *database, const char *name, int pages)
{
    (void)database;
    (void)name;
    sj_store *store = context;
    store->wal_pages = pages;
    return SQLITE_OK;
}

/* Makes a store without a connection. */
static sj_status make_store(const sj_store_options *options, sj_store **store, sj_error *error)
{
    sj_store *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(options->path)) == NULL ||
        (made->arena.bytes = malloc(SJ_STORE_ARENA_BYTES)) == NULL) {
        sj_store_close(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for the store");
    }
    made->max_bytes = options->max_bytes;
    made->reserve_bytes = options->reserve_bytes;
    made->aggregates_delay_ns = options->aggregates_delay_ms * UINT64_C(1000000);
    made->quotas.usual = options->quota;
    made->lost_after_ms = options->lost_after_s * UINT64_C(1000);
    made->next_silence_check_ns = sj_store_now_ns() + made->lost_after_ms * UINT64_C(1000000);
    made->callgraph_memory_bytes = options->callgraph_memory_bytes != 0
                                       ? options->callgraph_memory_bytes
                                       : DEFAULT_CALLGRAPH_BYTES;
    made->path_budget = options->path_budget != 0 ? options->path_budget : SJ_PATH_BUDGET;
    made->most_paths = options->most_paths != 0 ? options->most_paths : SJ_MOST_PATHS;
    *store = made;
    return SJ_OK;
}

/* Prepares the statements and decoders of a store that has a connection. */
static sj_status prepare_store(sj_store *store, sj_error *error)
{
    SJ_TRY(sj_statements_prepare(&store->sql, store->database, error));
    return sj_block_files_new(store->database, "main", &store->files) == SJ_OK &&
                   sj_block_files_new(store->database, "main", &store->stack_files) == SJ_OK &&
                   sj_block_decoder_new(&store->decoder) == SJ_OK &&
                   sj_block_decoder_new(&store->stack_decoder) == SJ_OK &&
                   sj_callgraph_new(&store->scratch_graph) == SJ_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "no memory for decoding blocks");
}

static sj_status connect_store(sj_store *store, const sj_store_options *options, sj_error *error)
{
    SJ_TRY(sj_database_open(options->path, options->create ? SJ_DATABASE_CREATE : SJ_DATABASE_WRITE,
                            &store->database, error));
    if (options->create) {
        sj_database_unpack(store->database);
    }
    SJ_TRY(prepare_store(store, error));
    SJ_TRY(sj_file_watch_check(&store->watch, store->database, store->path, error));
    sqlite3_wal_hook(store->database, note_wal_pages, store);
    store->has_leftovers = store->aggregates_delay_ns != 0;
    return store->has_leftovers ? SJ_OK : sj_store_write_all_aggregates(store, error);
}

static sj_status open_store(const sj_store_options *options, sj_store **store, sj_error *error)
{
    sj_store *made = NULL;
    SJ_TRY(make_store(options, &made, error));
    const sj_status status = connect_store(made, options, error);
    if (status != SJ_OK) {
        sj_store_close(made);
        return status;
    }
    *store = made;
    return SJ_OK;
}

sj_status sj_store_open(const sj_store_options *options, sj_store **store, sj_error *error)
{
    error->text[0] = '\0';
    return sj_store_explain(open_store(options, store, error), error);
}

/* Stops SQLite from writing the log's pages into an overwritten file when the last connection
 * closes. The pages belong to the file that was there before. */
static void leave_overwritten(sj_store *store)
{
    sj_error ignored;
    if (store->watch.is_known &&
        sj_file_watch_check(&store->watch, store->database, store->path, &ignored) != SJ_OK) {
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
}

/* Frees everything but the connection. */
static void free_store(sj_store *store)
{
    sj_block_decoder_free(store->decoder);
    sj_block_decoder_free(store->stack_decoder);
    free(store->united_functions);
    free(store->united_frames);
    sj_callgraph_free(store->scratch_graph);
    free(store->sessions);
    sj_device_quotas_deinit(&store->quotas);
    free(store->scratch);
    free(store->arena.bytes);
    free(store->path);
    free(store);
}

static void finalize_statements(sj_store *store)
{
    sj_store_forget_sessions(store, false);
    sj_statements_finalize(&store->sql);
    sj_block_files_free(store->files);
    sj_block_files_free(store->stack_files);
}

void sj_store_close(sj_store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->in_batch) {
        sj_store_rollback(store);
    } else if (store->session_count > 0 || store->has_leftovers) {
        sj_error ignored; /* the next writer of the file recomputes the aggregates */
        (void)!sj_store_write_all_aggregates(store, &ignored);
    }
    finalize_statements(store);
    leave_overwritten(store);
    sqlite3_close(store->database);
    if (store->path != NULL) {
        sj_log_base_remove(store->path);
    }
    free_store(store);
}

sj_status sj_store_borrow(sqlite3 *database, sj_store **store, sj_error *error)
{
    const sj_store_options options = {.path = sqlite3_db_filename(database, "main")};
    sj_store *made = NULL;
    SJ_TRY(make_store(&options, &made, error));
    made->database = database;
    made->in_batch = true;
    made->batch = 1;
    const sj_status status = prepare_store(made, error);
    if (status != SJ_OK) {
        sj_store_return(made);
        return status;
    }
    *store = made;
    return SJ_OK;
}

void sj_store_return(sj_store *store)
{
    finalize_statements(store);
    free_store(store);
}

void sj_store_get_counters(const sj_store *store, sj_store_counters *counters)
{
    *counters = store->counters;
}

bool sj_store_is_own_device(const sj_store *store, const uint8_t *uuid, size_t uuid_bytes)
{
    return store->sender == NULL ||
           (uuid_bytes == sizeof(store->sender->device) &&
            memcmp(uuid, store->sender->device, sizeof(store->sender->device)) == 0);
}
