#include "collector-server/forward/function_keys.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1024 };

typedef struct call_path {
    int64_t path_id, parent_id; /* parent_id 0: none */
    uint64_t symbol_key;
    uint64_t key; /* 0: not computed yet */
    bool is_rare;
} call_path;

struct sj_function_keys {
    sqlite3_stmt *find, *list;      /* query for one function; query for the paths of a session */
    sj_forward_function *functions; /* in the order of their first use */
    size_t count, capacity;
    uint32_t *slots; /* index + 1 of a function, hashed by its id; 0: free */
    size_t slot_count;
    /* Index of the function that was found last in `slots`; rows come grouped by function. */
    size_t last;
    call_path *paths; /* sorted by path_id */
    size_t path_count, path_capacity;
};

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

static uint64_t function_key(sj_slice build_id, uint64_t offset)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < build_id.size; ++i) { /* FNV-1a */
        hash = (hash ^ build_id.data[i]) * UINT64_C(0x100000001b3);
    }
    const uint64_t key = mix(mix(hash) ^ offset * UINT64_C(0x9e3779b97f4a7c15));
    return key != 0 ? key : 1;
}

static uint64_t path_key(uint64_t caller, uint64_t symbol_key)
{
    const uint64_t key = mix(mix(caller + UINT64_C(0x9e3779b97f4a7c15)) ^ symbol_key);
    return key != 0 ? key : 1;
}

sj_status sj_function_keys_new(sqlite3 *database, sj_function_keys **keys, sj_error *error)
{
    sj_function_keys *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->slots = calloc(FIRST_SLOTS, sizeof(*made->slots))) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->slot_count = FIRST_SLOTS;
    if (sqlite3_prepare_v3(
            database,
            "SELECT f.symbol_key, f.offset, f.name, m.build_id, m.path FROM functions"
            " AS f LEFT JOIN modules AS m USING (module_id) WHERE function_id = ?1",
            -1, SQLITE_PREPARE_PERSISTENT, &made->find, NULL) != SQLITE_OK ||
        sqlite3_prepare_v3(database,
                           "SELECT path_id, parent_path_id, function_id, rare FROM call_paths"
                           " WHERE path_id >= ?1 << 32 AND path_id < (?1 + 1) << 32 AND"
                           " +session_id = ?1 ORDER BY path_id",
                           -1, SQLITE_PREPARE_PERSISTENT, &made->list, NULL) != SQLITE_OK) {
        sj_function_keys_free(made);
        return sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
    }
    *keys = made;
    return SJ_OK;
}

void sj_function_keys_forget(sj_function_keys *keys)
{
    for (size_t i = 0; i < keys->count; ++i) {
        sj_byte_buffer_deinit(&keys->functions[i].name);
        sj_byte_buffer_deinit(&keys->functions[i].build_id);
        sj_byte_buffer_deinit(&keys->functions[i].module);
    }
    keys->count = 0;
    keys->path_count = 0;
    memset(keys->slots, 0, keys->slot_count * sizeof(*keys->slots));
}

void sj_function_keys_free(sj_function_keys *keys)
{
    if (keys == NULL) {
        return;
    }
    sj_function_keys_forget(keys);
    sqlite3_finalize(keys->find);
    sqlite3_finalize(keys->list);
    free(keys->functions);
    free(keys->slots);
    free(keys->paths);
    free(keys);
}

/* Returns the slot of a function, or the free slot for it. At least half of the slots are free. */
static uint32_t *slot_of(const sj_function_keys *keys, int64_t function_id)
{
    size_t at = (size_t)mix((uint64_t)function_id) & (keys->slot_count - 1);
    while (keys->slots[at] != 0 &&
           keys->functions[keys->slots[at] - 1].function_id != function_id) {
        at = (at + 1) & (keys->slot_count - 1);
    }
    return &keys->slots[at];
}

