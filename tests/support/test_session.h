/* A session for tests: a frame writer over a spool in a temporary directory. Tests can read its
 * frames back. Failures abort the test. */
#ifndef SJ_TESTS_SUPPORT_TEST_SESSION_H
#define SJ_TESTS_SUPPORT_TEST_SESSION_H

#include "agent/assembler/assembler.h"
#include "agent/session/frame_writer.h"
#include "proto/wire/frame.h"

enum { TEST_FRAMES_MAX = 256 };

typedef struct test_session {
    char directory[64]; /* a runtime directory, which holds the spool */
    char spool_directory[80];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_frame_view frames[TEST_FRAMES_MAX];
    uint8_t *bytes[TEST_FRAMES_MAX];
    size_t count;
} test_session;

/* Creates an empty session. `max_bytes` is as in sj_frame_writer_options. */
test_session *test_session_open(uint64_t max_bytes);
void test_session_close(test_session *session); /* also removes the directory */

/* Reads all frames that were sent. Returns the number of frames of `type`. */
size_t test_session_read(test_session *session, sj_frame_type type);

/* Unpacks the header of a frame that was read last: number `index` (from 0) of the frames of
 * `type`. Free it with protobuf_c_message_free_unpacked. */
void *test_session_message(test_session *session, sj_frame_type type, size_t index,
                           const ProtobufCMessageDescriptor *descriptor);

/* Makes a block with `count` calls of function 1 and gives it to `sink`. Each call takes 10 ticks;
 * the first begins at `ticks`. The assembler counts the status of `sink`. */
void test_blocks(uint64_t ticks, unsigned count, void *context,
                 sj_status (*sink)(void *context, const sj_block_header *header, sj_slice bytes));

#endif
