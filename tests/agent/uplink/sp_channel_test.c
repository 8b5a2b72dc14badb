/* Tests the channel without threads against libnng's REP, and against peers that violate the
 * protocol. */
#include "agent/uplink/sp_channel.h"
#include "agent/uplink/sp_wire.h"
#include "agent/uplink/uplink.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/frame_maker.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, SLOTS = 4, BIG_BYTES = 8 * 1024 * 1024 };

/* A channel and its events. */
typedef struct line {
    char url[96];
    sj_channel *channel;
    unsigned connected;
    unsigned disconnected;
    unsigned failed;
    unsigned answered;
    uint32_t slot;      /* slot of the latest reply or failure */
    uint8_t reply[256]; /* beginning of the latest reply */
    size_t reply_bytes;
    char why[128];
} line;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void open_line(line *one, uint32_t resend_ms)
{
    sj_error error;
    const sj_channel_options options = {.url = one->url, .slots = SLOTS, .resend_ms = resend_ms};
    assert_int_equal(sj_channel_sp.open(&options, &one->channel, &error), SJ_OK);
}

static void handle_all_events(line *one)
{
    sj_channel_event event;
    while (sj_channel_sp.next_event(one->channel, &event)) {
        one->connected += event.type == SJ_CHANNEL_CONNECTED;
        one->disconnected += event.type == SJ_CHANNEL_DISCONNECTED;
        if (event.type == SJ_CHANNEL_FAILED) {
            one->failed++;
            one->slot = event.slot;
            snprintf(one->why, sizeof(one->why), "%s", event.why);
        } else if (event.type == SJ_CHANNEL_REPLIED) {
            one->answered++;
            one->slot = event.slot;
            one->reply_bytes = event.reply.size;
            memcpy(one->reply, event.reply.data,
                   event.reply.size < sizeof(one->reply) ? event.reply.size : sizeof(one->reply));
            assert_true(event.received_ns > 0);
        }
    }
}

/* Waits until a count of the line reaches `wanted`. */
static void wait_until(line *one, const unsigned *count, unsigned wanted)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    for (handle_all_events(one); *count < wanted; handle_all_events(one)) {
        struct timespec soon;
        clock_gettime(CLOCK_MONOTONIC, &soon);
        soon.tv_nsec += 20000000;
        if (soon.tv_nsec >= 1000000000) {
            soon.tv_sec++;
            soon.tv_nsec -= 1000000000;
        }
        sj_channel_sp.wait(one->channel, &soon);
        assert_true(now_ms() < end_ms);
    }
    assert_int_equal(*count, wanted);
}

static void ask(line *one, uint32_t slot, const void *text, size_t size)
{
    const sj_slice question = {.data = text, .size = size};
    assert_int_equal(sj_channel_sp.ask(one->channel, slot, question), SJ_OK);
}

/* --- against libnng --------------------------------------------------------------------------- */

static void *close_socket(void *argument)
{
    const nng_socket *listening = argument;
    nng_close(*listening);
    free(argument);
    return NULL;
}

/* The peer sees the end at once, but nng_close may never return. NNG 1.5.2's reaper of pipes hangs
 * once in some hundred connections that end during a question. The test does not need the close to
 * finish. */
static void close_listener(nng_socket listening)
{
    pthread_t closer;
    nng_socket *closed = malloc(sizeof(*closed));
    assert_non_null(closed);
    *closed = listening;
    assert_int_equal(pthread_create(&closer, NULL, close_socket, closed), 0);
    pthread_detach(closer);
}

static void make_url(line *one, bool is_ipc, nng_socket *listening)
{
    static int runs;
    nng_listener listener;
    assert_int_equal(nng_rep0_open_raw(listening), 0);
    if (is_ipc) {
        snprintf(one->url, sizeof(one->url), "ipc://./sp_test.%d.%d.ipc", (int)getpid(), ++runs);
        assert_int_equal(nng_listen(*listening, one->url, &listener, 0), 0);
        return;
    }
    nng_sockaddr address;
    assert_int_equal(nng_listen(*listening, "tcp://127.0.0.1:0", &listener, 0), 0);
    assert_int_equal(nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address), 0);
    snprintf(one->url, sizeof(one->url), "tcp://127.0.0.1:%d", ntohs(address.s_in.sa_port));
}

/* Receives a question while the channel handles its events. */
static nng_msg *receive_question(line *one, nng_socket listening)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    nng_msg *message = NULL;
    assert_int_equal(nng_socket_set_ms(listening, NNG_OPT_RECVTIMEO, 5), 0);
    while (nng_recvmsg(listening, &message, 0) != 0) {
        handle_all_events(one);
        assert_true(now_ms() < end_ms);
    }
    return message;
}

