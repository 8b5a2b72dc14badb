/* The edge with peers that attack it: memory and slots that they used are freed, and other peers
 * are served. */
#include "collector-server/edge/edge.h"
#include "tests/support/check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000 };

static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

typedef struct fixture {
    sj_edge *edge;
    sj_edge_limits limits;
    char url[96];
    char path[80];
    atomic_int accepted_count;
    atomic_bool is_full; /* no message is accepted */
    atomic_bool is_mute; /* no message is answered; the last message is kept */
    atomic_bool binds;   /* every sender is a device */
    atomic_int reply_size;
    sj_edge_message last;
} fixture;

static fixture *test;

/* Accepts a message and replies with its first four bytes, or with `reply_size` zeroes if that is
 * not 0. The fixture's members can prevent both. */
static sj_edge_verdict handle(void *context, sj_edge_message *message)
{
    static const uint8_t zeroes[1 << 16];
    fixture *own = context;
    sj_sender sender = {.is_peer = true, .device = {1}};
    if (own->is_full) {
        return SJ_EDGE_FULL;
    }
    if (own->binds && message->is_stranger &&
        sj_edge_bind(own->edge, message->connection, &sender) != SJ_OK) {
        return SJ_EDGE_HANG_UP;
    }
    own->accepted_count++;
    own->last = *message;
    own->last.memory = NULL;
    if (!own->is_mute) {
        const sj_slice echo = {.data = message->body.data, .size = 4};
        const sj_slice reply = {.data = zeroes, .size = (size_t)own->reply_size};
        sj_edge_reply(own->edge, message, own->reply_size != 0 ? reply : echo, false);
    }
    free(message->memory);
    return SJ_EDGE_ACCEPTED;
}

