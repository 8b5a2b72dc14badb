/* Uplink and ingest together: everything arrives once. Broken and hostile peers harm only
 * themselves. */
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/sp_channel.h"
#include "agent/uplink/uplink.h"
#include "collector-server/ingest/ingest.h"
#include "collector-server/ingest/probe.h"
#include "collector-server/store/store.h"
#include "tests/collector-server/store/frame_maker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 120000 };

typedef struct fixture {
    char database[64];
    char spool_path[64];
    char url[2][96];
    sj_store *store;
    sj_ingest *ingest;
    sj_spool *spool;
    sj_uplink *uplink;
    frame_maker maker;
    sj_error error;
    size_t queue_bytes;
    char complaint[512]; /* the last line for the log */
    unsigned complaints;
} fixture;

static void note_complaint(void *context, const char *line)
{
    fixture *test = context;
    snprintf(test->complaint, sizeof(test->complaint), "%s", line);
    test->complaints++;
}

static void clean(const fixture *test)
{
    char command[512];
    snprintf(command, sizeof(command), "rm -rf %s %s-wal %s-shm %s", test->database, test->database,
             test->database, test->spool_path);
    assert_int_equal(system(command), 0);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    close(file);
    return ntohs(address.sin_port);
}

static void start_collector(fixture *test, uint64_t max_bytes)
{
    const char *urls[] = {test->url[0], test->url[1]};
    const sj_store_options store = {.path = test->database, .create = true, .max_bytes = max_bytes};
    const sj_ingest_options ingest = {.urls = urls,
                                      .url_count = 2,
                                      .watchdog_ms = 200,
                                      .recheck_ms = 1,
                                      .queue_bytes = test->queue_bytes,
                                      .complain = note_complaint,
                                      .complain_context = test};
    assert_int_equal(sj_store_open(&store, &test->store, &test->error), SJ_OK);
    assert_int_equal(sj_ingest_start(test->store, &ingest, &test->ingest, &test->error), SJ_OK);
}

static void stop_collector(fixture *test)
{
    sj_ingest_stop(test->ingest);
    sj_store_close(test->store);
    test->ingest = NULL;
}

static void start_uplink_over(fixture *test, const sj_channel_kind *channel, unsigned url)
{
    const sj_slice hello = frame_maker_hello(&test->maker);
    const sj_uplink_options options = {
        .channel = channel, .url = test->url[url], .hello = hello, .resend_ms = 2000};
    assert_int_equal(sj_uplink_start(test->spool, &options, &test->uplink, &test->error), SJ_OK);
}

static void start_uplink(fixture *test, unsigned url)
{
    start_uplink_over(test, &sj_channel_nng, url);
}

static void append(fixture *test, sj_slice frame)
{
    assert_int_equal(sj_spool_append(test->spool, frame, &test->error), SJ_OK);
}

static void append_session(fixture *test, int blocks)
{
    append(test, frame_maker_session(&test->maker));
    append(test, frame_maker_module(&test->maker));
    append(test, frame_maker_thread(&test->maker));
    for (int i = 0; i < blocks; ++i) {
        append(test, frame_maker_block(&test->maker, 1000, 0));
    }
}

static void drain(fixture *test)
{
    const sj_status status = sj_uplink_drain(test->uplink, PATIENCE_MS);
    if (status != SJ_OK) {
        sj_uplink_status now;
        sj_uplink_get_status(test->uplink, &now);
        print_error("state %d: %s\n", now.state, now.message);
    }
    assert_int_equal(status, SJ_OK);
}

static int64_t count_blocks(const fixture *test)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(test->database, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(database, "SELECT count(*) FROM blocks", -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return count;
}

static int set_up(void **state)
{
    static int runs;
    fixture *test = calloc(1, sizeof(*test));
    snprintf(test->database, sizeof(test->database), "ingest_test.%d.db", (int)getpid());
    snprintf(test->spool_path, sizeof(test->spool_path), "ingest_test.%d.spool", (int)getpid());
    snprintf(test->url[0], sizeof(test->url[0]), "ipc://./ingest_test.%d.%d.ipc", (int)getpid(),
             ++runs);
    snprintf(test->url[1], sizeof(test->url[1]), "tcp://127.0.0.1:%d", free_port());
    clean(test);
    frame_maker_init(&test->maker, 3);
    const sj_spool_options spool = {.directory = test->spool_path, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool, &test->spool, &test->error), SJ_OK);
    start_collector(test, 0);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    fixture *test = *state;
    sj_uplink_stop(test->uplink);
    stop_collector(test);
    sj_spool_close(test->spool);
    frame_maker_deinit(&test->maker);
    clean(test);
    free(test);
    return 0;
}

