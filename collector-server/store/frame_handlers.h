/* The frame types that the store accepts, and their handlers. To add a type, write one function in
 * a file of its subject and one line in SJ_FRAME_HANDLERS. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FRAME_HANDLERS_H
#define SJ_COLLECTOR_SERVER_STORE_FRAME_HANDLERS_H

#include "collector-server/store/store.h"

/* A frame whose header has been unpacked. */
typedef struct sj_frame_input {
    const void *message; /* message of the frame type; NULL if its header is not read */
    sj_slice payload;
    /* Out: the frame was stored before, and nothing changed. */
    bool is_duplicate;
} sj_frame_input;

/* Stores one frame in the current batch. Returns SJ_ENOTFOUND if the frame names something that was
 * not sent yet, and SJ_ECORRUPT if it contradicts itself. SJ_EIO, SJ_ENOMEM and SJ_EFULL end the
 * batch. */
typedef sj_status sj_frame_apply(sj_store *store, sj_frame_input *frame, sj_error *error);

/* X(type, message): frames whose handlers run in a savepoint, because they write before all is
 * checked. `message` is part of the name of the protobuf descriptor, and of the name of the
 * handler, sj_store_apply_<message>. */
#define SJ_FRAME_HANDLERS(X)                                                                       \
    X(HELLO, hello)                                                                                \
    X(SESSION, session)                                                                            \
    X(PROCESS, process)                                                                            \
    X(MODULE, module)                                                                              \
    X(THREAD, thread)                                                                              \
    X(CLOCK, clock_pairs)                                                                          \
    X(MARK, mark)                                                                                  \
    X(GAP, gap)                                                                                    \
    X(SESSION_END, session_end)                                                                    \
    X(MAPPING, mapping)                                                                            \
    X(UNHOOKED, unhooked)                                                                          \
    X(DEVICE_CLOCK, device_clock)                                                                  \
    X(POLICY, policy)                                                                              \
    X(PROFILE, profile)                                                                            \
    X(DECISION, decision)                                                                          \
    X(TRIGGER, trigger)                                                                            \
    X(FILTERED, filtered)                                                                          \
    X(STACK, stack)                                                                                \
    X(REPORT, report)

#define SJ_DECLARE_HANDLER(type, message) SJ_MUST_CHECK sj_frame_apply sj_store_apply_##message;
SJ_FRAME_HANDLERS(SJ_DECLARE_HANDLER)
#undef SJ_DECLARE_HANDLER

/* Handles BLOCK frames. It checks everything before it writes, so it needs no savepoint. It does
 * not unpack the header, because the block repeats all that the header says. */
SJ_MUST_CHECK sj_frame_apply sj_store_apply_block;

#endif