static void send_with(nng_socket listening, nng_msg *message, const void *bytes, size_t size)
{
    nng_msg_clear(message);
    assert_int_equal(nng_msg_append(message, bytes, size), 0);
    assert_int_equal(nng_sendmsg(listening, message, 0), 0);
}

static void questions_are_answered_in_any_order(void **state)
{
    (void)state;
    for (int is_ipc = 0; is_ipc < 2; ++is_ipc) {
        line one = {0};
        nng_socket listening;
        nng_msg *asked[SLOTS];
        make_url(&one, is_ipc, &listening);
        open_line(&one, PATIENCE_MS);
        wait_until(&one, &one.connected, 1);
        for (uint32_t slot = 0; slot < SLOTS; ++slot) {
            ask(&one, slot, "question0", 9);
            asked[slot] = receive_question(&one, listening);
            assert_int_equal(nng_msg_len(asked[slot]), 9);
            assert_memory_equal(nng_msg_body(asked[slot]), "question0", 9);
        }
        for (uint32_t slot = SLOTS; slot-- > 0;) {
            const uint8_t reply[2] = {'a', (uint8_t)slot};
            send_with(listening, asked[slot], reply, sizeof(reply));
            wait_until(&one, &one.answered, SLOTS - slot);
            assert_int_equal(one.slot, slot);
            assert_int_equal(one.reply_bytes, 2);
            assert_memory_equal(one.reply, reply, 2);
        }
        assert_int_equal(one.failed, 0);
        sj_channel_sp.close(one.channel);
        close_listener(listening);
    }
}

static void a_question_may_be_as_big_as_a_frame(void **state)
{
    (void)state;
    for (int is_ipc = 0; is_ipc < 2; ++is_ipc) {
        line one = {0};
        nng_socket listening;
        uint8_t *big = malloc(BIG_BYTES);
        uint8_t *long_reply = calloc(1, SJ_CHANNEL_REPLY_BYTES);
        for (size_t i = 0; i < BIG_BYTES; ++i) {
            big[i] = (uint8_t)(i * 2654435761U >> 13);
        }
        make_url(&one, is_ipc, &listening);
        open_line(&one, PATIENCE_MS);
        wait_until(&one, &one.connected, 1);
        ask(&one, 2, big, BIG_BYTES);
        ask(&one, 1, "behind", 6);
        nng_msg *message = receive_question(&one, listening);
        assert_int_equal(nng_msg_len(message), BIG_BYTES);
        assert_memory_equal(nng_msg_body(message), big, BIG_BYTES);
        send_with(listening, message, long_reply, SJ_CHANNEL_REPLY_BYTES);
        wait_until(&one, &one.answered, 1);
        assert_int_equal(one.slot, 2);
        assert_int_equal(one.reply_bytes, SJ_CHANNEL_REPLY_BYTES);
        message = receive_question(&one, listening);
        send_with(listening, message, "yes", 3);
        wait_until(&one, &one.answered, 2);
        assert_int_equal(one.slot, 1);
        sj_channel_sp.close(one.channel);
        close_listener(listening);
        free(long_reply);
        free(big);
    }
}

static void the_channel_reconnects_to_a_restarted_server(void **state)
{
    (void)state;
    line one = {0};
    nng_socket listening;
    make_url(&one, true, &listening);
    open_line(&one, PATIENCE_MS);
    for (unsigned round = 1; round <= 3; ++round) {
        wait_until(&one, &one.connected, round);
        ask(&one, 0, "lost", 4);
        ask(&one, 3, "lost", 4);
        nng_msg_free(receive_question(&one, listening));
        close_listener(listening);
        wait_until(&one, &one.failed, 2 * round);
        assert_int_equal(one.disconnected, round);
        ask(&one, 1, "nobody there", 12); /* This question fails, too. */
        assert_int_equal(nng_rep0_open_raw(&listening), 0);
        assert_int_equal(nng_listen(listening, one.url, NULL, 0), 0);
        wait_until(&one, &one.failed, 2 * round + 1);
        one.failed--;
    }
    sj_channel_sp.close(one.channel);
    close_listener(listening);
}

/* --- against other peers ---------------------------------------------------------------------- */

typedef struct stranger {
    line line;
    int listener;
    int peer; /* The latest accepted connection. */
} stranger;