static void a_session_arrives_whole(void **state)
{
    fixture *test = *state;
    append_session(test, 40);
    start_uplink(test, 0);
    drain(test);
    assert_int_equal(count_blocks(test), 40);
    sj_ingest_counters counters;
    sj_ingest_get_counters(test->ingest, &counters);
    assert_int_equal(counters.rejected, 0);
    assert_true(counters.commits > 0 && counters.commits <= counters.frames);
    sj_spool_counters spool;
    sj_spool_get_counters(test->spool, &spool);
    assert_int_equal(spool.pending_bytes, 0);
    assert_int_equal(spool.acknowledged_frames, 43);
}

/* Tests libnng's REQ and Sojourn's own client without threads, over both kinds of address. */
static void every_client_of_ours_speaks_to_the_edge(void **state)
{
    fixture *test = *state;
    const sj_channel_kind *const kinds[] = {&sj_channel_nng, &sj_channel_sp};
    append_session(test, 1);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 10; k++) { /* small frames, and some that are read without a copy */
            append(test, frame_maker_block(&test->maker, k % 2 == 0 ? 10 : 60000, 0));
        }
        start_uplink_over(test, kinds[i / 2], (unsigned)i % 2);
        drain(test);
        sj_uplink_stop(test->uplink);
        test->uplink = NULL;
        assert_int_equal(count_blocks(test), 1 + 10 * (i + 1));
    }
}

static void what_the_collector_refuses_is_put_aside_and_the_rest_arrives(void **state)
{
    fixture *test = *state;
    uint8_t noise[64] = {1, 2, 3};
    append_session(test, 3);
    append(test, frame_maker_wrap(&test->maker, SJ_FRAME_BLOCK, (sj_slice){0},
                                  (sj_slice){.data = noise, .size = sizeof(noise)}));
    append(test, frame_maker_block(&test->maker, 1000, 0));
    start_uplink(test, 1);
    drain(test);
    assert_int_equal(count_blocks(test), 4);
    sj_spool_counters spool;
    sj_spool_get_counters(test->spool, &spool);
    assert_int_equal(spool.rejected_frames, 1);
    sj_uplink_status status;
    sj_uplink_get_status(test->uplink, &status);
    assert_int_equal(status.rejected_frames, 1);
}

static void a_full_store_makes_senders_wait_for_disk_space(void **state)
{
    fixture *test = *state;
    stop_collector(test);
    start_collector(test, 1);
    append_session(test, 5);
    start_uplink(test, 0);
    sj_uplink_status status;
    do { /* until the collector has asked it to wait */
        assert_int_equal(sj_uplink_drain(test->uplink, 1500), SJ_ETIMEDOUT);
        sj_uplink_get_status(test->uplink, &status);
    } while (status.state != SJ_UPLINK_WAITING);
    assert_int_equal(count_blocks(test), 0);
    sj_error problem;
    assert_int_equal(sj_ingest_check(test->ingest, &problem), SJ_EAGAIN);
    assert_non_null(strstr(problem.text, "full"));
    stop_collector(test);
    start_collector(test, 0);
    drain(test);
    assert_int_equal(count_blocks(test), 5);
    assert_int_equal(sj_ingest_check(test->ingest, &problem), SJ_OK);
}

/* The cause of the problem is gone. The collector notices that although no device sends any more.
 */
static void a_solved_problem_is_noticed_without_a_frame(void **state)
{
    fixture *test = *state;
    char away[80];
    sj_error problem;
    append_session(test, 1);
    start_uplink(test, 0);
    drain(test);
    snprintf(away, sizeof(away), "%s.away", test->database);
    assert_int_equal(rename(test->database, away), 0);
    append(test, frame_maker_block(&test->maker, 1000, 0));
    sj_uplink_wake(test->uplink);
    for (int i = 0; i < PATIENCE_MS && sj_ingest_check(test->ingest, &problem) == SJ_OK; i++) {
        usleep(1000);
    }
    assert_int_equal(sj_ingest_check(test->ingest, &problem), SJ_EAGAIN);
    sj_uplink_stop(test->uplink);
    test->uplink = NULL;
    assert_int_equal(rename(away, test->database), 0);
    for (int i = 0; i < PATIENCE_MS && sj_ingest_check(test->ingest, &problem) != SJ_OK; i++) {
        usleep(1000);
    }
    assert_int_equal(sj_ingest_check(test->ingest, &problem), SJ_OK);
    assert_int_equal(count_blocks(test), 1);
}