static bool grow(sj_function_keys *keys)
{
    if (sj_array_reserve(&keys->functions, &keys->capacity, keys->count, 1,
                         sizeof(*keys->functions)) != SJ_OK) {
        return false;
    }
    if (2 * (keys->count + 1) <= keys->slot_count) {
        return true;
    }
    uint32_t *slots = calloc(2 * keys->slot_count, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    free(keys->slots);
    keys->slots = slots;
    keys->slot_count *= 2;
    for (size_t i = 0; i < keys->count; ++i) {
        *slot_of(keys, keys->functions[i].function_id) = (uint32_t)i + 1;
    }
    return true;
}

static sj_slice blob_of(sqlite3_stmt *row, int at)
{
    const void *data = sqlite3_column_blob(row, at); /* call this before asking for the size,
                                                      * because it may convert the value */
    return (sj_slice){.data = data, .size = (size_t)sqlite3_column_bytes(row, at)};
}

/* Reads a function from the database. Returns 0, or -1 if it cannot be read. */
static int read_function(sj_function_keys *keys, sj_forward_function *function)
{
    sj_slice build_id = {0};
    sqlite3_stmt *row = keys->find;
    sqlite3_bind_int64(row, 1, function->function_id);
    const int result = sqlite3_step(row);
    const bool is_there = result == SQLITE_ROW;
    if (is_there) {
        build_id = blob_of(row, 3);
        function->symbol_key = (uint64_t)sqlite3_column_int64(row, 0);
        function->offset = (uint64_t)sqlite3_column_int64(row, 1);
    }
    function->key = function_key(build_id, function->offset);
    sj_row_put_text(&function->name, is_there ? blob_of(row, 2) : (sj_slice){0});
    sj_byte_buffer_put_varint(&function->build_id, 2 * (uint64_t)build_id.size);
    sj_row_put_hex(&function->build_id, build_id, build_id.size);
    sj_row_put_text(&function->module, is_there ? blob_of(row, 4) : (sj_slice){0});
    sqlite3_reset(row);
    return (is_there || result == SQLITE_DONE) && !function->name.failed &&
                   !function->build_id.failed && !function->module.failed
               ? 0
               : -1;
}

const sj_forward_function *sj_function_keys_get(sj_function_keys *keys, int64_t function_id)
{
    if (keys->last < keys->count && keys->functions[keys->last].function_id == function_id) {
        return &keys->functions[keys->last];
    }
    const uint32_t there = *slot_of(keys, function_id);
    if (there != 0) {
        keys->last = there - 1;
        return &keys->functions[there - 1];
    }
    if (!grow(keys)) {
        return NULL;
    }
    sj_forward_function *function = &keys->functions[keys->count++];
    *function = (sj_forward_function){.function_id = function_id};
    *slot_of(keys, function_id) = (uint32_t)keys->count;
    if (read_function(keys, function) != 0) {
        sj_function_keys_forget(keys);
        return NULL;
    }
    return function;
}

/* Finds a path. Numbers of paths are mostly consecutive, so the number usually gives the index. */
static call_path *find_path(const sj_function_keys *keys, int64_t path_id)
{
    const size_t count = keys->path_count;
    if (count != 0 && path_id >= keys->paths[0].path_id) {
        const uint64_t guess = (uint64_t)path_id - (uint64_t)keys->paths[0].path_id;
        if (guess < count && keys->paths[guess].path_id == path_id) {
            return &keys->paths[guess];
        }
    }
    const size_t low = SJ_BISECT(0, count, i, keys->paths[i].path_id < path_id);
    return low < count && keys->paths[low].path_id == path_id ? &keys->paths[low] : NULL;
}

/* Computes the keys of all paths. Callers mostly have smaller numbers, so one pass is usually
 * enough. Further passes compute the other keys. Paths whose callers form a circle keep 0. */
static void make_keys(sj_function_keys *keys)
{
    size_t made = 1;
    for (size_t left = keys->path_count; left != 0 && made != 0; left -= made) {
        made = 0;
        for (size_t i = 0; i < keys->path_count; ++i) {
            call_path *path = &keys->paths[i];
            if (path->key != 0) {
                continue;
            }
            const call_path *parent =
                path->parent_id != 0 ? find_path(keys, path->parent_id) : NULL;
            if (parent == NULL || parent->key != 0) {
                path->key =
                    path_key(parent != NULL ? parent->key : path->is_rare, path->symbol_key);
                made++;
            }
        }
    }
}

static sj_status add_path(void *context, sqlite3_stmt *row)
{
    sj_function_keys *keys = context;
    const sj_forward_function *function = sj_function_keys_get(keys, sqlite3_column_int64(row, 2));
    if (function == NULL || sj_array_reserve(&keys->paths, &keys->path_capacity, keys->path_count,
                                             1, sizeof(*keys->paths)) != SJ_OK) {
        return SJ_ENOMEM;
    }
    keys->paths[keys->path_count++] = (call_path){.path_id = sqlite3_column_int64(row, 0),
                                                  .parent_id = sqlite3_column_int64(row, 1),
                                                  .symbol_key = function->symbol_key,
                                                  .is_rare = sqlite3_column_int(row, 3) != 0};
    return SJ_OK;
}

sj_status sj_function_keys_read_paths(sj_function_keys *keys, int64_t session_id, sj_error *error)
{
    keys->path_count = 0;
    sqlite3_bind_int64(keys->list, 1, session_id);
    SJ_TRY(sj_sql_each_row(keys->list, add_path, keys, error));
    make_keys(keys);
    return SJ_OK;
}

uint64_t sj_function_keys_path(const sj_function_keys *keys, int64_t path_id)
{
    const call_path *path = find_path(keys, path_id);
    return path != NULL ? path->key : 0;
}
