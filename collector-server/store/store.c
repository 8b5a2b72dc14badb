/* Design notes
 *
 * Metadata frames run in a savepoint, so that one that turns out to lie changes nothing and the
 * batch goes on; blocks are checked before anything is written and need none. What memory holds
 * beyond the database (call graphs, sums) is only ever ahead of it within a batch: a rollback drops
 * it. */
#include "collector-server/store/store_internal.h"

#include "collector-server/store/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    ARENA_BYTES = 8 << 20,
    DEFAULT_CALLGRAPH_BYTES = 24 << 20,
    WAL_RESTART_PAGES = 4096, /* 64 MiB: try to begin the log anew */
    VACUUM_PAGES = 256,
    TRIM_PERIOD = 64 /* blocks after which memory is looked at within a batch */
};

static void *arena_alloc(void *context, size_t size)
{
    sj_store *store = context;
    const size_t rounded = (size + 15) & ~(size_t)15;
    if (rounded < size || rounded > ARENA_BYTES - store->arena.used) {
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
    if (size > store->scratch_capacity) {
        uint8_t *moved = realloc(store->scratch, size * 2);
        if (moved == NULL) {
            return SJ_ENOMEM;
        }
        store->scratch = moved;
        store->scratch_capacity = size * 2;
    }
    *bytes = store->scratch;
    return SJ_OK;
}

static sj_status write_all_sums(sj_store *store, sj_error *error);

static int note_wal_pages(void *context, sqlite3 *database, const char *name, int pages)
{
    (void)database;
    (void)name;
    sj_store *store = context;
    store->wal_pages = pages;
    return SQLITE_OK;
}

sj_status sj_store_open(const sj_store_options *options, sj_store **store, sj_error *error)
{
    sj_store *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(options->path)) == NULL ||
        (made->arena.bytes = malloc(ARENA_BYTES)) == NULL) {
        sj_store_close(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for the store");
    }
    made->max_bytes = options->max_bytes;
    made->reserve_bytes = options->reserve_bytes;
    made->sums_delay_ns = options->sums_delay_ms * UINT64_C(1000000);
    made->callgraph_memory_bytes = options->callgraph_memory_bytes != 0
                                       ? options->callgraph_memory_bytes
                                       : DEFAULT_CALLGRAPH_BYTES;
    made->most_paths = options->most_paths != 0 ? options->most_paths : SJ_MOST_PATHS;
    sj_status status =
        sj_database_open(options->path, options->create ? SJ_DATABASE_CREATE : SJ_DATABASE_WRITE,
                         &made->database, error);
    if (status == SJ_OK) {
        status = sj_statements_prepare(&made->sql, made->database, error);
    }
    if (status == SJ_OK && (sj_block_decoder_new(&made->decoder) != SJ_OK ||
                            sj_block_decoder_new(&made->stack_decoder) != SJ_OK ||
                            sj_callgraph_new(&made->gauge) != SJ_OK)) {
        status = sj_fail(error, SJ_ENOMEM, "no memory for decoding blocks");
    }
    if (status != SJ_OK) {
        sj_store_close(made);
        return status;
    }
    sqlite3_wal_hook(made->database, note_wal_pages, made);
    made->has_leftovers = made->sums_delay_ns != 0;
    status = made->has_leftovers ? SJ_OK : write_all_sums(made, error);
    if (status != SJ_OK) {
        sj_store_close(made);
        return status;
    }
    *store = made;
    return SJ_OK;
}

void sj_store_close(sj_store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->in_batch) {
        sj_store_rollback(store);
    } else if (store->session_count > 0 || store->has_leftovers) {
        sj_error ignored; /* the next who opens the file makes the sums good */
        (void)!write_all_sums(store, &ignored);
    }
    sj_store_forget_sessions(store, false);
    sj_statements_finalize(&store->sql);
    sqlite3_close(store->database);
    sj_block_decoder_free(store->decoder);
    sj_block_decoder_free(store->stack_decoder);
    sj_callgraph_free(store->gauge);
    free(store->sessions);
    free(store->scratch);
    free(store->arena.bytes);
    free(store->path);
    free(store);
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char name[4096];
    struct stat status;
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static bool is_full(const sj_store *store)
{
    struct statvfs disk;
    if (store->max_bytes != 0 &&
        file_bytes(store->path, "") + file_bytes(store->path, "-wal") >= store->max_bytes) {
        return true;
    }
    return store->reserve_bytes != 0 && statvfs(store->path, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < store->reserve_bytes;
}

sj_status sj_store_begin(sj_store *store, sj_error *error)
{
    if (store->in_batch) {
        return sj_fail(error, SJ_EINVAL, "a batch is open already");
    }
    store->full = is_full(store);
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_BEGIN, error, ""));
    store->in_batch = true;
    return SJ_OK;
}

