/* Tests the bytes of the SP protocols, and the parsing of addresses. */
#include "agent/uplink/sp_address.h"
#include "agent/uplink/sp_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint8_t greeting[SJ_SP_GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

static void feed(sj_sp_reader *reader, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size != 0) {
        size_t space_bytes;
        uint8_t *space = sj_sp_reader_space(reader, &space_bytes);
        const size_t part = size < space_bytes ? size : space_bytes;
        assert_int_not_equal(part, 0);
        memcpy(space, from, part);
        sj_sp_reader_fed(reader, part);
        from += part;
        size -= part;
    }
}

/* Writes a reply as a REP does. Returns its length. */
static size_t write_reply(bool is_ipc, uint32_t request, const char *body, uint8_t *output)
{
    const size_t size = sj_sp_header(is_ipc, request, strlen(body), output);
    memcpy(output + size, body, strlen(body));
    return size + strlen(body);
}

static void replies_may_arrive_in_any_pieces(void **state)
{
    (void)state;
    for (int is_ipc = 0; is_ipc < 2; ++is_ipc) {
        uint8_t bytes[256];
        memcpy(bytes, greeting, sizeof(greeting));
        size_t size = sizeof(greeting);
        size += write_reply(is_ipc, 0x80000001, "first", bytes + size);
        size += write_reply(is_ipc, 0xffffffff, "", bytes + size);
        for (size_t piece = 1; piece <= size; ++piece) {
            sj_sp_reader *reader = calloc(1, sizeof(*reader));
            sj_sp_message messages[2] = {{0}};
            unsigned count = 0;
            reader->is_ipc = is_ipc;
            for (size_t at = 0; at < size; at += piece) {
                sj_status status;
                feed(reader, bytes + at, size - at < piece ? size - at : piece);
                while ((status = sj_sp_reader_next(reader, &messages[count & 1])) == SJ_OK) {
                    if (count == 0) {
                        assert_int_equal(messages[0].request, 0x80000001);
                        assert_int_equal(messages[0].body.size, 5);
                        assert_memory_equal(messages[0].body.data, "first", 5);
                    }
                    count++;
                }
                assert_int_equal(status, SJ_EAGAIN);
            }
            assert_int_equal(count, 2);
            assert_int_equal(messages[1].request, 0xffffffff);
            assert_int_equal(messages[1].body.size, 0);
            free(reader);
        }
    }
}

static void the_longest_answer_fits(void **state)
{
    (void)state;
    enum { BYTES = SJ_SP_BODY_MAX_BYTES };
    sj_sp_reader *reader = calloc(1, sizeof(*reader));
    uint8_t *body = malloc(BYTES);
    uint8_t header[SJ_SP_HEADER_MAX_BYTES];
    memset(body, 7, BYTES);
    reader->is_ipc = true;
    feed(reader, greeting, sizeof(greeting));
    for (int round = 0; round < 3; ++round) {
        sj_sp_message message;
        feed(reader, header, sj_sp_header(true, 0x80000000, BYTES, header));
        assert_int_equal(sj_sp_reader_next(reader, &message), SJ_EAGAIN);
        feed(reader, body, BYTES);
        assert_int_equal(sj_sp_reader_next(reader, &message), SJ_OK);
        assert_int_equal(message.body.size, BYTES);
        assert_memory_equal(message.body.data, body, BYTES);
    }
    free(body);
    free(reader);
}

static void malformed_and_foreign_bytes_are_refused(void **state)
{
    (void)state;
    static const struct {
        bool is_ipc;
        bool is_greeted;
        const char *bytes;
        size_t size;
        sj_status status;
    } cases[] = {
        {false, false, "HTTP/1.1 400", 12, SJ_EUNSUPPORTED},
        /* A REQ, perhaps this process itself. */
        {false, false, "\0SP\0\0\x30\0\0", 8, SJ_EUNSUPPORTED},
        {false, false, "\0SP\0\0\x31\0\1", 8, SJ_EUNSUPPORTED},
        {false, false, "\0SPX", 4, SJ_EUNSUPPORTED}, /* Refused at the first wrong byte. */
        {false, false, "\0SP", 3, SJ_EAGAIN},
        {false, true, "\0\0\0\0\0\0\0\3", 8, SJ_ECORRUPT},
        {false, true, "\0\0\0\0\0\1\0\5", 8, SJ_ELIMIT},
        {false, true, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, SJ_ELIMIT},
        {false, true, "\0\0\0\0\0\0\0\4\0\0\0\1", 12, SJ_ECORRUPT}, /* Not a request id. */
        {true, true, "\2", 1, SJ_ECORRUPT},
        {true, true, "\1\0\0\0\0\0\0\0\3", 9, SJ_ECORRUPT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sj_sp_reader *reader = calloc(1, sizeof(*reader));
        sj_sp_message message;
        reader->is_ipc = cases[i].is_ipc;
        if (cases[i].is_greeted) {
            feed(reader, greeting, sizeof(greeting));
        }
        feed(reader, cases[i].bytes, cases[i].size);
        assert_int_equal(sj_sp_reader_next(reader, &message), cases[i].status);
        free(reader);
    }
}

static void only_this_machine_has_addresses(void **state)
{
    (void)state;
    static const char *const good[] = {"tcp://127.0.0.1:1",    "tcp://127.9.8.7:65535",
                                       "tcp://localhost:7654", "tcp://[::1]:7654",
                                       "ipc:///run/lab.ipc",   "ipc://lab.ipc"};
    static const char *const bad[] = {"",
                                      "tcp://",
                                      "tcp://127.0.0.1",
                                      "tcp://127.0.0.1:",
                                      "tcp://127.0.0.1:0",
                                      "tcp://127.0.0.1:65536",
                                      "tcp://127.0.0.1:7x",
                                      "tcp://127.0.0.1:-1",
                                      "tcp://10.0.0.1:7654",
                                      "tcp://0.0.0.0:7654",
                                      "tcp://128.0.0.1:7654",
                                      "tcp://lab:7654",
                                      "tcp://localhost.evil.example:7654",
                                      "tcp://::1:7654",
                                      "tcp://[::2]:7654",
                                      "tcp://[::ffff:10.0.0.1]:7654",
                                      "tls+tcp://127.0.0.1:7654",
                                      "ws://127.0.0.1:7654",
                                      "ipc://"};
    sj_sp_address address;
    sj_error error;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        assert_int_equal(sj_sp_address_read(good[i], &address, &error), SJ_OK);
        assert_int_equal(address.is_ipc, good[i][0] == 'i');
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        error.text[0] = '\0';
        assert_int_equal(sj_sp_address_read(bad[i], &address, &error), SJ_EINVAL);
        assert_int_not_equal(error.text[0], '\0');
    }
    char long_path[300] = "ipc:///";
    memset(long_path + 7, 'a', sizeof(long_path) - 8);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(sj_sp_address_read(long_path, &address, &error), SJ_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_may_arrive_in_any_pieces),
        cmocka_unit_test(the_longest_answer_fits),
        cmocka_unit_test(malformed_and_foreign_bytes_are_refused),
        cmocka_unit_test(only_this_machine_has_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
