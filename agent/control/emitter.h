/* The emitter: turns what the recorder knows into frames and appends them to the session's spool.
 *
 * Control frames (everything but blocks) are never lost: while the spool is full they wait in
 * memory and go first when there is room. Blocks are refused when the spool is full or the
 * recording has reached its size; the assembler counts them as gaps. Any thread. */
#ifndef SJ_AGENT_CONTROL_EMITTER_H
#define SJ_AGENT_CONTROL_EMITTER_H

#include "agent/control/control_store.h"
#include "agent/control/journal.h"
#include "agent/uplink/spool.h"
#include "agent/uplink/uplink.h"
#include "proto/block.h"
#include "proto/sojourn.pb-c.h"

typedef struct sj_emitter sj_emitter;

typedef struct sj_emitter_options {
    sj_session_id session;
    sj_spool *spool;                 /* borrowed */
    sj_uplink *uplink;               /* borrowed; woken after each frame; NULL: none */
    const sj_journal *journal;       /* borrowed; NULL: none */
    sj_control_store *control_store; /* what child sessions need, while threads are kept, is kept
                                        here, too; borrowed; NULL: in memory only */
    uint64_t max_bytes;              /* block bytes of the whole session at most; 0: no limit */
} sj_emitter_options;

/* Sums over the frames that were appended. */
typedef struct sj_emitter_counters {
    uint64_t frames;
    uint64_t bytes; /* of all frames */
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t block_calls;
    uint64_t block_events;
    uint64_t block_lost_calls; /* told by the gaps inside of blocks */
    uint64_t block_lost_events;
    uint64_t refused_blocks;
    uint64_t refused_calls;
    uint64_t gap_calls; /* told by Gap frames */
    uint64_t gap_events;
    uint64_t waiting_frames; /* control frames that wait for room in the spool */
    bool reached_max_bytes;
} sj_emitter_counters;

SJ_MUST_CHECK sj_status sj_emitter_new(const sj_emitter_options *options, sj_emitter **emitter);
/* sj_emitter_resume goes on where a killed recorder's journal says that it stopped; before the
 * first frame. */
void sj_emitter_resume(sj_emitter *emitter);
void sj_emitter_free(sj_emitter *emitter);

/* sj_emitter_send appends a control frame with `message` as header. Messages are packed at once;
 * nothing is kept. SJ_ENOMEM, SJ_ELIMIT (the message is too long), SJ_EIO. */
SJ_MUST_CHECK sj_status sj_emitter_send(sj_emitter *emitter, sj_frame_type type,
                                        const ProtobufCMessage *message, sj_slice payload);

/* sj_emitter_block appends a block. SJ_EFULL: refused. */
SJ_MUST_CHECK sj_status sj_emitter_block(sj_emitter *emitter, const sj_block_header *header,
                                         sj_slice bytes);

/* sj_emitter_gap reports a loss that lies in no block; `thread` and `stream` 0: not known. */
SJ_MUST_CHECK sj_status sj_emitter_gap(sj_emitter *emitter, sj_gap_reason reason, uint64_t thread,
                                       uint32_t stream, uint64_t calls, uint64_t events,
                                       uint64_t start_ticks, uint64_t end_ticks);

/* What a profile adds up to. */
typedef struct sj_profile_sums {
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t calls;
    uint64_t events;
    uint32_t raw_bytes; /* of the payload before zstd */
} sj_profile_sums;

/* sj_emitter_profile sends sums per call path and numbers them; counted like blocks. */
SJ_MUST_CHECK sj_status sj_emitter_profile(sj_emitter *emitter, const sj_profile_sums *sums,
                                           sj_slice payload);

/* sj_emitter_mark reports a mark and numbers it; `thread` 0: given from outside. `source` is "app",
 * "cli" or "http". */
SJ_MUST_CHECK sj_status sj_emitter_mark(sj_emitter *emitter, const char *name, bool end,
                                        uint64_t ticks, uint64_t thread, const char *source);

/* sj_emitter_remember keeps a control frame for child sessions that another recorder sent. */
SJ_MUST_CHECK sj_status sj_emitter_remember(sj_emitter *emitter, sj_frame_type type,
                                            sj_slice header, sj_slice payload);

/* sj_emitter_keep_threads makes the emitter keep the frames of threads, which child sessions need;
 * those that were sent before have to be sent again. What else child sessions need is always kept:
 * as much as the roster keeps. Off: it drops them. */
void sj_emitter_keep_threads(sj_emitter *emitter, bool on);

/* Child sessions of a session whose emitter keeps the frames of threads. _begin sends what is known
 * of the parent under the child's id; _block one block, whose bytes carry that id already; _end its
 * sums.
 */
typedef struct sj_child_sums {
    uint64_t ended_ticks;
    uint64_t blocks;
    uint64_t calls;
    uint64_t lost_calls;
    uint64_t lost_events;
} sj_child_sums;

SJ_MUST_CHECK sj_status sj_emitter_child_begin(sj_emitter *emitter, const sj_session_id *child,
                                               const char *cause);
SJ_MUST_CHECK sj_status sj_emitter_child_block(sj_emitter *emitter, const sj_session_id *child,
                                               const sj_block_header *header, sj_slice bytes,
                                               sj_child_sums *sums);
SJ_MUST_CHECK sj_status sj_emitter_child_end(sj_emitter *emitter, const sj_session_id *child,
                                             const sj_child_sums *sums);

/* sj_emitter_trigger reports a trigger that fired; identity and session are filled in. */
SJ_MUST_CHECK sj_status sj_emitter_trigger(sj_emitter *emitter, Sojourn__Trigger *trigger);

/* sj_emitter_filtered adds to the counts of calls that were not kept; likewise. */
SJ_MUST_CHECK sj_status sj_emitter_filtered(sj_emitter *emitter, Sojourn__Filtered *filtered);

/* sj_emitter_retry appends waiting control frames; returns how many still wait. */
size_t sj_emitter_retry(sj_emitter *emitter);

void sj_emitter_get_counters(sj_emitter *emitter, sj_emitter_counters *counters);
const sj_session_id *sj_emitter_session(const sj_emitter *emitter);

/* sj_emitter_bytes is a protobuf-c bytes field that borrows the session id. */
ProtobufCBinaryData sj_emitter_session_bytes(const sj_emitter *emitter);

#endif