static void start(void)
{
    const char *const urls[] = {test->url};
    const sj_edge_options options = {
        .urls = urls, .url_count = 1, .limits = &test->limits, .handle = handle, .context = test};
    sj_error error = {0};
    if (sj_edge_start(&options, &test->edge, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
}

static int set_up(void **state)
{
    test = calloc(1, sizeof(*test));
    test->limits = sj_edge_default_limits;
    snprintf(test->path, sizeof(test->path), "edge_test.%d.ipc", (int)getpid());
    snprintf(test->url, sizeof(test->url), "ipc://%s", test->path);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    sj_edge_stop(test->edge);
    const bool is_left = access(test->path, F_OK) == 0;
    free(*state);
    return is_left; /* the socket file is removed with the edge */
}

static int connect_peer(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test->path);
    assert_true(peer >= 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    return peer;
}

/* The edge may close a peer's connection at any byte. */
static void say(int peer, const void *bytes, size_t size)
{
    const ssize_t sent = send(peer, bytes, size, MSG_NOSIGNAL);
    (void)sent;
}

static void ask(int peer, uint32_t what)
{
    uint8_t question[1 + 8 + 4 + 4] = {1, 0, 0, 0, 0, 0, 0, 0, 8, 0x80, 0, 0, 1};
    memcpy(question + 13, &what, sizeof(what));
    say(peer, question, sizeof(question));
}

/* Reads exactly `size` bytes. Returns false if the edge has closed the connection. */
static bool read_bytes(int peer, uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        struct pollfd waits = {.fd = peer, .events = POLLIN};
        assert_int_equal(poll(&waits, 1, PATIENCE_MS), 1);
        const ssize_t got = recv(peer, bytes + at, size - at, 0);
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

static bool is_hung_up(int peer)
{
    uint8_t byte;
    while (read_bytes(peer, &byte, 1)) {
    }
    return true;
}

/* Greets, sends a question and reads it back, as a good peer does. Returns false if that fails. */
static bool is_served(int peer, uint32_t what)
{
    uint8_t reply[8 + 1 + 8 + 4 + 4];
    say(peer, greeting, sizeof(greeting));
    ask(peer, what);
    return read_bytes(peer, reply, sizeof(reply)) && memcmp(reply + 21, &what, 4) == 0;
}

static sj_edge_counters wait_for(bool (*holds)(const sj_edge_counters *))
{
    sj_edge_counters counters = {0};
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        sj_edge_get_counters(test->edge, &counters);
        assert_true(counters.reading_bytes <= SIZE_MAX / 2); /* otherwise it went below zero */
        if (holds(&counters)) {
            return counters;
        }
        usleep(10000);
    }
    fail_msg("waited in vain: %u open, %u strangers, %zu bytes", counters.open, counters.strangers,
             counters.reading_bytes);
    return counters;
}

static bool is_empty(const sj_edge_counters *counters)
{
    return counters->accepted > 0 && counters->open == 0 && counters->strangers == 0 &&
           counters->reading_bytes == 0;
}

static void a_question_is_answered(void **state)
{
    (void)state;
    start();
    const int peer = connect_peer();
    assert_true(is_served(peer, 4711));
    close(peer);
    (void)wait_for(is_empty);
}

static void peers_that_never_read_leave_no_memory_behind(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 500; i++) {
        const int peer = connect_peer();
        say(peer, greeting, sizeof(greeting));
        for (uint32_t k = 0; k < 30; k++) {
            ask(peer, k);
        }
        close(peer);
    }
    const int good = connect_peer();
    assert_true(is_served(good, 1));
    close(good);
    (void)wait_for(is_empty);
}

static bool has_displaced(const sj_edge_counters *counters)
{
    return counters->displaced >= 40 && counters->strangers <= 20;
}

static void the_number_of_strangers_is_limited(void **state)
{
    (void)state;
    int silent[60];
    test->limits.strangers = 20;
    test->limits.grace_ms = 1;
    start();
    for (int i = 0; i < 60; i++) {
        silent[i] = connect_peer();
    }
    const int good = connect_peer();
    assert_true(is_served(good, 5));
    (void)wait_for(has_displaced);
    assert_true(is_hung_up(silent[0]));
    for (int i = 0; i < 60; i++) {
        close(silent[i]);
    }
    close(good);
    (void)wait_for(is_empty);
}

static void a_device_is_not_displaced_like_a_stranger(void **state)
{
    (void)state;
    int silent[60];
    test->limits.strangers = 20;
    test->limits.grace_ms = 1;
    test->binds = true;
    start();
    const int device = connect_peer();
    assert_true(is_served(device, 5));
    for (int i = 0; i < 60; i++) {
        silent[i] = connect_peer();
    }
    (void)wait_for(has_displaced);
    uint8_t reply[17];
    ask(device, 6);
    assert_true(read_bytes(device, reply, sizeof(reply)));
    for (int i = 0; i < 60; i++) {
        close(silent[i]);
    }
    close(device);
    (void)wait_for(is_empty);
}

static void connections_of_a_device_are_limited(void **state)
{
    (void)state;
    int peers[3];
    test->limits.connections_per_device = 2;
    test->binds = true;
    start();
    for (int i = 0; i < 3; i++) {
        peers[i] = connect_peer();
        say(peers[i], greeting, sizeof(greeting));
        ask(peers[i], 1);
        uint8_t reply[25];
        assert_int_equal(read_bytes(peers[i], reply, sizeof(reply)), i < 2);
    }
    close(peers[0]);
    for (int tries = 0;; tries++) { /* until its slot is free again */
        close(peers[2]);
        peers[2] = connect_peer();
        if (is_served(peers[2], 2)) {
            break;
        }
        assert_true(tries < 1000);
    }
    close(peers[1]);
    close(peers[2]);
    (void)wait_for(is_empty);
}

static void slow_strangers_are_disconnected(void **state)
{
    (void)state;
    test->limits.greeting_ms = 1000;
    test->limits.stranger_ms = 2000;
    start();
    const int silent = connect_peer();
    const int greeted = connect_peer();
    assert_true(is_served(greeted, 1));
    assert_true(is_hung_up(silent));
    assert_true(is_hung_up(greeted));
    close(silent);
    close(greeted);
    (void)wait_for(is_empty);
}

static void a_peer_whose_message_stalls_is_disconnected(void **state)
{
    (void)state;
    static const uint8_t begun[] = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0x80, 0, 0, 1, 7};
    test->limits.stall_ms = 200;
    test->binds = true;
    start();
    const int peer = connect_peer();
    assert_true(is_served(peer, 1));
    say(peer, begun, sizeof(begun));
    assert_true(is_hung_up(peer));
    close(peer);
    (void)wait_for(is_empty);
}

