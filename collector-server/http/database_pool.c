#include "collector-server/http/database_pool.h"

#include "collector-server/query/query.h"
#include "collector-server/query/tick_scale.h"
#include "collector-server/store/database.h"
#include "proto/callgraph/histogram.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { POOL_MAX = 16, STEPS_BETWEEN_CHECKS = 2000, BUSY_TIMEOUT_MS = 1000 };

typedef struct pooled {
    sqlite3 *database;
    uint64_t deadline_ns;
    bool (*is_wanted)(void *context);
    void *context;
    bool busy;
} pooled;

struct sj_database_pool {
    char *path;
    pthread_mutex_t lock;
    pooled entries[POOL_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* SQLite's progress handler: a result other than 0 interrupts the statement. */
static int is_over(void *context)
{
    const pooled *entry = context;
    return now_ns() > entry->deadline_ns ||
           (entry->is_wanted != NULL && !entry->is_wanted(entry->context));
}

static void histogram_ns(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sj_histogram histogram = {0};
    sj_tick_scale scale;
    if (sqlite3_value_type(values[0]) != SQLITE_BLOB ||
        !sj_tick_scale_init(&scale, sqlite3_value_int64(values[2]),
                            sqlite3_value_int64(values[3])) ||
        sqlite3_value_type(values[4]) == SQLITE_NULL ||
        sqlite3_value_type(values[5]) == SQLITE_NULL) {
        return;
    }
    const uint8_t *bytes = sqlite3_value_blob(values[0]);
    const sj_slice slice = {.data = bytes, .size = (size_t)sqlite3_value_bytes(values[0])};
    if (sj_histogram_decode(slice, &histogram) == SJ_OK && histogram.octave_count > 0) {
        const sj_quantile found =
            sj_histogram_find_quantile(&histogram, sqlite3_value_double(values[1]));
        sqlite3_result_int64(context,
                             sj_quantile_within(&found, sj_ticks_to_ns(&scale, found.value),
                                                sqlite3_value_int64(values[4]),
                                                sqlite3_value_int64(values[5])));
    }
    sj_histogram_deinit(&histogram);
}

static sj_status check_schema(sqlite3 *database, const char *path, sj_error *error)
{
    static const char probe[] = "SELECT count(*) FROM sessions, function_stats, call_paths WHERE 0";
    if (sqlite3_exec(database, probe, NULL, NULL, NULL) == SQLITE_OK) {
        return sj_database_check(database, path, error);
    }
    const int code = sqlite3_errcode(database) & 0xff;
    if (code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_CORRUPT) {
        return sj_fail(error, SJ_ECORRUPT, "%s is not a Sojourn database (%s)", path,
                       sqlite3_errmsg(database));
    }
    return sj_fail(error, SJ_EIO, "cannot read %s: %s", path, sqlite3_errmsg(database));
}

sj_status sj_database_pool_open(const sj_database_pool *pool, sqlite3 **database, sj_error *error)
{
    sqlite3 *opened = NULL;
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(pool->path, &opened, flags, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(opened, BUSY_TIMEOUT_MS);
        code = sqlite3_create_function_v2(opened, "histogram_ns", 6,
                                          SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, histogram_ns,
                                          NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        const sj_status status = sj_fail(error, SJ_EIO, "cannot open %s: %s", pool->path,
                                         opened != NULL ? sqlite3_errmsg(opened) : "no memory");
        sqlite3_close(opened);
        return status;
    }
    const sj_status status = sj_query_register(opened, NULL, error);
    if (status != SJ_OK) {
        sqlite3_close(opened);
        return status;
    }
    *database = opened;
    return SJ_OK;
}

static sj_status open_first(sj_database_pool *pool, sj_error *error)
{
    sqlite3 *database = NULL;
    SJ_TRY(sj_database_pool_open(pool, &database, error));
    pool->entries[0].database = database;
    return check_schema(database, pool->path, error);
}

sj_status sj_database_pool_new(const char *path, sj_database_pool **pool, sj_error *error)
{
    struct stat file;
    if (stat(path, &file) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no file %s", path);
    }
    if (!S_ISREG(file.st_mode)) {
        return sj_fail(error, SJ_ECORRUPT, "%s is not a file", path);
    }
    sj_database_pool *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->path = strdup(path)) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    const sj_status status = open_first(made, error);
    if (status != SJ_OK) {
        sj_database_pool_free(made);
        return status;
    }
    *pool = made;
    return SJ_OK;
}

void sj_database_pool_free(sj_database_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (size_t i = 0; i < POOL_MAX; i++) {
        sqlite3_close(pool->entries[i].database);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool->path);
    free(pool);
}

static pooled *reserve_entry(sj_database_pool *pool)
{
    pooled *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < POOL_MAX && found == NULL; i++) {
        if (!pool->entries[i].busy) {
            found = &pool->entries[i];
            found->busy = true;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void release_entry(sj_database_pool *pool, pooled *entry)
{
    pthread_mutex_lock(&pool->lock);
    entry->busy = false;
    pthread_mutex_unlock(&pool->lock);
}

sj_status sj_database_pool_borrow(sj_database_pool *pool, unsigned deadline_ms,
                                  bool (*is_wanted)(void *context), void *context,
                                  sqlite3 **database, sj_error *error)
{
    pooled *entry = reserve_entry(pool);
    if (entry == NULL) {
        return sj_fail(error, SJ_ETIMEDOUT, "too many requests at once");
    }
    if (entry->database == NULL) {
        sqlite3 *opened = NULL;
        const sj_status status = sj_database_pool_open(pool, &opened, error);
        if (status != SJ_OK) {
            release_entry(pool, entry);
            return status;
        }
        pthread_mutex_lock(&pool->lock);
        entry->database = opened;
        pthread_mutex_unlock(&pool->lock);
    }
    entry->deadline_ns = now_ns() + (uint64_t)deadline_ms * 1000000u;
    entry->is_wanted = is_wanted;
    entry->context = context;
    sqlite3_progress_handler(entry->database, STEPS_BETWEEN_CHECKS, is_over, entry);
    if (sqlite3_exec(entry->database, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        const sj_status status =
            sj_fail(error, SJ_EIO, "database: %s", sqlite3_errmsg(entry->database));
        release_entry(pool, entry);
        return status;
    }
    *database = entry->database;
    return SJ_OK;
}

void sj_database_pool_give(sj_database_pool *pool, sqlite3 *database)
{
    sqlite3_progress_handler(database, 0, NULL, NULL);
    sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < POOL_MAX; i++) {
        if (pool->entries[i].database == database) {
            pool->entries[i].busy = false;
        }
    }
    pthread_mutex_unlock(&pool->lock);
}