static void open_stranger(stranger *one, uint32_t resend_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    *one = (stranger){.peer = -1};
    one->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(one->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(one->listener, 8), 0);
    assert_int_equal(getsockname(one->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(one->line.url, sizeof(one->line.url), "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    open_line(&one->line, resend_ms);
}

/* Accepts the next connection and reads the greeting of the REQ. */
static void accept_next(stranger *one)
{
    static const uint8_t wanted[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    uint8_t greeting[sizeof(wanted)];
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    size_t got = 0;
    if (one->peer >= 0) {
        close(one->peer);
    }
    while ((one->peer = accept(one->listener, NULL, NULL)) < 0) {
        struct pollfd polled = {.fd = one->listener, .events = POLLIN};
        handle_all_events(&one->line);
        poll(&polled, 1, 5);
        assert_true(now_ms() < end_ms);
    }
    while (got < sizeof(greeting)) {
        const ssize_t part = recv(one->peer, greeting + got, sizeof(greeting) - got, MSG_DONTWAIT);
        got += part > 0 ? (size_t)part : 0;
        handle_all_events(&one->line);
        assert_true(now_ms() < end_ms);
    }
    assert_memory_equal(greeting, wanted, sizeof(wanted));
}

static void say(const stranger *one, const void *bytes, size_t size)
{
    assert_int_equal(send(one->peer, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void close_stranger(stranger *one)
{
    sj_channel_sp.close(one->line.channel);
    close(one->peer);
    close(one->listener);
}

static const uint8_t rep_greeting[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

/* Greets like a REP and receives one question. Returns its request id. */
static uint32_t receive_from_stranger(stranger *one)
{
    uint8_t header[8 + 4 + 1];
    size_t got = 0;
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    accept_next(one);
    say(one, rep_greeting, sizeof(rep_greeting));
    wait_until(&one->line, &one->line.connected, one->line.connected + 1);
    ask(&one->line, 0, "?", 1);
    while (got < sizeof(header)) {
        const ssize_t part = recv(one->peer, header + got, sizeof(header) - got, MSG_DONTWAIT);
        got += part > 0 ? (size_t)part : 0;
        handle_all_events(&one->line);
        assert_true(now_ms() < end_ms);
    }
    assert_memory_equal(header, "\0\0\0\0\0\0\0\5", 8);
    assert_int_equal(header[12], '?');
    return (uint32_t)header[8] << 24 | (uint32_t)header[9] << 16 | (uint32_t)header[10] << 8 |
           header[11];
}

static void the_channel_leaves_a_peer_that_is_not_a_rep(void **state)
{
    (void)state;
    static const char *const words[] = {"HTTP/1.0 200 OK\r\n\r\n", "SSH-2.0-x\r\n"};
    stranger one;
    open_stranger(&one, PATIENCE_MS);
    for (size_t i = 0; i < 2; ++i) {
        accept_next(&one);
        say(&one, words[i], strlen(words[i]));
    }
    accept_next(&one);
    say(&one, "\0SP\0\0\x30\0\0", 8); /* The greeting of another REQ. */
    accept_next(&one);                /* The channel has hung up and tries again. */
    assert_int_equal(one.line.connected, 0);
    /* A real REP is still accepted. */
    say(&one, rep_greeting, sizeof(rep_greeting));
    wait_until(&one.line, &one.line.connected, 1);
    close_stranger(&one);
}

static void hostile_replies_end_only_the_connection(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } replies[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8},
        {"\0\0\0\0\0\1\0\5", 8},           /* One byte more than allowed. */
        {"\0\0\0\0\0\0\0\0", 8},           /* Too short for a request id. */
        {"\0\0\0\0\0\0\0\5\0\0\0\1x", 13}, /* Not a request id. */
    };
    stranger one;
    open_stranger(&one, PATIENCE_MS);
    for (unsigned i = 0; i < sizeof(replies) / sizeof(replies[0]); ++i) {
        (void)receive_from_stranger(&one);
        say(&one, replies[i].bytes, replies[i].size);
        wait_until(&one.line, &one.line.failed, i + 1);
        assert_int_equal(one.line.disconnected, i + 1);
        assert_non_null(strstr(one.line.why, "answer"));
    }
    close_stranger(&one);
}

static void incomplete_and_late_replies_do_no_harm(void **state)
{
    (void)state;
    stranger one;
    open_stranger(&one, PATIENCE_MS);
    const uint32_t request = receive_from_stranger(&one);
    uint8_t reply[64];
    /* Replies to unknown or old questions are skipped. */
    size_t size = sj_sp_header(false, (request ^ 5) | SJ_SP_REQUEST_BIT, 3, reply);
    memcpy(reply + size, "old", 3);
    say(&one, reply, size + 3);
    size = sj_sp_header(false, request, 4, reply);
    memcpy(reply + size, "late", 4);
    for (size_t i = 0; i < size + 4; ++i) {
        assert_int_equal(one.line.answered, 0);
        say(&one, reply + i, 1);
        handle_all_events(&one.line);
    }
    wait_until(&one.line, &one.line.answered, 1);
    assert_memory_equal(one.line.reply, "late", 4);
    /* A second reply to the same question is skipped. */
    say(&one, reply, size + 4);
    ask(&one.line, 1, "?", 1);
    /* The connection is reset in the middle of a reply. */
    say(&one, reply, 5);
    const struct linger hard = {.l_onoff = 1};
    assert_int_equal(setsockopt(one.peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    close(one.peer);
    one.peer = -1;
    wait_until(&one.line, &one.line.failed, 1);
    assert_int_equal(one.line.answered, 1);
    (void)receive_from_stranger(&one);
    close_stranger(&one);
}

static void a_peer_that_does_not_greet_is_given_up(void **state)
{
    (void)state;
    stranger one;
    open_stranger(&one, 300);
    accept_next(&one); /* This peer never greets. */
    (void)receive_from_stranger(&one);
    wait_until(&one.line, &one.line.failed, 1);
    assert_non_null(strstr(one.line.why, "does not answer"));
    close_stranger(&one);
}

/* --- under the uplink ------------------------------------------------------------------------- */

static void reply_frame(nng_socket listening, nng_msg *message)
{
    uint8_t header[64];
    uint8_t frame[sizeof(header) + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    ack.window = 8;
    const sj_slice packed = {.data = header, .size = sojourn__ack__pack(&ack, header)};
    assert_int_equal(
        sj_frame_write(SJ_FRAME_ACK, packed, (sj_slice){0}, frame, sizeof(frame), &size), SJ_OK);
    send_with(listening, message, frame, size);
}

/* Delivers a whole spool. The collector goes away in between, and all frames that it did not
 * confirm are sent again. */
static void an_uplink_without_threads_delivers(void **state)
{
    (void)state;
    enum { BLOCKS = 40 };
    line one = {0};
    nng_socket listening;
    char command[128];
    char spool_path[64];
    sj_spool *spool = NULL;
    sj_uplink *uplink = NULL;
    frame_maker maker;
    sj_error error;
    sj_spool_counters counters;
    make_url(&one, true, &listening);
    snprintf(spool_path, sizeof(spool_path), "sp_test.%d.spool", (int)getpid());
    frame_maker_init(&maker, 3);
    const sj_spool_options spool_options = {.directory = spool_path, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool_options, &spool, &error), SJ_OK);
    assert_int_equal(sj_spool_append(spool, frame_maker_session(&maker), &error), SJ_OK);
    for (int i = 0; i < BLOCKS; ++i) {
        assert_int_equal(sj_spool_append(spool, frame_maker_block(&maker, 100, 0), &error), SJ_OK);
    }
    const sj_uplink_options options = {.channel = &sj_channel_sp,
                                       .url = one.url,
                                       .hello = frame_maker_hello(&maker),
                                       .resend_ms = PATIENCE_MS,
                                       .threadless = true};
    assert_int_equal(sj_uplink_start(spool, &options, &uplink, &error), SJ_OK);
    assert_int_equal(nng_socket_set_ms(listening, NNG_OPT_RECVTIMEO, 1), 0);
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    bool was_away = false;
    while (sj_uplink_drain(uplink, 1) != SJ_OK) {
        nng_msg *message = NULL;
        sj_spool_get_counters(spool, &counters);
        if (!was_away && counters.acknowledged_frames >= BLOCKS / 2) {
            was_away = true;
            nng_close(listening);
            assert_int_equal(nng_rep0_open_raw(&listening), 0);
            assert_int_equal(nng_listen(listening, one.url, NULL, 0), 0);
            assert_int_equal(nng_socket_set_ms(listening, NNG_OPT_RECVTIMEO, 1), 0);
        }
        if (nng_recvmsg(listening, &message, 0) == 0) {
            reply_frame(listening, message);
        }
        assert_true(now_ms() < end_ms);
    }
    sj_spool_get_counters(spool, &counters);
    assert_true(was_away);
    assert_int_equal(counters.acknowledged_frames, BLOCKS + 1);
    assert_int_equal(counters.pending_frames, 0);
    sj_uplink_stop(uplink);
    assert_int_equal(sj_spool_remove(spool, &error), SJ_OK);
    frame_maker_deinit(&maker);
    nng_close(listening);
    snprintf(command, sizeof(command), "rm -rf %s", spool_path);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_answered_in_any_order),
        cmocka_unit_test(a_question_may_be_as_big_as_a_frame),
        cmocka_unit_test(the_channel_reconnects_to_a_restarted_server),
        cmocka_unit_test(the_channel_leaves_a_peer_that_is_not_a_rep),
        cmocka_unit_test(hostile_replies_end_only_the_connection),
        cmocka_unit_test(incomplete_and_late_replies_do_no_harm),
        cmocka_unit_test(a_peer_that_does_not_greet_is_given_up),
        cmocka_unit_test(an_uplink_without_threads_delivers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