static void unread_replies_end_the_connection(void **state)
{
    (void)state;
    test->limits.reply_bytes = 256 << 10;
    test->binds = true;
    test->reply_size = 1 << 16;
    start();
    const int peer = connect_peer();
    say(peer, greeting, sizeof(greeting));
    for (uint32_t i = 0; i < 64; i++) {
        ask(peer, i);
    }
    assert_true(is_hung_up(peer));
    close(peer);
    const sj_edge_counters counters = wait_for(is_empty);
    assert_true(counters.slow <= 1);
}

static void messages_for_a_full_queue_are_served_later(void **state)
{
    (void)state;
    enum { PEERS = 50 };
    int peers[PEERS];
    uint8_t reply[25];
    start();
    test->is_full = true;
    for (uint32_t i = 0; i < PEERS; i++) {
        peers[i] = connect_peer();
        say(peers[i], greeting, sizeof(greeting));
        ask(peers[i], i);
    }
    const int beside = connect_peer();
    assert_true(read_bytes(beside, reply, 8)); /* the edge itself still works */
    assert_int_equal(test->accepted_count, 0);
    test->is_full = false;
    sj_edge_resume(test->edge);
    for (uint32_t i = 0; i < PEERS; i++) {
        assert_true(read_bytes(peers[i], reply, sizeof(reply)));
        assert_memory_equal(reply + 21, &i, sizeof(i));
        close(peers[i]);
    }
    assert_int_equal(test->accepted_count, PEERS);
    close(beside);
    (void)wait_for(is_empty);
}

/* Waits until the edge has delivered `count` messages. */
static void wait_for_accepted(int count)
{
    for (int i = 0; i < PATIENCE_MS && test->accepted_count < count; i++) {
        usleep(1000);
    }
    assert_int_equal(test->accepted_count, count);
}

