/* The wire of a REQ peer: complete messages from any pieces, memory only as bytes arrive, and an
 * end for all other peers. */
#include "collector-server/edge/sp_peer.h"
#include "tests/support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint8_t greeting[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
static const sj_sp_limits limits = {.message_bytes = 1 << 20, .kept_bytes = 1 << 20};
static const sj_sp_limits strict = {.message_bytes = 1 << 20, .kept_bytes = 1000};

typedef struct fixture {
    sj_sp_peer peer;
    sj_byte_account account;
    uint8_t bytes[1 << 18];
    size_t size;
} fixture;

static fixture *test;

static int set_up(void **state)
{
    test = calloc(1, sizeof(*test));
    test->account.limit = 1 << 20;
    *state = test;
    return test == NULL;
}

static int tear_down(void **state)
{
    sj_sp_peer_discard(&test->peer, &test->account);
    const size_t left = test->account.used;
    free(*state);
    return left != 0;
}

static void add(const void *bytes, size_t size)
{
    memcpy(test->bytes + test->size, bytes, size);
    test->size += size;
}

static void add_message(bool is_ipc, size_t body_bytes, uint8_t fill)
{
    uint8_t head[13] = {1};
    const uint64_t rest = body_bytes + 4;
    for (int i = 0; i < 8; i++) {
        head[1 + i] = (uint8_t)(rest >> (56 - 8 * i));
    }
    head[9] = 0x80;
    head[12] = fill;
    add(head + !is_ipc, sizeof(head) - !is_ipc);
    memset(test->bytes + test->size, fill, body_bytes);
    test->size += body_bytes;
}

static sj_sp_result feed(const sj_sp_limits *by, sj_slice *bytes)
{
    return sj_sp_peer_feed(&test->peer, by, &test->account, false, bytes);
}

static sj_sp_result feed_all(const sj_sp_limits *by)
{
    sj_slice bytes = {.data = test->bytes, .size = test->size};
    return feed(by, &bytes);
}

/* Reads the complete message and checks it. */
static void check_message(size_t body_bytes, uint8_t fill)
{
    sj_sp_whole whole;
    assert_int_equal(sj_sp_peer_pop(&test->peer, &whole), SJ_OK);
    assert_int_equal(whole.body.size, body_bytes);
    for (size_t i = 0; i < body_bytes; i++) {
        assert_int_equal(whole.body.data[i], fill);
    }
    assert_int_equal(whole.memory[3], fill);
    test->account.used -= whole.charged;
    free(whole.memory);
}

static void check_in_pieces(bool is_ipc, size_t piece)
{
    static const size_t sizes[] = {0, 5, 20000, 1, 70000};
    unsigned count = 0;
    test->peer.is_ipc = is_ipc;
    test->size = 0;
    add(greeting, sizeof(greeting));
    for (unsigned i = 0; i < 5; i++) {
        add_message(is_ipc, sizes[i], (uint8_t)(i + 1));
    }
    for (size_t at = 0; at < test->size;) {
        const size_t part = test->size - at < piece ? test->size - at : piece;
        sj_slice bytes = {.data = test->bytes + at, .size = part};
        while (bytes.size > 0) {
            const sj_sp_result result = feed(&limits, &bytes);
            assert_true(result == SJ_SP_MORE || result == SJ_SP_MESSAGE);
            if (result == SJ_SP_MESSAGE) {
                check_message(sizes[count], (uint8_t)(count + 1));
                count++;
            }
        }
        at += part;
    }
    assert_int_equal(count, 5);
    assert_int_equal(test->account.used, 0);
    test->peer = (sj_sp_peer){0};
}

static void messages_are_whole_in_whatever_pieces_they_come(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 13, 4096, 1 << 18};
    for (unsigned i = 0; i < 5; i++) {
        check_in_pieces(false, pieces[i]);
        check_in_pieces(true, pieces[i]);
    }
}

static void memory_grows_with_bytes_that_came_not_with_those_announced(void **state)
{
    (void)state;
    add(greeting, sizeof(greeting));
    add_message(false, 200000, 1);
    sj_slice bytes = {.data = test->bytes, .size = 100};
    assert_int_equal(feed(&limits, &bytes), SJ_SP_MORE);
    assert_true(test->account.used <= 16 << 10);
    assert_int_equal(test->account.used, test->peer.capacity);
}

