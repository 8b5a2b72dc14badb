/* Measures how the removal of a large session delays senders. The time is that of the transaction
 * that an acknowledgement waits for, without and during the removal.
 *
 *   removal_bench [megabytes] [seconds]
 *
 * The large session has REAL_BLOCKS received blocks, and copies of them up to its size. The copies
 * are never read. The other session receives a block of 4,096 events, then pauses for 5 ms. */
#include "collector-server/maintenance/removal.h"
#include "collector-server/store/database.h"
#include "collector-server/store/store.h"
#include "tests/collector-server/store/frame_maker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_COMMITS = 100000, PERIOD_NS = 5000000, REAL_BLOCKS = 50, BLOCK_EVENTS = 128 * 1024 };

static const char path[] = "removal_bench.db";
static atomic_bool removed;

static void must(sj_status status, const char *what, const sj_error *error)
{
    if (status != SJ_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, sj_status_text(status), error->text);
        exit(1);
    }
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double megabytes_of(const char *suffix)
{
    char name[64];
    struct stat status;
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) == 0 ? (double)status.st_size / 1e6 : 0;
}

static void put(sj_store *store, sj_slice bytes)
{
    sj_error error = {0};
    sj_frame_view view;
    bool duplicate;
    must(sj_frame_read(bytes, &view), "frame", &error);
    must(sj_store_apply(store, &view, NULL, &duplicate, &error), "apply", &error);
}

static void announce(sj_store *store, frame_maker *maker, bool end)
{
    sj_error error = {0};
    must(sj_store_begin(store, &error), "begin", &error);
    put(store, frame_maker_session(maker));
    put(store, frame_maker_module(maker));
    for (int i = 0; end && i < REAL_BLOCKS; ++i) {
        put(store, frame_maker_block(maker, BLOCK_EVENTS, 0));
    }
    if (end) {
        put(store, frame_maker_end(maker));
    }
    must(sj_store_commit(store, &error), "commit", &error);
}

static void run_sql(sqlite3 *database, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, message);
        exit(1);
    }
}

static void enlarge(long megabytes)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    char sql[700];
    must(sj_database_open(path, SJ_DATABASE_WRITE, &database, &error), "open", &error);
    snprintf(
        sql, sizeof(sql),
        "INSERT INTO blocks (stream_id, kind, first_event, event_count, first_call, call_count,"
        " first_ticks, last_ticks, open_depth, max_depth, max_duration_ticks, lost_calls,"
        " lost_events, functions, data) SELECT stream_id, kind, first_event + n * 1000000000,"
        " event_count, first_call + n * 100000000, call_count, first_ticks, last_ticks,"
        " open_depth, max_depth, max_duration_ticks, lost_calls, lost_events, functions, data"
        " FROM blocks, (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n"
        " < %ld * 1000000 / (SELECT sum(length(data)) FROM blocks)) SELECT n FROM c)",
        megabytes);
    run_sql(database, sql);
    run_sql(database, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(database);
}

static void *remove_large(void *unused)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    (void)unused;
    must(sj_database_open(path, SJ_DATABASE_WRITE, &database, &error), "open", &error);
    must(sj_session_remove(database, 1, "bench", true, &error), "remove", &error);
    sqlite3_close(database);
    atomic_store(&removed, true);
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Commits blocks until the time `until_ms`. If that is 0, commits blocks until the session is
 * removed. */
static void measure(sj_store *store, frame_maker *maker, const char *what, double until_ms)
{
    static double spent[MOST_COMMITS];
    const struct timespec pause = {.tv_nsec = PERIOD_NS};
    const double start = now_ms();
    sj_error error = {0};
    size_t count = 0;
    while (count < MOST_COMMITS && (until_ms > 0 ? now_ms() < until_ms : !atomic_load(&removed))) {
        const sj_slice block = frame_maker_block(maker, 4096, 0);
        const double before = now_ms();
        must(sj_store_begin(store, &error), "begin", &error);
        put(store, block);
        must(sj_store_commit(store, &error), "commit", &error);
        spent[count++] = now_ms() - before;
        nanosleep(&pause, NULL);
    }
    qsort(spent, count, sizeof(*spent), compare);
    printf("%-10s %5.1f s, %6zu commits: p50 %.2f ms, p99 %.2f ms, longest %.1f ms\n", what,
           (now_ms() - start) / 1e3, count, spent[count / 2], spent[count * 99 / 100],
           spent[count - 1]);
}

int main(int argc, char **argv)
{
    const long megabytes = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;
    const sj_store_options options = {.path = path, .create = true, .aggregates_delay_ms = 1000};
    sj_error error = {0};
    sj_store *store = NULL;
    frame_maker large;
    frame_maker small;
    pthread_t remover;
    remove("removal_bench.db");
    remove("removal_bench.db-wal");
    must(sj_store_open(&options, &store, &error), "open", &error);
    frame_maker_init(&large, 1);
    announce(store, &large, true);
    sj_store_close(store);
    enlarge(megabytes);
    must(sj_store_open(&options, &store, &error), "open", &error);
    frame_maker_init(&small, 2);
    announce(store, &small, false);
    printf("file %.0f MB\n", megabytes_of(""));
    measure(store, &small, "alone", now_ms() + seconds * 1e3);
    pthread_create(&remover, NULL, remove_large, NULL);
    measure(store, &small, "removing", 0);
    pthread_join(remover, NULL);
    sj_store_maintain(store);
    printf("file %.0f MB, log %.0f MB\n", megabytes_of(""), megabytes_of("-wal"));
    sj_store_close(store);
    frame_maker_deinit(&large);
    frame_maker_deinit(&small);
    return 0;
}