/* Sends half of a message of `size` bytes, or the rest of it. */
static void say_half(int peer, size_t size, bool is_rest)
{
    uint8_t *bytes = calloc(1, size + 9);
    assert_non_null(bytes);
    bytes[0] = 1;
    for (int i = 0; i < 8; i++) {
        bytes[1 + i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
    }
    bytes[9] = 0x80;
    say(peer, bytes + (is_rest ? size / 2 : 0), is_rest ? size + 9 - size / 2 : size / 2);
    free(bytes);
}

static void messages_that_wait_for_replies_are_limited(void **state)
{
    (void)state;
    enum { PENDING = 8 };
    static uint8_t questions[20 * 17];
    test->limits.pending = PENDING;
    test->is_mute = true;
    start();
    for (int i = 0; i < 20; i++) {
        static const uint8_t question[17] = {1, 0, 0, 0, 0, 0, 0, 0, 8, 0x80, 0, 0, 1};
        memcpy(questions + (size_t)i * 17, question, 17);
    }
    /* a stranger may have one message pending, a device PENDING */
    for (int binds = 0; binds < 2; binds++) {
        const int peer = connect_peer();
        const int before = test->accepted_count;
        const int most = binds != 0 ? PENDING : 1;
        test->binds = binds != 0;
        say(peer, greeting, sizeof(greeting));
        say(peer, questions, sizeof(questions));
        wait_for_accepted(before + most);
        const int other = connect_peer(); /* this one comes after all of them */
        say(other, greeting, sizeof(greeting));
        ask(other, 1);
        wait_for_accepted(before + most + 1);
        close(peer);
        close(other);
    }
    (void)wait_for(is_empty);
}

static void a_strangers_long_message_is_dropped_and_answered(void **state)
{
    (void)state;
    uint8_t reply[17];
    test->limits.stranger_message_bytes = 4096;
    test->limits.stranger_bytes = 100000;
    start();
    const int peer = connect_peer();
    say(peer, greeting, sizeof(greeting));
    assert_true(read_bytes(peer, reply, 8));
    test->reply_size = 4;
    say_half(peer, 8192, false);
    say_half(peer, 8192, true);
    assert_true(read_bytes(peer, reply, sizeof(reply)));
    assert_true(test->last.is_cut);
    assert_int_equal(test->last.body.size, 0);
    for (int i = 0; i < 12; i++) { /* more than a stranger may send in total */
        say_half(peer, 8192, false);
        say_half(peer, 8192, true);
    }
    assert_true(is_hung_up(peer));
    close(peer);
    (void)wait_for(is_empty);
}

static void a_message_over_the_limit_ends_the_connection(void **state)
{
    (void)state;
    test->limits.message_bytes = 10000;
    test->binds = true;
    start();
    const int peer = connect_peer();
    assert_true(is_served(peer, 1));
    say_half(peer, 10001, false);
    assert_true(is_hung_up(peer));
    close(peer);
    (void)wait_for(is_empty);
}

/* Together the messages announce more than the limit. Devices wait for each other, and all of them
 * are served. Strangers' connections are closed. */
static void memory_of_unfinished_messages_is_bounded(void **state)
{
    (void)state;
    enum { PEERS = 6, MESSAGE = 60000 };
    int peers[PEERS];
    uint8_t reply[17];
    test->limits.reading_bytes = 100000;
    test->limits.stranger_reading_bytes = 40000;
    test->binds = true;
    start();
    for (int i = 0; i < PEERS; i++) {
        peers[i] = connect_peer();
        assert_true(is_served(peers[i], 1));
    }
    test->reply_size = 4;
    for (int rest = 0; rest < 2; rest++) {
        for (int i = 0; i < PEERS; i++) {
            say_half(peers[i], MESSAGE, rest != 0);
        }
    }
    for (int i = 0; i < PEERS; i++) {
        assert_true(read_bytes(peers[i], reply, sizeof(reply)));
        close(peers[i]);
    }
    (void)wait_for(is_empty);
    test->binds = false;
    const int stranger = connect_peer();
    say(stranger, greeting, sizeof(greeting));
    say_half(stranger, MESSAGE, false);
    say_half(stranger, MESSAGE, true);
    assert_true(is_hung_up(stranger));
    close(stranger);
    (void)wait_for(is_empty);
}

/* While devices hold all connections newcomers wait. Devices do not make way. */
static void newcomers_wait_while_devices_hold_all_connections(void **state)
{
    (void)state;
    enum { PLACES = 4 };
    int peers[PLACES];
    uint8_t reply[17];
    test->limits.connections = PLACES;
    test->limits.grace_ms = 1;
    test->binds = true;
    start();
    for (int i = 0; i < PLACES; i++) {
        peers[i] = connect_peer();
        assert_true(is_served(peers[i], 1));
    }
    const int newcomer = connect_peer();
    for (uint32_t i = 0; i < PLACES; i++) {
        ask(peers[i], 2);
        assert_true(read_bytes(peers[i], reply, sizeof(reply)));
    }
    close(peers[0]);
    assert_true(is_served(newcomer, 3));
    for (int i = 1; i < PLACES; i++) {
        close(peers[i]);
    }
    close(newcomer);
    (void)wait_for(is_empty);
}

static bool has_late(const sj_edge_counters *counters)
{
    return counters->late == 1;
}

static void a_reply_to_a_closed_connection_is_dropped(void **state)
{
    (void)state;
    start();
    test->is_mute = true;
    const int peer = connect_peer();
    say(peer, greeting, sizeof(greeting));
    ask(peer, 9);
    for (int i = 0; i < PATIENCE_MS && test->accepted_count == 0; i++) {
        usleep(1000);
    }
    assert_int_equal(test->accepted_count, 1);
    close(peer);
    (void)wait_for(is_empty);
    sj_edge_reply(test->edge, &test->last, (sj_slice){0}, false);
    sj_edge_flush(test->edge);
    (void)wait_for(has_late);
    test->is_mute = false;
    const int other = connect_peer(); /* has its slot, but no answer yet */
    assert_true(is_served(other, 10));
    close(other);
}

static void the_edge_stops_with_messages_under_way(void **state)
{
    (void)state;
    static const uint8_t begun[] = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0x80, 0, 0, 1, 7};
    int peers[40];
    start();
    test->is_full = true;
    for (int i = 0; i < 40; i++) {
        peers[i] = connect_peer();
        say(peers[i], greeting, (size_t)(i % 9));
        if (i % 9 == 8) {
            ask(peers[i], 1);
            say(peers[i], begun, (size_t)(i % (int)sizeof(begun)));
        }
    }
    sj_edge_stop(test->edge);
    test->edge = NULL;
    for (int i = 0; i < 40; i++) {
        close(peers[i]);
    }
}

