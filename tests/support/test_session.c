#include "tests/support/test_session.h"

#include "tests/support/check.h"

#include <stdlib.h>
#include <unistd.h>

enum { STACK = 0x7f0000 };

test_session *test_session_open(uint64_t max_bytes)
{
    test_session *session = calloc(1, sizeof(*session));
    sj_error error = {0};
    assert_non_null(session);
    snprintf(session->directory, sizeof(session->directory), "/tmp/sj_session_XXXXXX");
    assert_non_null(mkdtemp(session->directory));
    snprintf(session->spool_directory, sizeof(session->spool_directory), "%s/spool",
             session->directory);
    const sj_spool_options spool = {.directory = session->spool_directory, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool, &session->spool, &error), SJ_OK);
    const sj_frame_writer_options options = {
        .session = {.bytes = {1, 2, 3}}, .spool = session->spool, .max_bytes = max_bytes};
    assert_int_equal(sj_frame_writer_new(&options, &session->writer), SJ_OK);
    return session;
}

static void forget(test_session *session)
{
    for (size_t i = 0; i < session->count; i++) {
        free(session->bytes[i]);
    }
    session->count = 0;
}

void test_session_close(test_session *session)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", session->directory);
    forget(session);
    sj_frame_writer_free(session->writer);
    sj_spool_close(session->spool);
    assert_int_equal(system(command), 0);
    free(session);
}

size_t test_session_read(test_session *session, sj_frame_type type)
{
    sj_slice bytes;
    uint64_t position;
    size_t count = 0;
    forget(session);
    sj_spool_rewind(session->spool);
    while (sj_spool_next(session->spool, &bytes, &position) == SJ_OK) {
        assert_true(session->count < TEST_FRAMES_MAX);
        uint8_t *copy = malloc(bytes.size);
        assert_non_null(copy);
        memcpy(copy, bytes.data, bytes.size);
        session->bytes[session->count] = copy;
        sj_frame_view *frame = &session->frames[session->count++];
        assert_int_equal(sj_frame_read((sj_slice){.data = copy, .size = bytes.size}, frame), SJ_OK);
        count += frame->type == type;
    }
    return count;
}

void *test_session_message(test_session *session, sj_frame_type type, size_t index,
                           const ProtobufCMessageDescriptor *descriptor)
{
    for (size_t i = 0; i < session->count; i++) {
        const sj_frame_view *frame = &session->frames[i];
        if (frame->type == type && index-- == 0) {
            void *message =
                protobuf_c_message_unpack(descriptor, NULL, frame->header.size, frame->header.data);
            assert_non_null(message);
            return message;
        }
    }
    fail_msg("no such frame of type %d", (int)type);
    return NULL;
}

static uint32_t open_stream(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks)
{
    (void)context;
    (void)stack_address;
    (void)own_stack;
    (void)first_ticks;
    return 1;
}

static void write_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    (void)context;
    (void)mark_index;
    (void)end;
    (void)ticks;
}

static void put(sj_record *record, uint64_t ticks, sj_record_kind kind, uint32_t function)
{
    const uint64_t stack = STACK;
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    memcpy(record->bytes, &ticks, 6);
    memcpy(record->bytes + 6, &stack, 6);
    memcpy(record->bytes + 12, &tag, sizeof(tag));
}

void test_blocks(uint64_t ticks, unsigned count, void *context,
                 sj_status (*sink)(void *context, const sj_block_header *header, sj_slice bytes))
{
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    assert_int_equal(sj_block_encoder_new(&encoder), SJ_OK);
    const sj_assembler_options options = {
        .session = {.bytes = {1, 2, 3}}, .start_ticks = ticks, .encoder = encoder};
    const sj_assembler_sink target = {
        .context = context, .open_stream = open_stream, .block = sink, .mark = write_mark};
    assert_int_equal(sj_assembler_new(&options, &target, &assembler), SJ_OK);
    for (unsigned i = 0; i < count; i++) {
        sj_record call[2];
        put(&call[0], ticks, SJ_RECORD_ENTER, 1);
        put(&call[1], ticks + 10, SJ_RECORD_LEAVE, 1);
        assert_int_equal(sj_assembler_feed(assembler, call, 2, ticks + 10), SJ_OK);
        ticks += 20;
    }
    assert_int_equal(sj_assembler_end(assembler, ticks, true, 0), SJ_OK);
    sj_assembler_free(assembler);
    sj_block_encoder_free(encoder);
}
