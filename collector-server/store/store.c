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
    DEFAULT_CALLGRAPH_BYTES = 256 << 20,
    WAL_RESTART_PAGES = 4096, /* 64 MiB: try to begin the log anew */
    VACUUM_PAGES = 256,
    ACTIVE_USES = 16384, /* a session used within so many uses of any is in use */
    ACTIVE_SHARE = 4,    /* sessions in use may take so many times the memory */
    TRIM_PERIOD = 64     /* blocks after which memory is looked at within a batch */
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

/* Ids are random; a liar's that are not cost time, and only as long as its sessions are used. */
static sj_session_state **bucket_of(sj_store *store, const sj_session_id *id)
{
    uint64_t halves[2];
    memcpy(halves, id->bytes, sizeof(halves));
    const uint64_t mixed = (halves[0] ^ halves[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &store->buckets[(mixed >> 32) % SJ_STORE_BUCKETS];
}

sj_status sj_store_session(sj_store *store, const uint8_t *id, size_t id_bytes,
                           sj_session_state **state, sj_error *error)
{
    sj_session_id wanted;
    if (id_bytes != sizeof(wanted.bytes)) {
        return sj_fail(error, SJ_ECORRUPT, "a session id has %zu bytes, not 16", id_bytes);
    }
    memcpy(wanted.bytes, id, sizeof(wanted.bytes));
    *state = *bucket_of(store, &wanted);
    while (*state != NULL && memcmp(&(*state)->id, &wanted, sizeof(wanted)) != 0) {
        *state = (*state)->next_in_bucket;
    }
    if (*state != NULL) {
        (*state)->last_used = ++store->use_count;
        return SJ_OK;
    }
    SJ_TRY(sj_array_grow((void **)&store->sessions, &store->session_capacity, store->session_count,
                         sizeof(sj_session_state *)));
    const sj_status status = sj_session_state_load(&store->sql, &wanted, state, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, SJ_ENOTFOUND, "a session that was not announced: %02x%02x%02x%02x...",
                       id[0], id[1], id[2], id[3]);
    }
    SJ_TRY(status);
    (*state)->last_used = ++store->use_count;
    (*state)->next_in_bucket = *bucket_of(store, &wanted);
    *bucket_of(store, &wanted) = *state;
    store->sessions[store->session_count++] = *state;
    return sj_store_catch_up(store, *state, error);
}

static sj_status write_all_sums(sj_store *store, sj_error *error);

static void drop_session(sj_store *store, size_t place)
{
    sj_session_state *state = store->sessions[place];
    sj_session_state **link = bucket_of(store, &state->id);
    while (*link != state) {
        link = &(*link)->next_in_bucket;
    }
    *link = state->next_in_bucket;
    sj_session_state_free(state);
    store->sessions[place] = store->sessions[--store->session_count];
}

static void drop_guests(sj_store *store)
{
    for (size_t i = store->session_count; i > 0; --i) {
        if (store->sessions[i - 1]->is_guest) {
            drop_session(store, i - 1);
        }
    }
}

static size_t find_oldest(const sj_store *store)
{
    size_t oldest = 0;
    for (size_t i = 1; i < store->session_count; ++i) {
        if (store->sessions[i]->last_used < store->sessions[oldest]->last_used) {
            oldest = i;
        }
    }
    return oldest;
}

/* What may be held before a session goes: one that is in use would only be read back at its next
 * block, which costs far more than its memory. */
static size_t limit_for(const sj_store *store, const sj_session_state *state)
{
    const bool is_active = store->use_count - state->last_used < ACTIVE_USES;
    return is_active ? store->callgraph_memory_bytes * ACTIVE_SHARE : store->callgraph_memory_bytes;
}

/* Forgets the sessions used longest ago until the rest fits; nothing is lost: see load_graph. The
 * one used last stays. Within a batch, as one alone may bring in more sessions than there is memory
 * for. */
static sj_status trim_sessions(sj_store *store, sj_error *error)
{
    size_t bytes = 0;
    for (size_t i = 0; i < store->session_count; ++i) {
        bytes += sj_session_state_bytes(store->sessions[i]);
    }
    while (bytes > store->callgraph_memory_bytes && store->session_count > 1) {
        const size_t oldest = find_oldest(store);
        sj_session_state *state = store->sessions[oldest];
        if (bytes <= limit_for(store, state)) {
            break;
        }
        if (state->dirty) {
            SJ_TRY(sj_session_flush(&store->sql, state, error));
        }
        bytes -= sj_session_state_bytes(state);
        drop_session(store, oldest);
    }
    return SJ_OK;
}

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
    sj_status status =
        sj_database_open(options->path, options->create ? SJ_DATABASE_CREATE : SJ_DATABASE_WRITE,
                         &made->database, error);
    if (status == SJ_OK) {
        status = sj_statements_prepare(&made->sql, made->database, error);
    }
    if (status == SJ_OK && (sj_block_decoder_new(&made->decoder) != SJ_OK ||
                            sj_block_decoder_new(&made->stack_decoder) != SJ_OK)) {
        status = sj_fail(error, SJ_ENOMEM, "no memory for decoding blocks");
    }
    if (status != SJ_OK) {
        sj_store_close(made);
        return status;
    }
    sqlite3_wal_hook(made->database, note_wal_pages, made);
    status = write_all_sums(made, error);
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
    } else if (store->session_count > 0) {
        sj_error ignored; /* the next who opens the file makes the sums good */
        (void)!write_all_sums(store, &ignored);
    }
    while (store->session_count > 0) {
        drop_session(store, store->session_count - 1);
    }
    sj_statements_finalize(&store->sql);
    sqlite3_close(store->database);
    sj_block_decoder_free(store->decoder);
    sj_block_decoder_free(store->stack_decoder);
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

