/* The frame writer: turns what the recorder knows into frames and appends them to the session's
 * spool.
 *
 * Metadata frames (everything but blocks) are never lost: while the spool is full they wait in
 * memory and go first when there is room. Blocks are refused when the spool is full or the
 * recording has reached its size; the assembler counts them as gaps. Any thread. */
#ifndef SJ_AGENT_SESSION_FRAME_WRITER_H
#define SJ_AGENT_SESSION_FRAME_WRITER_H

#include "agent/session/function_log.h"
#include "agent/session/journal.h"
#include "agent/session/metadata_store.h"
#include "agent/uplink/spool.h"
#include "agent/uplink/uplink.h"
#include "proto/block/block.h"
#include "proto/wire/sojourn.pb-c.h"

typedef struct sj_frame_writer sj_frame_writer;

typedef struct sj_frame_writer_options {
    sj_session_id session;
    sj_spool *spool;                  /* borrowed */
    sj_uplink *uplink;                /* borrowed; woken after each frame; NULL: none */
    const sj_journal *journal;        /* borrowed; NULL: none */
    sj_metadata_store *control_store; /* what child sessions need, while threads are kept, is kept
                                        here, too; borrowed; NULL: in memory only */
    sj_function_log *function_log;    /* gets names and blocks; borrowed; NULL: none */
    uint64_t max_bytes;               /* block bytes of the whole session at most; 0: no limit */
} sj_frame_writer_options;

/* Sums over the frames that were appended. */
typedef struct sj_frame_writer_counters {
    uint64_t frames;
    uint64_t bytes; /* of all frames */
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t block_calls;
    uint64_t block_events;
    uint64_t block_lost_calls; /* reported by the gaps inside of blocks */
    uint64_t block_lost_events;
    uint64_t refused_blocks;
    uint64_t refused_calls;
    uint64_t refused_reports;
    uint64_t gap_calls; /* reported by Gap frames */
    uint64_t gap_events;
    uint64_t waiting_frames; /* metadata frames that wait for room in the spool */
    bool reached_max_bytes;
} sj_frame_writer_counters;

SJ_MUST_CHECK sj_status sj_frame_writer_new(const sj_frame_writer_options *options,
                                            sj_frame_writer **writer);
/* sj_frame_writer_resume goes on where a killed recorder's journal says that it stopped; before the
 * first frame. */
void sj_frame_writer_resume(sj_frame_writer *writer);

/* sj_frame_writer_resumed_blocks is how many blocks of the session were in the spool then; 0: there
 * was no recorder before. Any thread. */
uint64_t sj_frame_writer_resumed_blocks(const sj_frame_writer *writer);

/* sj_frame_writer_next_block is the number of the block that is appended next, from 1. For the only
 * thread that appends blocks. */
uint64_t sj_frame_writer_next_block(sj_frame_writer *writer);
void sj_frame_writer_free(sj_frame_writer *writer);

/* sj_frame_writer_send appends a metadata frame with `message` as header. Messages are packed at
 * once; nothing is kept. SJ_ENOMEM, SJ_ELIMIT (the message is too long), SJ_EIO. */
SJ_MUST_CHECK sj_status sj_frame_writer_send(sj_frame_writer *writer, sj_frame_type type,
                                             const ProtobufCMessage *message, sj_slice payload);

/* sj_frame_writer_block appends a block. SJ_EFULL: refused. */
SJ_MUST_CHECK sj_status sj_frame_writer_block(sj_frame_writer *writer,
                                              const sj_block_header *header, sj_slice bytes);

/* sj_frame_writer_gap reports a loss that lies in no block; `thread` and `stream` 0: not known. */
SJ_MUST_CHECK sj_status sj_frame_writer_gap(sj_frame_writer *writer, sj_gap_reason reason,
                                            uint64_t thread, uint32_t stream, uint64_t calls,
                                            uint64_t events, uint64_t start_ticks,
                                            uint64_t end_ticks);

/* What a profile adds up to. */
typedef struct sj_profile_sums {
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t calls;
    uint64_t events;
    uint32_t raw_bytes; /* of the payload before zstd */
} sj_profile_sums;