static sj_status apply_in_savepoint(sj_store *store, const sj_frame_view *frame, bool *duplicate,
                                    sj_error *error)
{
    sj_error ignored;
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_SAVEPOINT, error, ""));
    const bool is_policy = frame->type >= SJ_FRAME_POLICY && frame->type <= SJ_FRAME_STACK;
    const sj_status status = frame->type == SJ_FRAME_MODULE
                                 ? sj_store_apply_module(store, frame, duplicate, error)
                             : is_policy ? sj_store_apply_policy(store, frame, duplicate, error)
                                         : sj_store_apply_metadata(store, frame, duplicate, error);
    if (status != SJ_OK) {
        SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_ROLLBACK_TO, &ignored, ""));
    }
    SJ_TRY(sj_sql_run(&store->sql, SJ_SQL_RELEASE, &ignored, ""));
    return status;
}

sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame, bool *duplicate,
                         sj_error *error)
{
    *duplicate = false;
    if (!store->in_batch) {
        return sj_fail(error, SJ_EINVAL, "no batch is open");
    }
    if (frame->type == SJ_FRAME_BLOCK) {
        SJ_TRY(sj_store_apply_block(store, frame, duplicate, error));
        return ++store->applied_blocks % TRIM_PERIOD == 0 ? sj_store_trim_sessions(store, error)
                                                          : SJ_OK;
    }
    return apply_in_savepoint(store, frame, duplicate, error);
}

static void checkpoint(sj_store *store, int mode)
{
    int frames = 0;
    sj_database_set_patience(store->database,
                             false); /* a reader in the way is tried again next time */
    sqlite3_wal_checkpoint_v2(store->database, NULL, mode, &frames, NULL);
    sj_database_set_patience(store->database, true);
}

static sj_status commit(sj_store *store, bool all_sums, sj_error *error)
{
    sj_status status = sj_store_write_sums(store, all_sums, error);
    if (status == SJ_OK) {
        status = sj_store_trim_sessions(store, error);
    }
    if (status == SJ_OK) {
        status = sj_sql_run(&store->sql, SJ_SQL_COMMIT, error, "");
    }
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    store->in_batch = false;
    if (store->wal_pages >= WAL_RESTART_PAGES) {
        checkpoint(store, SQLITE_CHECKPOINT_RESTART);
    } else if (store->wal_pages >= WAL_RESTART_PAGES / 4) {
        checkpoint(store, SQLITE_CHECKPOINT_PASSIVE);
    }
    sj_store_forget_sessions(store, true);
    return SJ_OK;
}

sj_status sj_store_commit(sj_store *store, sj_error *error)
{
    return commit(store, false, error);
}

static bool has_unsummed(sj_store *store)
{
    sj_error ignored;
    for (size_t i = 0; i < store->session_count; ++i) {
        if (store->sessions[i]->dirty && !store->sessions[i]->is_apart) {
            return true;
        }
    }
    const bool found = sj_sql_bind(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT, &ignored, "ii",
                                   (int64_t)0, (int64_t)0) == SJ_OK &&
                       sj_sql_step(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT, &ignored) == SJ_OK;
    sj_sql_reset(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    return found;
}

/* Writes some of what was put off, by whomever. */
static sj_status write_some_sums(sj_store *store, sj_error *error)
{
    SJ_TRY(sj_store_begin(store, error));
    const sj_status status = sj_store_load_unsummed(store, error);
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    return commit(store, true, error);
}

static sj_status write_all_sums(sj_store *store, sj_error *error)
{
    while (has_unsummed(store)) {
        SJ_TRY(write_some_sums(store, error));
    }
    return SJ_OK;
}

void sj_store_rollback(sj_store *store)
{
    sj_error ignored;
    if (store->in_batch && sqlite3_get_autocommit(store->database) == 0 &&
        sj_sql_run(&store->sql, SJ_SQL_ROLLBACK, &ignored, "") != SJ_OK) {
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    }
    store->in_batch = false;
    sj_store_forget_sessions(store, false);
}

bool sj_store_maintain(sj_store *store)
{
    char vacuum[64];
    if (store->in_batch) {
        return false;
    }
    if (store->has_leftovers && sj_store_mend_some(store, true) && store->has_leftovers) {
        return true;
    }
    sj_error ignored; /* tried again at the next commit */
    if (has_unsummed(store) && write_some_sums(store, &ignored) == SJ_OK && has_unsummed(store)) {
        return true;
    }
    snprintf(vacuum, sizeof(vacuum), "PRAGMA incremental_vacuum(%d)", (int)VACUUM_PAGES);
    sqlite3_exec(store->database, vacuum, NULL, NULL, NULL);
    checkpoint(store, SQLITE_CHECKPOINT_TRUNCATE);
    return false;
}

uint64_t sj_store_stored_calls(const sj_store *store)
{
    return store->stored_calls;
}
