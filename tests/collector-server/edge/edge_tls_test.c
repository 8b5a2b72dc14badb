/* The edge over TLS and TCP, IPv4 and IPv6. Peers misuse it by half handshakes, cleartext,
 * renegotiation, key updates, records of one byte and old versions. Others are served meanwhile. */
#include "collector-server/edge/edge.h"
#include "collector-server/fleet/certificate.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000, TRIES = 60 };

static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
static const uint8_t question[] = {0, 0, 0, 0, 0, 0, 0, 8, 0x80, 0, 0, 1, 'w', 'h', 'a', 't'};

static char certificate[SJ_PEM_MAX_BYTES], key[SJ_PEM_MAX_BYTES], directory[64];

typedef struct fixture {
    sj_edge *edge;
    sj_edge_limits limits;
    int family;
    uint16_t port;
} fixture;

static fixture *test;

static sj_edge_verdict handle(void *context, sj_edge_message *message)
{
    fixture *own = context;
    sj_edge_reply(own->edge, message, message->body, false);
    free(message->memory);
    return SJ_EDGE_ACCEPTED;
}

/* Listens at a free port. Returns false if this machine has no such addresses. */
static bool start(const char *scheme, int family)
{
    const char *host = family == AF_INET6 ? "[::1]" : "127.0.0.1";
    sj_error error = {0};
    test->family = family;
    for (int i = 0; i < TRIES; i++) {
        char url[64];
        test->port = (uint16_t)(20000 + (getpid() * 7 + i * 131) % 40000);
        snprintf(url, sizeof(url), "%s://%s:%u", scheme, host, test->port);
        const char *const urls[] = {url};
        const sj_edge_options options = {.urls = urls,
                                         .url_count = 1,
                                         .certificate = certificate,
                                         .key = key,
                                         .limits = &test->limits,
                                         .handle = handle,
                                         .context = test};
        const sj_status status = sj_edge_start(&options, &test->edge, &error);
        if (status == SJ_OK) {
            return true;
        }
        if (status != SJ_EEXIST && family == AF_INET6) {
            return false;
        }
        assert_int_equal(status, SJ_EEXIST);
    }
    fail_msg("no free port: %s", error.text);
    return false;
}

static int set_up(void **state)
{
    test = calloc(1, sizeof(*test));
    test->limits = sj_edge_default_limits;
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    sj_edge_stop(test->edge);
    free(*state);
    return 0;
}

static int connect_peer(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(test->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(test->port)};
    const bool is_six = test->family == AF_INET6;
    six.sin6_addr = in6addr_loopback;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int peer = socket(test->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer >= 0);
    assert_int_equal(connect(peer, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                             is_six ? sizeof(six) : sizeof(four)),
                     0);
    return peer;
}

static bool is_hung_up(int peer)
{
    uint8_t bytes[4096];
    for (;;) {
        struct pollfd waits = {.fd = peer, .events = POLLIN};
        assert_int_equal(poll(&waits, 1, PATIENCE_MS), 1);
        if (recv(peer, bytes, sizeof(bytes), 0) <= 0) {
            return true;
        }
    }
}

static sj_edge_counters wait_until_all_closed(void)
{
    sj_edge_counters counters = {0};
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        sj_edge_get_counters(test->edge, &counters);
        if (counters.accepted > 0 && counters.open == 0 && counters.reading_bytes == 0) {
            return counters;
        }
        usleep(10000);
    }
    fail_msg("%u connections are left, %zu bytes", counters.open, counters.reading_bytes);
    return counters;
}

/* ---- TLS ---- */

typedef struct tls_peer {
    int socket;
    gnutls_session_t session;
    gnutls_certificate_credentials_t trust;
} tls_peer;

