/* Which frame types the store takes, and what applies each. A new type is one function in a file of
 * its subject and one line in SJ_FRAME_HANDLERS. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FRAME_HANDLERS_H
#define SJ_COLLECTOR_SERVER_STORE_FRAME_HANDLERS_H

#include "collector-server/store/store.h"

/* A frame whose header has been unpacked. */
typedef struct sj_frame_input {
    const void *message; /* the frame type's message; NULL: its header is not read */
    sj_slice payload;
    bool is_duplicate; /* out: it was stored before, nothing changed */
} sj_frame_input;

/* An sj_frame_apply stores one frame within the batch. SJ_ENOTFOUND: it names something that was
 * not sent yet; SJ_ECORRUPT: it contradicts itself; SJ_EIO, SJ_ENOMEM, SJ_EFULL end the batch. */
typedef sj_status sj_frame_apply(sj_store *store, sj_frame_input *frame, sj_error *error);

/* X(type, message): frames that run in a savepoint, as they write before all is checked. The
 * message names the protobuf descriptor and the function, sj_store_apply_<message>. */
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

/* sj_store_apply_block is the handler of BLOCK: checked in full before anything is written, so it
 * needs no savepoint; the block says all that its header says, so that is not unpacked. */
SJ_MUST_CHECK sj_frame_apply sj_store_apply_block;

#endif