static void a_collector_that_restarts_gets_the_rest(void **state)
{
    fixture *test = *state;
    append_session(test, 10);
    start_uplink(test, 1);
    drain(test);
    stop_collector(test);
    for (int i = 0; i < 10; ++i) {
        append(test, frame_maker_block(&test->maker, 1000, 0));
    }
    sj_uplink_wake(test->uplink);
    sj_uplink_status status = {.state = SJ_UPLINK_SENDING};
    for (int i = 0; i < PATIENCE_MS && status.state != SJ_UPLINK_CONNECTING; i++) {
        usleep(1000);
        sj_uplink_get_status(test->uplink, &status);
    }
    start_collector(test, 0);
    drain(test);
    assert_int_equal(count_blocks(test), 20);
}

static int connect_raw(const fixture *test, unsigned url)
{
    if (url == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const int file = socket(AF_UNIX, SOCK_STREAM, 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", test->url[0] + 6);
        assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof(address)), 0);
        return file;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(strrchr(test->url[1], ':') + 1));
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof(address)), 0);
    return file;
}

/* Closes the connection in the middle of the greeting, over TCP with a reset. */
static void break_off(const fixture *test, unsigned url)
{
    const int file = connect_raw(test, url);
    if (url == 1) {
        const struct linger reset = {.l_onoff = 1, .l_linger = 0};
        shutdown(file, SHUT_WR);
        setsockopt(file, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    close(file);
}

static void check_listener_stands(fixture *test, unsigned url)
{
    append_session(test, 2);
    start_uplink(test, url);
    drain(test);
    for (int i = 0; i < 50; ++i) {
        break_off(test, url);
    }
    /* the earlier connection still works, and a new one is served */
    append(test, frame_maker_block(&test->maker, 1000, 0));
    drain(test);
    sj_uplink_stop(test->uplink);
    append(test, frame_maker_block(&test->maker, 1000, 0));
    start_uplink(test, url);
    drain(test);
    assert_int_equal(count_blocks(test), 4);
    sj_probe *probe = sj_probe_new(test->url[url], NULL);
    assert_true(sj_probe_is_answered(probe, 10000));
    sj_probe_free(probe);
}

static void peers_that_break_off_do_not_stop_an_ipc_listener(void **state)
{
    check_listener_stands(*state, 0);
}

static void peers_that_break_off_do_not_stop_a_tcp_listener(void **state)
{
    check_listener_stands(*state, 1);
}

static void send_raw(int file, const void *bytes, size_t size)
{
    ssize_t sent = send(file, bytes, size, MSG_NOSIGNAL);
    (void)sent; /* the collector may close the connection at any byte */
}

static void hostile_peers_hurt_only_themselves(void **state)
{
    static const uint8_t sp_request[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const uint8_t huge[8] = {0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff};
    fixture *test = *state;
    uint8_t noise[4096];
    int files[30];
    append_session(test, 2);
    start_uplink(test, 1);
    drain(test);
    for (int i = 0; i < 30; ++i) {
        files[i] = connect_raw(test, 1);
        for (size_t k = 0; k < sizeof(noise); ++k) {
            noise[k] = (uint8_t)(rand() >> 7);
        }
        if (i % 3 == 0) {
            send_raw(files[i], noise, sizeof(noise));
            continue;
        }
        send_raw(files[i], sp_request, sizeof(sp_request));
        if (i % 3 == 1) {
            send_raw(files[i], huge, sizeof(huge));
        } else { /* a well-formed message whose body is noise */
            const uint8_t length[8] = {0, 0, 0, 0, 0, 0, 0x10, 0x04};
            const uint8_t request[4] = {0x80, 0, 0, 1};
            send_raw(files[i], length, sizeof(length));
            send_raw(files[i], request, sizeof(request));
            send_raw(files[i], noise, sizeof(noise));
        }
    }
    for (int i = 0; i < 5; ++i) {
        append(test, frame_maker_block(&test->maker, 1000, 0));
    }
    drain(test);
    assert_int_equal(count_blocks(test), 7);
    sj_ingest_counters counters = {0};
    for (int i = 0; i < PATIENCE_MS / 10 && counters.rejected < 10; ++i) {
        usleep(10000);
        sj_ingest_get_counters(test->ingest, &counters);
    }
    assert_int_equal(counters.rejected, 10);
    assert_int_equal(test->complaints, 10);
    assert_non_null(strstr(test->complaint, "127.0.0.1:"));
    assert_non_null(strstr(test->complaint, "not one whole frame"));
    for (int i = 0; i < 30; ++i) {
        close(files[i]);
    }
}

/* The frames are complete but contradict what is stored. The log names the sender and the
 * contradiction. */
static void false_frames_are_named_in_the_log(void **state)
{
    fixture *test = *state;
    frame_maker stranger;
    frame_maker_init(&stranger, 77); /* no SESSION frame announced this session */
    append_session(test, 1);
    append(test, frame_maker_block(&stranger, 500, 0));
    append(test, frame_maker_block(&test->maker, 1000, 0));
    start_uplink(test, 1);
    drain(test);
    assert_int_equal(count_blocks(test), 2);
    assert_true(test->complaints >= 1);
    assert_non_null(strstr(test->complaint, "127.0.0.1:"));
    assert_non_null(strstr(test->complaint, "not announced"));
    frame_maker_deinit(&stranger);
}

/* Thousands of connections say nothing, send half a greeting, or close during it. */
static void silent_connections_keep_no_device_out(void **state)
{
    enum { CROWD = 300, LONG_CROWD = 4000 };
    static const uint8_t half[4] = {0, 'S', 'P', 0};
    fixture *test = *state;
    const rlim_t wanted = getenv("SJ_LONG") != NULL ? LONG_CROWD : CROWD;
    int *files = calloc(wanted, sizeof(*files));
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* both ends of each are in this process */
    const int crowd =
        limit.rlim_cur > 2 * wanted + 200 ? (int)wanted : (int)(limit.rlim_cur - 200) / 2;
    assert_true(crowd > 100);
    append_session(test, 2);
    start_uplink(test, 1);
    drain(test);
    for (int i = 0; i < crowd; ++i) {
        files[i] = connect_raw(test, 1);
        if (i % 3 == 1) {
            send_raw(files[i], half, sizeof(half));
        } else if (i % 3 == 2) {
            shutdown(files[i], SHUT_WR);
        }
    }
    append(test, frame_maker_block(&test->maker, 1000, 0));
    drain(test); /* over the earlier connection */
    sj_uplink_stop(test->uplink);
    append(test, frame_maker_block(&test->maker, 1000, 0));
    start_uplink(test, 1);
    drain(test); /* over a new connection, while the crowd is still there */
    assert_int_equal(count_blocks(test), 4);
    for (int i = 0; i < crowd; ++i) {
        close(files[i]);
    }
    free(files);
}

/* While the database is locked the senders wait. The queue keeps its limit, and everything arrives
 * in the end. */
static void a_locked_store_makes_the_senders_wait(void **state)
{
    enum { QUEUE_BYTES = 64 << 10, BLOCKS = 60, MESSAGE_BYTES = 64 << 10 };
    fixture *test = *state;
    sqlite3 *blocker = NULL;
    stop_collector(test);
    test->queue_bytes = QUEUE_BYTES;
    start_collector(test, 0);
    append_session(test, 1);
    start_uplink(test, 1);
    drain(test);
    assert_int_equal(sqlite3_open(test->database, &blocker), SQLITE_OK);
    assert_int_equal(sqlite3_exec(blocker, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < BLOCKS; ++i) {
        append(test, frame_maker_block(&test->maker, 20000, 0));
    }
    sj_uplink_wake(test->uplink);
    sj_ingest_counters counters = {0};
    for (int i = 0; i < PATIENCE_MS / 10 && counters.queue_peak_bytes < QUEUE_BYTES; ++i) {
        usleep(10000);
        sj_ingest_get_counters(test->ingest, &counters);
    }
    usleep(300000); /* long enough for an overflow, if there was no limit */
    assert_int_equal(sqlite3_exec(blocker, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(blocker);
    drain(test);
    sj_ingest_get_counters(test->ingest, &counters);
    assert_in_range(counters.queue_peak_bytes, QUEUE_BYTES, QUEUE_BYTES + MESSAGE_BYTES);
    assert_int_equal(count_blocks(test), BLOCKS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_arrives_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_client_of_ours_speaks_to_the_edge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_the_collector_refuses_is_put_aside_and_the_rest_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_store_makes_senders_wait_for_disk_space, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_solved_problem_is_noticed_without_a_frame, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_collector_that_restarts_gets_the_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peers_that_break_off_do_not_stop_an_ipc_listener, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(peers_that_break_off_do_not_stop_a_tcp_listener, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hostile_peers_hurt_only_themselves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(false_frames_are_named_in_the_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silent_connections_keep_no_device_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_locked_store_makes_the_senders_wait, set_up, tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nng_fini(); /* frees NNG's memory, so that a leak checker reports only real leaks */
    return failed;
}