/* A constraint that a lying frame ran into is the frame's fault, not the disk's. */
static sj_status blame(sj_store *store, sj_status status)
{
    const bool constraint = (sqlite3_extended_errcode(store->database) & 0xff) == SQLITE_CONSTRAINT;
    return status == SJ_EIO && constraint ? SJ_ECORRUPT : status;
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
        return ++store->applied_blocks % TRIM_PERIOD == 0 ? trim_sessions(store, error) : SJ_OK;
    }
    return blame(store, apply_in_savepoint(store, frame, duplicate, error));
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
        status = trim_sessions(store, error);
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
    drop_guests(store);
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
        if (store->sessions[i]->dirty) {
            return true;
        }
    }
    const bool found = sj_sql_bind(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT, &ignored, "i",
                                   (int64_t)0) == SJ_OK &&
                       sj_sql_step(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT, &ignored) == SJ_OK;
    sj_sql_reset(&store->sql, SJ_SQL_SESSION_UNSUMMED_NEXT);
    return found;
}

/* Writes what was put off, by whomever. */
static sj_status write_all_sums(sj_store *store, sj_error *error)
{
    if (!has_unsummed(store)) {
        return SJ_OK;
    }
    SJ_TRY(sj_store_begin(store, error));
    const sj_status status = sj_store_load_unsummed(store, error);
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    return commit(store, true, error);
}

void sj_store_rollback(sj_store *store)
{
    sj_error ignored;
    if (store->in_batch && sqlite3_get_autocommit(store->database) == 0 &&
        sj_sql_run(&store->sql, SJ_SQL_ROLLBACK, &ignored, "") != SJ_OK) {
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    }
    store->in_batch = false;
    while (store->session_count > 0) {
        drop_session(store, store->session_count - 1);
    }
}

void sj_store_maintain(sj_store *store)
{
    char vacuum[64];
    if (store->in_batch) {
        return;
    }
    sj_error ignored; /* tried again at the next commit */
    (void)!write_all_sums(store, &ignored);
    snprintf(vacuum, sizeof(vacuum), "PRAGMA incremental_vacuum(%d)", (int)VACUUM_PAGES);
    sqlite3_exec(store->database, vacuum, NULL, NULL, NULL);
    checkpoint(store, SQLITE_CHECKPOINT_TRUNCATE);
}

uint64_t sj_store_stored_calls(const sj_store *store)
{
    return store->stored_calls;
}