static void tls_open(tls_peer *peer, const char *versions)
{
    peer->socket = connect_peer();
    assert_int_equal(gnutls_certificate_allocate_credentials(&peer->trust), 0);
    assert_int_equal(gnutls_init(&peer->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
    assert_int_equal(gnutls_priority_set_direct(peer->session, versions, NULL), 0);
    gnutls_credentials_set(peer->session, GNUTLS_CRD_CERTIFICATE, peer->trust);
    gnutls_transport_set_int(peer->session, peer->socket);
    gnutls_handshake_set_timeout(peer->session, PATIENCE_MS);
    gnutls_record_set_timeout(peer->session, PATIENCE_MS);
}

/* Returns GnuTLS' status of the handshake. */
static int tls_shake(const tls_peer *peer)
{
    int result;
    do {
        result = gnutls_handshake(peer->session);
    } while (result == GNUTLS_E_AGAIN || result == GNUTLS_E_INTERRUPTED);
    return result;
}

static void tls_close(tls_peer *peer)
{
    gnutls_deinit(peer->session);
    gnutls_certificate_free_credentials(peer->trust);
    close(peer->socket);
}

static bool tls_read(const tls_peer *peer, uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = gnutls_record_recv(peer->session, bytes + at, size - at);
        if (got <= 0 && got != GNUTLS_E_INTERRUPTED && got != GNUTLS_E_AGAIN) {
            return false;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool tls_say(const tls_peer *peer, const void *bytes, size_t size)
{
    return gnutls_record_send(peer->session, bytes, size) == (ssize_t)size;
}

static bool tls_ask(const tls_peer *peer)
{
    uint8_t reply[sizeof(question)];
    return tls_say(peer, question, sizeof(question)) && tls_read(peer, reply, sizeof(reply)) &&
           memcmp(reply, question, sizeof(question)) == 0;
}

static bool tls_greet(const tls_peer *peer)
{
    uint8_t reply[sizeof(greeting)];
    return tls_say(peer, greeting, sizeof(greeting)) && tls_read(peer, reply, sizeof(reply));
}

static void check_a_peer_is_served(const char *versions)
{
    tls_peer good;
    tls_open(&good, versions);
    assert_int_equal(tls_shake(&good), 0);
    assert_true(tls_greet(&good) && tls_ask(&good));
    tls_close(&good);
}

static void only_tls_1_2_and_1_3_are_accepted(void **state)
{
    (void)state;
    tls_peer old;
    assert_true(start("tls+tcp", AF_INET));
    check_a_peer_is_served("NORMAL:-VERS-ALL:+VERS-TLS1.3");
    check_a_peer_is_served("NORMAL:-VERS-ALL:+VERS-TLS1.2");
    tls_open(&old, "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0");
    assert_int_not_equal(tls_shake(&old), 0);
    tls_close(&old);
    (void)wait_until_all_closed();
}

/* A second handshake on a connection costs the server as much as a first, and no sender needs
 * it. */
static void a_peer_that_renegotiates_tls_is_disconnected(void **state)
{
    (void)state;
    assert_true(start("tls+tcp", AF_INET));
    for (int i = 0; i < 20; i++) {
        tls_peer peer;
        tls_open(&peer, "NORMAL:-VERS-ALL:+VERS-TLS1.2");
        assert_int_equal(tls_shake(&peer), 0);
        assert_true(tls_greet(&peer) && tls_ask(&peer));
        assert_int_not_equal(tls_shake(&peer), 0); /* over TLS 1.2 this is a renegotiation */
        assert_true(is_hung_up(peer.socket));
        tls_close(&peer);
    }
    check_a_peer_is_served("NORMAL");
    (void)wait_until_all_closed();
}

/* TLS 1.3 has key updates instead. A few are served, a flood of them ends the connection. */
static void key_updates_without_end_end_the_connection(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    tls_peer peer;
    assert_true(start("tls+tcp", AF_INET));
    tls_open(&peer, "NORMAL:-VERS-ALL:+VERS-TLS1.3");
    assert_int_equal(tls_shake(&peer), 0);
    assert_true(tls_greet(&peer));
    assert_int_equal(gnutls_session_key_update(peer.session, 0), 0);
    assert_true(tls_ask(&peer));
    for (int i = 0; i < MANY && gnutls_session_key_update(peer.session, GNUTLS_KU_PEER) == 0; i++) {
    }
    (void)tls_ask(&peer); /* served or not: only this peer is affected */
    check_a_peer_is_served("NORMAL");
    tls_close(&peer);
    (void)wait_until_all_closed();
}

/* Sends many messages in one record, and a message in records of one byte. */
static void records_may_have_any_length(void **state)
{
    (void)state;
    enum { MESSAGES = 64 };
    uint8_t many[MESSAGES * sizeof(question)];
    uint8_t answers[sizeof(many)];
    tls_peer peer;
    assert_true(start("tls+tcp", AF_INET));
    tls_open(&peer, "NORMAL");
    assert_int_equal(tls_shake(&peer), 0);
    assert_true(tls_greet(&peer));
    for (int i = 0; i < MESSAGES; i++) {
        memcpy(many + (size_t)i * sizeof(question), question, sizeof(question));
    }
    assert_true(tls_say(&peer, many, sizeof(many)));
    assert_true(tls_read(&peer, answers, sizeof(answers)));
    assert_memory_equal(answers, many, sizeof(many));
    for (size_t i = 0; i < sizeof(question); i++) {
        assert_true(tls_say(&peer, question + i, 1));
    }
    assert_true(tls_read(&peer, answers, sizeof(question)));
    tls_close(&peer);
    (void)wait_until_all_closed();
}

/* Sends the first bytes of a handshake, one more on each connection, or cleartext. A connection
 * that has not begun TLS in time is closed. */
static void half_handshakes_and_cleartext_are_disconnected(void **state)
{
    (void)state;
    static const uint8_t client_hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};
    int peers[sizeof(client_hello) + 2];
    const size_t count = sizeof(peers) / sizeof(peers[0]);
    test->limits.greeting_ms = 3000;
    assert_true(start("tls+tcp", AF_INET));
    for (size_t i = 0; i < count; i++) {
        const bool is_cleartext = i >= sizeof(client_hello);
        peers[i] = connect_peer();
        (void)!send(peers[i], is_cleartext ? greeting : client_hello,
                    is_cleartext ? sizeof(greeting) : i, MSG_NOSIGNAL);
    }
    check_a_peer_is_served("NORMAL");
    for (size_t i = 0; i < count; i++) {
        assert_true(is_hung_up(peers[i]));
        close(peers[i]);
    }
    (void)wait_until_all_closed();
}

/* The edge stops while peers are at different steps of TLS. */
static void the_edge_stops_with_tls_handshakes_under_way(void **state)
{
    (void)state;
    static const uint8_t begun[] = {0, 0, 0, 0, 0, 1, 0, 0, 0x80, 0, 0, 1, 7};
    tls_peer peers[5];
    int silent[5];
    assert_true(start("tls+tcp", AF_INET));
    for (int i = 0; i < 5; i++) {
        silent[i] = connect_peer();
        (void)!send(silent[i], "\x16\x03\x01", (size_t)i % 4, MSG_NOSIGNAL);
        tls_open(&peers[i], "NORMAL");
        assert_int_equal(tls_shake(&peers[i]), 0);
        if (i > 0) {
            assert_true(tls_say(&peers[i], greeting, i == 1 ? 3 : sizeof(greeting)));
        }
        if (i > 2) {
            assert_true(tls_say(&peers[i], i == 3 ? question : begun,
                                i == 3 ? sizeof(question) : sizeof(begun)));
        }
    }
    sj_edge_stop(test->edge);
    test->edge = NULL;
    for (int i = 0; i < 5; i++) {
        assert_true(is_hung_up(silent[i]));
        close(silent[i]);
        tls_close(&peers[i]);
    }
}

/* ---- IPv6 ---- */

static bool is_served(int peer)
{
    uint8_t reply[sizeof(greeting) + sizeof(question)];
    (void)!send(peer, greeting, sizeof(greeting), MSG_NOSIGNAL);
    (void)!send(peer, question, sizeof(question), MSG_NOSIGNAL);
    return recv(peer, reply, sizeof(reply), MSG_WAITALL) == (ssize_t)sizeof(reply);
}

/* Many peers from one /64 share the limit of one address, and do not keep other peers out. */
static void peers_of_one_ipv6_network_share_one_limit(void **state)
{
    (void)state;
    enum { CROWD = 100 };
    int crowd[CROWD];
    test->limits.strangers = 40;
    test->limits.strangers_per_address = 20;
    test->limits.grace_ms = 1;
    if (!start("tcp", AF_INET6)) {
        skip(); /* this machine has no IPv6 */
    }
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = connect_peer();
    }
    const int good = connect_peer();
    assert_true(is_served(good));
    assert_true(is_hung_up(crowd[0]));
    for (int i = 0; i < CROWD; i++) {
        close(crowd[i]);
    }
    close(good);
    const sj_edge_counters counters = wait_until_all_closed();
    assert_true(counters.displaced >= CROWD - 40);
}

static void tls_is_spoken_over_ipv6(void **state)
{
    (void)state;
    if (!start("tls+tcp", AF_INET6)) {
        skip();
    }
    check_a_peer_is_served("NORMAL");
    (void)wait_until_all_closed();
}

/* ---- one address ---- */

/* A peer that has begun to send is not displaced by silent peers of its address. */
static void silent_peers_displace_only_silent_peers(void **state)
{
    (void)state;
    enum { CROWD = 200 };
    int crowd[CROWD];
    uint8_t reply[sizeof(question)];
    test->limits.strangers = 40;
    test->limits.strangers_per_address = 20;
    test->limits.grace_ms = 1;
    assert_true(start("tcp", AF_INET));
    const int good = connect_peer();
    (void)!send(good, greeting, sizeof(greeting), MSG_NOSIGNAL);
    assert_int_equal(recv(good, reply, sizeof(greeting), MSG_WAITALL), sizeof(greeting));
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = connect_peer();
    }
    /* Once the first peers are closed, as many have come since as there are slots. */
    assert_true(is_hung_up(crowd[0]));
    assert_true(is_hung_up(crowd[40]));
    (void)!send(good, question, sizeof(question), MSG_NOSIGNAL);
    assert_int_equal(recv(good, reply, sizeof(reply), MSG_WAITALL), sizeof(reply));
    for (int i = 0; i < CROWD; i++) {
        close(crowd[i]);
    }
    close(good);
    (void)wait_until_all_closed();
}

/* One lost packet does not end the connection of a device without data. The timeout of a silent
 * connection must outlast several probes. */
static void an_idle_connection_outlasts_a_lost_probe(void **state)
{
    (void)state;
    struct sockaddr_in own;
    socklen_t size = sizeof(own);
    assert_true(start("tcp", AF_INET));
    const int peer = connect_peer();
    assert_true(is_served(peer));
    assert_int_equal(getsockname(peer, (struct sockaddr *)&own, &size), 0);
    int found = -1;
    /* the edge's end of the connection is in this process */
    for (int i = 3; i < 1024 && found < 0; i++) {
        struct sockaddr_in other = {0};
        size = sizeof(other);
        if (getpeername(i, (struct sockaddr *)&other, &size) == 0 && other.sin_family == AF_INET &&
            other.sin_port == own.sin_port) {
            found = i;
        }
    }
    assert_true(found >= 0);
    static const int options[] = {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT};
    int values[4] = {0};
    for (int i = 0; i < 4; i++) {
        size = sizeof(values[i]);
        assert_int_equal(getsockopt(found, IPPROTO_TCP, options[i], &values[i], &size), 0);
    }
    assert_true(values[2] >= 3);
    assert_true(values[3] > (values[0] + (values[2] - 1) * values[1]) * 1000);
    close(peer);
}

/* New peers keep coming from an address, with good peers of the same address among them. The edge
 * refuses no good peer. */
static void silent_peers_keep_out_no_good_peer_of_their_address(void **state)
{
    (void)state;
    enum { CROWD = 300, GOOD = 40 };
    static int crowd[CROWD * GOOD / 10];
    size_t silent = 0;
    test->limits.strangers = 64;
    test->limits.strangers_per_address = 32;
    assert_true(start("tcp", AF_INET));
    for (int i = 0; i < GOOD; i++) {
        for (int k = 0; k < CROWD / 10; k++) {
            crowd[silent++] = connect_peer();
        }
        const int good = connect_peer();
        assert_true(is_served(good));
        close(good);
    }
    while (silent > 0) {
        close(crowd[--silent]);
    }
    (void)wait_until_all_closed();
}

static int make_certificate(void **state)
{
    (void)state;
    sj_error error = {0};
    snprintf(directory, sizeof(directory), "edge_tls_test.%d", (int)getpid());
    return sj_certificate_load(directory, certificate, key, &error) == SJ_OK ? 0 : -1;
}

static int remove_certificate(void **state)
{
    char path[96];
    (void)state;
    snprintf(path, sizeof(path), "%s/certificate.pem", directory);
    unlink(path);
    snprintf(path, sizeof(path), "%s/key.pem", directory);
    unlink(path);
    return rmdir(directory);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(only_tls_1_2_and_1_3_are_accepted),
        CASE(a_peer_that_renegotiates_tls_is_disconnected),
        CASE(key_updates_without_end_end_the_connection),
        CASE(records_may_have_any_length),
        CASE(half_handshakes_and_cleartext_are_disconnected),
        CASE(the_edge_stops_with_tls_handshakes_under_way),
        CASE(peers_of_one_ipv6_network_share_one_limit),
        CASE(tls_is_spoken_over_ipv6),
        CASE(silent_peers_displace_only_silent_peers),
        CASE(an_idle_connection_outlasts_a_lost_probe),
        CASE(silent_peers_keep_out_no_good_peer_of_their_address),
    };
    return cmocka_run_group_tests_name("edge.tls", tests, make_certificate, remove_certificate);
}
