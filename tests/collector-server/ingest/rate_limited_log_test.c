/* Tests how many lines complaints add to the log, by address and by time. */
#include "collector-server/ingest/rate_limited_log.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

enum { FLOOD = 100000, DAY_S = 86400, START_S = 1000000 };

static unsigned lines;
static char last[512];

static void note(void *context, const char *line)
{
    (void)context;
    lines++;
    snprintf(last, sizeof(last), "%s", line);
}

static sj_edge_peer peer_v4(unsigned number, uint16_t port)
{
    return (sj_edge_peer){.family = AF_INET,
                          .port = port,
                          .address = {10, 1, (uint8_t)(number >> 8), (uint8_t)number}};
}

/* A stranger sends all day, from one address and many ports. */
static void a_flood_takes_few_lines_and_is_counted(void **state)
{
    sj_rate_limited_log log;
    unsigned long counted = 0;
    (void)state;
    lines = 0;
    sj_rate_limited_log_init(&log, note, NULL);
    for (unsigned i = 0; i < FLOOD; i++) {
        const sj_edge_peer peer = peer_v4(1, (uint16_t)i);
        const unsigned before = lines;
        sj_complain_at(&log, &peer, "nonsense", START_S + (uint64_t)i * DAY_S / FLOOD);
        const char *more = lines != before ? strstr(last, "(and ") : NULL;
        counted += (lines != before) + (more != NULL ? strtoul(more + 5, NULL, 10) : 0);
    }
    assert_in_range(lines, SJ_COMPLAINTS_AT_ONCE,
                    SJ_COMPLAINTS_AT_ONCE + DAY_S / SJ_COMPLAINT_EVERY_S);
    assert_in_range(counted, FLOOD - 100, FLOOD); /* the next line has the rest */
    const unsigned before = lines;
    const sj_edge_peer peer = peer_v4(1, 1);
    sj_complain_at(&log, &peer, "nonsense", START_S + DAY_S + SJ_COMPLAINT_EVERY_S);
    assert_int_equal(lines, before + 1);
    counted += 1 + strtoul(strstr(last, "(and ") + 5, NULL, 10);
    assert_int_equal(counted, FLOOD + 1);
    sj_rate_limited_log_deinit(&log);
}

static void other_peers_are_logged_during_a_flood(void **state)
{
    enum { OTHERS = 64 };
    sj_rate_limited_log log;
    unsigned heard = 0;
    (void)state;
    sj_rate_limited_log_init(&log, note, NULL);
    for (unsigned i = 0; i < FLOOD; i++) {
        const sj_edge_peer flood = peer_v4(1, 1);
        sj_complain_at(&log, &flood, "nonsense", START_S);
    }
    for (unsigned i = 2; i < 2 + OTHERS; i++) {
        const sj_edge_peer other = peer_v4(i, 1);
        lines = 0;
        sj_complain_at(&log, &other, "a wrong token", START_S);
        heard += lines;
    }
    assert_in_range(heard, OTHERS * 3 / 4, OTHERS);
    sj_rate_limited_log_deinit(&log);
}

/* The owner of one network has 2^64 addresses in it. */
static void addresses_of_one_network_share_one_limit(void **state)
{
    sj_rate_limited_log log;
    (void)state;
    sj_rate_limited_log_init(&log, note, NULL);
    lines = 0;
    for (unsigned i = 0; i < FLOOD; i++) {
        const sj_edge_peer one = {.family = AF_INET6,
                                  .address = {0x20, 1, [8] = (uint8_t)(i >> 8), (uint8_t)i}};
        sj_complain_at(&log, &one, "nonsense", START_S);
    }
    assert_int_equal(lines, SJ_COMPLAINTS_AT_ONCE);
    lines = 0;
    for (unsigned i = 0; i < FLOOD; i++) {
        const sj_edge_peer any = peer_v4(i, 1);
        sj_complain_at(&log, &any, "nonsense", START_S);
    }
    assert_in_range(lines, SJ_COMPLAINTS_AT_ONCE, SJ_COMPLAINT_BUCKETS * SJ_COMPLAINTS_AT_ONCE);
    sj_rate_limited_log_deinit(&log);
}

/* If a socket accepts IPv6 and IPv4, IPv4 addresses appear as ::ffff:10.1.x.y. */
static void peers_of_ipv4_are_logged_on_dual_stack_sockets(void **state)
{
    enum { PEERS = 40 };
    sj_rate_limited_log log;
    unsigned heard = 0;
    (void)state;
    sj_rate_limited_log_init(&log, note, NULL);
    for (unsigned i = 0; i < PEERS; i++) {
        const sj_edge_peer other = {.family = AF_INET6,
                                    .address = {[10] = 0xff, 0xff, 10, 1, 0, (uint8_t)i}};
        lines = 0;
        sj_complain_at(&log, &other, "a wrong token", START_S);
        heard += lines;
    }
    assert_in_range(heard, PEERS * 3 / 4, PEERS); /* some share a bucket */
    sj_rate_limited_log_deinit(&log);
}

static void peers_do_not_silence_the_collector(void **state)
{
    sj_rate_limited_log log;
    (void)state;
    sj_rate_limited_log_init(&log, note, NULL);
    for (unsigned i = 0; i < FLOOD; i++) {
        const sj_edge_peer any = peer_v4(i, 1);
        sj_complain(&log, &any, "nonsense");
    }
    lines = 0;
    for (unsigned i = 0; i < FLOOD; i++) {
        sj_report_line(&log, "no frame is stored: the disk is full");
    }
    assert_in_range(lines, SJ_COMPLAINTS_AT_ONCE, SJ_COMPLAINTS_AT_ONCE + 3);
    assert_string_equal(last, "no frame is stored: the disk is full");
    sj_rate_limited_log_deinit(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_takes_few_lines_and_is_counted),
        cmocka_unit_test(other_peers_are_logged_during_a_flood),
        cmocka_unit_test(peers_of_ipv4_are_logged_on_dual_stack_sockets),
        cmocka_unit_test(peers_do_not_silence_the_collector),
        cmocka_unit_test(addresses_of_one_network_share_one_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