static void a_long_message_may_be_read_into_its_buffer(void **state)
{
    (void)state;
    sj_sp_result result = SJ_SP_MORE;
    add(greeting, sizeof(greeting));
    add_message(false, 100000, 9);
    const uint8_t *from = test->bytes + 8 + 8;
    size_t left = 100004;
    sj_slice bytes = {.data = test->bytes, .size = 16};
    assert_int_equal(feed(&limits, &bytes), SJ_SP_MORE);
    while (left > 0 && result == SJ_SP_MORE) {
        size_t capacity = 0;
        uint8_t *place = sj_sp_peer_reserve(&test->peer, &test->account, false, &capacity, &result);
        assert_int_equal(result, SJ_SP_MORE);
        const size_t part = place == NULL ? left : capacity < left ? capacity : left;
        if (place == NULL) { /* the last part of it */
            bytes = (sj_slice){.data = from, .size = part};
            result = feed(&limits, &bytes);
        } else {
            memcpy(place, from, part);
            result = sj_sp_peer_commit(&test->peer, part);
        }
        from += part;
        left -= part;
    }
    assert_int_equal(result, SJ_SP_MESSAGE);
    check_message(100000, 9);
}

static void a_strangers_long_message_keeps_only_its_return_path(void **state)
{
    (void)state;
    sj_sp_whole whole;
    add(greeting, sizeof(greeting));
    add_message(false, 50000, 7);
    assert_int_equal(feed_all(&strict), SJ_SP_MESSAGE);
    assert_true(test->account.used <= SJ_SP_CUT_BYTES);
    assert_int_equal(sj_sp_peer_pop(&test->peer, &whole), SJ_OK);
    assert_true(whole.is_cut);
    assert_int_equal(whole.body.size, 0);
    assert_int_equal(whole.way_back_bytes, 4);
    test->account.used -= whole.charged;
    free(whole.memory);
    test->size = 0;
    add_message(false, 10, 3);
    assert_int_equal(feed_all(&strict), SJ_SP_MESSAGE);
    check_message(10, 3);
}

static void a_full_byte_account_stops_all_but_one_message(void **state)
{
    (void)state;
    test->account.limit = 30000;
    add(greeting, sizeof(greeting));
    add_message(false, 200000, 2);
    sj_slice bytes = {.data = test->bytes, .size = test->size};
    assert_int_equal(feed(&limits, &bytes), SJ_SP_NO_SPACE);
    assert_true(test->account.used <= test->account.limit);
    assert_true(bytes.size > 0);
    assert_int_equal(sj_sp_peer_feed(&test->peer, &limits, &test->account, true, &bytes),
                     SJ_SP_MESSAGE);
    check_message(200000, 2);
}

static void a_peer_that_is_not_a_req_is_disconnected(void **state)
{
    (void)state;
    static const uint8_t wrong[][17] = {
        {0, 'S', 'P', 0, 0, 0x31, 0, 0},                            /* a REP */
        {0, 'S', 'P', 1, 0, 0x30, 0, 0},                            /* another version */
        {'G', 'E', 'T', ' ', '/'},                                  /* HTTP */
        {0, 'S', 'P', 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0}, /* no space for a return path */
        {0, 'S', 'P', 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 1, 0}, /* 1 MB and one byte */
        {0, 'S', 'P', 0, 0, 0x30, 0, 0, 0xff, 255, 255, 255, 255, 255, 255, 255}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        test->peer = (sj_sp_peer){0};
        sj_slice bytes = {.data = wrong[i], .size = sizeof(wrong[i])};
        assert_int_equal(feed(&limits, &bytes), SJ_SP_BROKEN);
        assert_int_equal(test->account.used, 0);
    }
}

static void an_endless_return_path_is_corrupt(void **state)
{
    (void)state;
    uint8_t rest[60] = {0};
    const uint8_t length[8] = {0, 0, 0, 0, 0, 0, 0, sizeof(rest)};
    sj_sp_whole whole;
    add(greeting, sizeof(greeting));
    add(length, sizeof(length));
    rest[36] = 0x80; /* the tenth word: one more than allowed */
    add(rest, sizeof(rest));
    assert_int_equal(feed_all(&limits), SJ_SP_MESSAGE);
    assert_int_equal(sj_sp_peer_pop(&test->peer, &whole), SJ_ECORRUPT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(messages_are_whole_in_whatever_pieces_they_come),
        CASE(memory_grows_with_bytes_that_came_not_with_those_announced),
        CASE(a_long_message_may_be_read_into_its_buffer),
        CASE(a_strangers_long_message_keeps_only_its_return_path),
        CASE(a_full_byte_account_stops_all_but_one_message),
        CASE(a_peer_that_is_not_a_req_is_disconnected),
        CASE(an_endless_return_path_is_corrupt),
    };
    return cmocka_run_group_tests_name("edge.sp_peer", tests, NULL, NULL);
}
