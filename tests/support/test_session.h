/* A session for tests: a frame writer over a spool in a temporary directory, whose frames can be
 * read back. Failures end the test. */
#ifndef SJ_TESTS_SUPPORT_TEST_SESSION_H
#define SJ_TESTS_SUPPORT_TEST_SESSION_H

#include "agent/assembler/assembler.h"
#include "agent/session/frame_writer.h"
#include "proto/wire/frame.h"

enum { TEST_FRAMES_MAX = 256 };

typedef struct test_session {
    char directory[64]; /* a runtime directory; the spool is in it */
    char spool_directory[80];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_frame_view frames[TEST_FRAMES_MAX];
    uint8_t *bytes[TEST_FRAMES_MAX];
    size_t count;
} test_session;

/* test_session_open makes an empty session; `max_bytes` as in sj_frame_writer_options. */
test_session *test_session_open(uint64_t max_bytes);
void test_session_close(test_session *session); /* removes the directory */

/* test_session_read reads everything that was sent; returns the number of frames of `type`. */
size_t test_session_read(test_session *session, sj_frame_type type);

/* test_session_message unpacks the header of the frame number `index` (from 0) of `type`, of those
 * that were read last; free it with protobuf_c_message_free_unpacked. */
void *test_session_message(test_session *session, sj_frame_type type, size_t index,
                           const ProtobufCMessageDescriptor *descriptor);

/* test_blocks makes a block of `count` calls of function 1, each of 10 ticks, beginning at
 * `ticks`, and gives it to `sink`, whose status the assembler counts. */
void test_blocks(uint64_t ticks, unsigned count, void *context,
                 sj_status (*sink)(void *context, const sj_block_header *header, sj_slice bytes));

#endif