/* sj_frame_writer_profile sends sums per call path and numbers them; counted like blocks. */
SJ_MUST_CHECK sj_status sj_frame_writer_profile(sj_frame_writer *writer,
                                                const sj_profile_sums *sums, sj_slice payload);

/* sj_frame_writer_mark reports a mark and numbers it; `thread` 0: given from outside. `source` is
 * "app", "cli" or "http". */
SJ_MUST_CHECK sj_status sj_frame_writer_mark(sj_frame_writer *writer, const char *name, bool end,
                                             uint64_t ticks, uint64_t thread, const char *source);

/* What a monitor found; texts are borrowed. */
typedef struct sj_report {
    uint64_t ticks;
    uint64_t process;    /* 0: none in particular */
    uint64_t thread;     /* 0: none */
    const char *monitor; /* 1 to SJ_REPORT_NAME_BYTES of A-Z a-z 0-9 _ - . */
    const char *kind;    /* likewise */
    const char *json;    /* an object; the collector refuses a frame whose payload is not one */
    size_t json_bytes;   /* at most SJ_REPORT_MAX_BYTES */
} sj_report;

/* sj_frame_writer_report sends a monitor's finding and numbers it. SJ_ELIMIT: the payload is longer
 * than SJ_REPORT_MAX_BYTES; SJ_EINVAL: a name is empty or too long; SJ_EFULL: the spool is full,
 * the report is dropped and counted (refused_reports; its number is missing in the store); SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_frame_writer_report(sj_frame_writer *writer, const sj_report *report);

/* sj_frame_writer_remember keeps a metadata frame for child sessions that another recorder sent. */
SJ_MUST_CHECK sj_status sj_frame_writer_remember(sj_frame_writer *writer, sj_frame_type type,
                                                 sj_slice header, sj_slice payload);

/* sj_frame_writer_keep_threads makes the frame writer keep the frames of threads, which child
 * sessions need; those that were sent before have to be sent again. What else child sessions need
 * is always kept: as much as the registry keeps. Off: it drops them. */
void sj_frame_writer_keep_threads(sj_frame_writer *writer, bool on);

/* Child sessions of a session whose writer keeps the frames of threads. _begin sends what is known
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

SJ_MUST_CHECK sj_status sj_frame_writer_child_begin(sj_frame_writer *writer,
                                                    const sj_session_id *child, const char *cause);
SJ_MUST_CHECK sj_status sj_frame_writer_child_block(sj_frame_writer *writer,
                                                    const sj_session_id *child,
                                                    const sj_block_header *header, sj_slice bytes,
                                                    sj_child_sums *sums);
SJ_MUST_CHECK sj_status sj_frame_writer_child_end(sj_frame_writer *writer,
                                                  const sj_session_id *child,
                                                  const sj_child_sums *sums);

/* sj_frame_writer_trigger reports a trigger that fired; identity and session are filled in. */
SJ_MUST_CHECK sj_status sj_frame_writer_trigger(sj_frame_writer *writer, Sojourn__Trigger *trigger);

/* sj_frame_writer_filtered adds to the counts of calls that were not kept; likewise. */
SJ_MUST_CHECK sj_status sj_frame_writer_filtered(sj_frame_writer *writer,
                                                 Sojourn__Filtered *filtered);

/* sj_frame_writer_retry appends waiting metadata frames; returns how many still wait. */
size_t sj_frame_writer_retry(sj_frame_writer *writer);

void sj_frame_writer_get_counters(sj_frame_writer *writer, sj_frame_writer_counters *counters);
/* sj_frame_writer_function_log is the log that it was made with; NULL: none. */
sj_function_log *sj_frame_writer_function_log(const sj_frame_writer *writer);

const sj_session_id *sj_frame_writer_session(const sj_frame_writer *writer);

/* sj_frame_writer_bytes is a protobuf-c bytes field that borrows the session id. */
ProtobufCBinaryData sj_frame_writer_session_bytes(const sj_frame_writer *writer);

#endif