static void an_address_in_use_is_refused(void **state)
{
    (void)state;
    sj_edge *other = NULL;
    sj_error error = {0};
    const char *const urls[] = {test->url};
    start();
    const sj_edge_options same = {.urls = urls, .url_count = 1, .handle = handle, .context = test};
    assert_int_equal(sj_edge_start(&same, &other, &error), SJ_EEXIST);
    const char *const wrong[] = {"udp://127.0.0.1:1"};
    const sj_edge_options unknown = {.urls = wrong, .url_count = 1, .handle = handle};
    assert_int_equal(sj_edge_start(&unknown, &other, &error), SJ_EINVAL);
    const char *const tls[] = {"tls+tcp://127.0.0.1:0"};
    const sj_edge_options bare = {.urls = tls, .url_count = 1, .handle = handle};
    assert_int_equal(sj_edge_start(&bare, &other, &error), SJ_EINVAL);
    assert_non_null(strstr(error.text, "certificate"));
    const int peer = connect_peer();
    assert_true(is_served(peer, 3)); /* the first edge still listens */
    close(peer);
}

/* Makes what a killed server leaves behind: a socket file without a server. */
static void leave_socket_file(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int socket_file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test->path);
    assert_int_equal(bind(socket_file, (struct sockaddr *)&address, sizeof(address)), 0);
    close(socket_file);
}

static void a_socket_file_without_a_server_is_replaced(void **state)
{
    (void)state;
    leave_socket_file();
    start();
    const int peer = connect_peer();
    assert_true(is_served(peer, 3));
    close(peer);
}

/* The kernel refuses connections to files that are not sockets, too. */
static void a_file_that_is_not_a_socket_is_kept(void **state)
{
    (void)state;
    sj_error error = {0};
    const char *const urls[] = {test->url};
    const sj_edge_options options = {.urls = urls, .url_count = 1, .handle = handle};
    FILE *file = fopen(test->path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(sj_edge_start(&options, &test->edge, &error), SJ_EEXIST);
    assert_int_equal(unlink(test->path), 0);
}

static void the_edge_removes_its_own_socket_file_only(void **state)
{
    (void)state;
    start();
    assert_int_equal(unlink(test->path), 0);
    leave_socket_file(); /* another server makes it */
    sj_edge_stop(test->edge);
    test->edge = NULL;
    assert_int_equal(unlink(test->path), 0);
    start();
    assert_int_equal(unlink(test->path), 0);
    FILE *file = fopen(test->path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    sj_edge_stop(test->edge);
    test->edge = NULL;
    assert_int_equal(unlink(test->path), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_question_is_answered),
        CASE(peers_that_never_read_leave_no_memory_behind),
        CASE(the_number_of_strangers_is_limited),
        CASE(a_device_is_not_displaced_like_a_stranger),
        CASE(connections_of_a_device_are_limited),
        CASE(slow_strangers_are_disconnected),
        CASE(a_peer_whose_message_stalls_is_disconnected),
        CASE(unread_replies_end_the_connection),
        CASE(messages_for_a_full_queue_are_served_later),
        CASE(messages_that_wait_for_replies_are_limited),
        CASE(a_strangers_long_message_is_dropped_and_answered),
        CASE(a_message_over_the_limit_ends_the_connection),
        CASE(memory_of_unfinished_messages_is_bounded),
        CASE(newcomers_wait_while_devices_hold_all_connections),
        CASE(a_reply_to_a_closed_connection_is_dropped),
        CASE(the_edge_stops_with_messages_under_way),
        CASE(an_address_in_use_is_refused),
        CASE(a_socket_file_without_a_server_is_replaced),
        CASE(a_file_that_is_not_a_socket_is_kept),
        CASE(the_edge_removes_its_own_socket_file_only),
    };
    return cmocka_run_group_tests_name("edge", tests, NULL, NULL);
}
