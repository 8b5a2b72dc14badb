/* kill -9 of sender and collector, in any order, at any time. What was appended to the spool is
 * stored at the end, once. 20 rounds; SJ_LONG=1: 1,000.
 *
 * The parent never uses NNG, so that its children may fork and use it. Blocks are made from a fixed
 * seed, so that a restarted sender makes the same blocks. `appended` counts those whose append
 * returned. */
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/uplink.h"
#include "collector-server/ingest/ingest.h"
#include "collector-server/store/store.h"
#include "tests/collector-server/store/frame_maker.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    EVENTS = 400,
    QUICK_ROUNDS = 20,
    LONG_ROUNDS = 1000,
    DRAIN_MS = 240000,
    SUMS_DELAY_MS = 100,
    LEAST_BLOCKS = 50
};

typedef struct shared_state {
    volatile uint64_t begun;    /* blocks that a sender began to append */
    volatile uint64_t appended; /* blocks that are in the spool */
    volatile bool finish;
    volatile size_t collectors; /* started so far */
} shared_state;

static char database[64], spool_path[64], url[64];
static shared_state *shared;

static void run_collector(void)
{
    sj_error error = {0};
    sj_store *store = NULL;
    sj_ingest *ingest = NULL;
    const char *urls[] = {url};
    /* Every other collector has no memory for call graphs, so that sums come from the stored
     * blocks. */
    const sj_store_options options = {.path = database,
                                      .create = true,
                                      .callgraph_memory_bytes = shared->collectors++ % 2,
                                      .aggregates_delay_ms = SUMS_DELAY_MS};
    const sj_ingest_options ingest_options = {.urls = urls, .url_count = 1, .watchdog_ms = 100};
    if (sj_store_open(&options, &store, &error) != SJ_OK ||
        sj_ingest_start(store, &ingest_options, &ingest, &error) != SJ_OK) {
        fprintf(stderr, "collector: %s\n", error.text);
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

static void must(sj_status status, const sj_error *error)
{
    if (status != SJ_OK) {
        fprintf(stderr, "sender: %s\n", error->text);
        _exit(1);
    }
}

static void run_sender(void)
{
    sj_error error = {0};
    sj_spool *spool = NULL;
    sj_uplink *uplink = NULL;
    frame_maker maker;
    frame_maker_init(&maker, 5);
    const sj_spool_options options = {
        .directory = spool_path, .reserve_bytes = 1, .segment_bytes = 16 * 1024};
    must(sj_spool_open(&options, &spool, &error), &error);
    const sj_slice hello = frame_maker_hello(&maker);
    const sj_uplink_options uplink_options = {
        .channel = &sj_channel_nng, .url = url, .hello = hello, .resend_ms = 300};
    must(sj_uplink_start(spool, &uplink_options, &uplink, &error), &error);
    must(sj_spool_append(spool, frame_maker_session(&maker), &error), &error);
    must(sj_spool_append(spool, frame_maker_module(&maker), &error), &error);
    /* A sender killed while it appended a block leaves the block to the next one. */
    for (uint64_t made = 0; made < shared->begun || !shared->finish; ++made) {
        const sj_slice block = frame_maker_block(&maker, EVENTS, 0);
        if (made < shared->appended) {
            continue;
        }
        shared->begun = made + 1;
        must(sj_spool_append(spool, block, &error), &error);
        shared->appended = made + 1;
        sj_uplink_wake(uplink);
        usleep(300);
    }
    must(sj_uplink_drain(uplink, DRAIN_MS), &error);
    _exit(0);
}

static pid_t start(void (*body)(void))
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body();
    }
    return child;
}

static void kill_and_reap(pid_t child)
{
    int status = 0;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status)); /* the process had not ended by itself */
}

static int64_t ask(sqlite3 *file, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(file, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void check_store(void)
{
    sqlite3 *file = NULL;
    const int64_t appended = (int64_t)shared->appended;
    const sj_store_options options = {.path = database};
    sj_store *store = NULL;
    sj_error error = {0};
    assert_int_equal(sj_store_open(&options, &store, &error), SJ_OK); /* recomputes the sums */
    sj_store_close(store);
    assert_int_equal(sqlite3_open(database, &file), SQLITE_OK);
    assert_int_equal(ask(file, "SELECT count(*) FROM blocks"), appended);
    assert_int_equal(ask(file, "SELECT count(DISTINCT first_event) FROM blocks"), appended);
    assert_int_equal(ask(file, "SELECT min(first_event) FROM blocks"), 0);
    assert_int_equal(ask(file, "SELECT max(first_event) FROM blocks"), (appended - 1) * EVENTS);
    assert_int_equal(ask(file, "SELECT sum(calls) FROM call_paths"),
                     ask(file, "SELECT sum(event_count - call_count) FROM blocks"));
    assert_int_equal(ask(file, "SELECT sum(calls) FROM function_stats"),
                     ask(file, "SELECT sum(calls) FROM call_paths"));
    assert_int_equal(ask(file, "SELECT stored_blocks FROM sessions"), appended);
    assert_int_equal(ask(file, "SELECT sum(calls) FROM timeline WHERE level = 14"),
                     ask(file, "SELECT sum(call_count) FROM blocks"));
    assert_int_equal(ask(file, "SELECT sum(calls) FROM timeline WHERE level = 22"),
                     ask(file, "SELECT sum(call_count) FROM blocks"));
    assert_int_equal(ask(file, "SELECT count(*) FROM pragma_integrity_check"
                               " WHERE integrity_check <> 'ok'"),
                     0);
    sqlite3_close(file);
}

static void nothing_is_lost_and_nothing_is_stored_twice(void **state)
{
    (void)state;
    const int rounds = getenv("SJ_LONG") != NULL ? LONG_ROUNDS : QUICK_ROUNDS;
    pid_t collector = start(run_collector);
    pid_t sender = start(run_sender);
    srand(1);
    for (int round = 0; round < rounds; ++round) {
        usleep(30000 + (useconds_t)(rand() % 120) * 1000);
        const int victims = 1 + rand() % 3;
        if (victims & 1) {
            kill_and_reap(collector);
            collector = start(run_collector);
        }
        if (victims & 2) {
            kill_and_reap(sender);
            sender = start(run_sender);
        }
    }
    while (shared->appended <= LEAST_BLOCKS) {
        usleep(1000);
    }
    shared->finish = true;
    int status = 0;
    assert_int_equal(waitpid(sender, &status, 0), sender);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kill_and_reap(collector);
    print_message("%d rounds, %llu blocks\n", rounds, (unsigned long long)shared->appended);
    check_store();
}

int main(void)
{
    char command[256];
    snprintf(database, sizeof(database), "kill_test.%d.db", (int)getpid());
    snprintf(spool_path, sizeof(spool_path), "kill_test.%d.spool", (int)getpid());
    snprintf(url, sizeof(url), "ipc://./kill_test.%d.ipc", (int)getpid());
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_and_nothing_is_stored_twice)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf kill_test.%d.*", (int)getpid());
    return system(command) != 0 ? 1 : failed;
}
