/* Frame writer: encodes the recorder's data as frames and appends them to the session's spool.
 *
 * Metadata frames (all except blocks) are never lost: while the spool is full they wait in memory,
 * and they go first when there is space. Blocks are refused if the spool is full, or if the
 * recording has reached its size; the assembler counts them as gaps. Thread-safe. */
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
    sj_spool *spool;           /* borrowed */
    sj_uplink *uplink;         /* borrowed; woken after each frame; NULL: none */
    const sj_journal *journal; /* borrowed; NULL: none */
    /* metadata that child sessions need is also stored here while threads are kept; borrowed; NULL:
     * only in memory */
    sj_metadata_store *control_store;
    sj_function_log *function_log; /* gets names and blocks; borrowed; NULL: none */
    uint64_t max_bytes;            /* limit of the session's block bytes; 0: none */
    unsigned redaction;            /* bits of what frames leave out (agent/policy/redaction.h) */
} sj_frame_writer_options;

/* Sums over all appended frames. */
typedef struct sj_frame_writer_counters {
    uint64_t frames;
    uint64_t bytes; /* of all frames */
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t block_calls;
    uint64_t block_events;
    uint64_t block_lost_calls; /* as the gaps inside blocks report */
    uint64_t block_lost_events;
    uint64_t refused_blocks;
    uint64_t refused_calls;
    uint64_t refused_reports;
    uint64_t gap_calls; /* as Gap frames report */
    uint64_t gap_events;
    uint64_t waiting_frames; /* metadata frames that wait for space in the spool */
    bool reached_max_bytes;
} sj_frame_writer_counters;

SJ_MUST_CHECK sj_status sj_frame_writer_new(const sj_frame_writer_options *options,
                                            sj_frame_writer **writer);
/* Continues where a killed recorder stopped, by its journal. Call it before the first frame. */
void sj_frame_writer_resume(sj_frame_writer *writer);

/* Returns the number of the session's blocks that were in the spool then; 0: there was no recorder
 * before. Thread-safe. */
uint64_t sj_frame_writer_resumed_blocks(const sj_frame_writer *writer);

/* Returns the number of the next block, from 1. Only for the thread that appends blocks. */
uint64_t sj_frame_writer_next_block(sj_frame_writer *writer);
void sj_frame_writer_free(sj_frame_writer *writer);

/* Appends a metadata frame with `message` as header, without what the session redacts. Packs the
 * message at once and keeps nothing.
 * Returns SJ_ENOMEM, SJ_ELIMIT if the message is too long, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_frame_writer_send(sj_frame_writer *writer, sj_frame_type type,
                                             const ProtobufCMessage *message, sj_slice payload);

/* Appends a block. Returns SJ_EFULL if it is refused. */
SJ_MUST_CHECK sj_status sj_frame_writer_block(sj_frame_writer *writer,
                                              const sj_block_header *header, sj_slice bytes);

/* Reports a loss outside of blocks; `thread` and `stream` 0: not known. */
SJ_MUST_CHECK sj_status sj_frame_writer_gap(sj_frame_writer *writer, sj_gap_reason reason,
                                            uint64_t thread, uint32_t stream, uint64_t calls,
                                            uint64_t events, uint64_t start_ticks,
                                            uint64_t end_ticks);

/* Totals of a profile. */
typedef struct sj_profile_sums {
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t calls;
    uint64_t events;
    uint32_t raw_bytes; /* size of the payload before compression */
} sj_profile_sums;

/* Sends sums per call path and numbers them; counted like blocks. */
SJ_MUST_CHECK sj_status sj_frame_writer_profile(sj_frame_writer *writer,
                                                const sj_profile_sums *sums, sj_slice payload);

/* Reports a mark and numbers it; `thread` 0: from outside the program. `source` is "app", "cli" or
 * "http". */
SJ_MUST_CHECK sj_status sj_frame_writer_mark(sj_frame_writer *writer, const char *name, bool end,
                                             uint64_t ticks, uint64_t thread, const char *source);

/* A monitor's finding; texts are borrowed. */
typedef struct sj_report {
    uint64_t ticks;
    uint64_t process;    /* 0: no particular process */
    uint64_t thread;     /* 0: none */
    const char *monitor; /* 1 to SJ_REPORT_NAME_BYTES of A-Z a-z 0-9 _ - . */
    const char *kind;    /* same rules as `monitor` */
    const char *json;    /* an object; the collector refuses a frame with another payload */
    size_t json_bytes;   /* at most SJ_REPORT_MAX_BYTES */
} sj_report;

/* Sends a monitor's finding, without paths if the session redacts them, and numbers it. Returns
 * SJ_ELIMIT if the payload is longer than SJ_REPORT_MAX_BYTES, SJ_EINVAL if a name is empty or too
 * long, or SJ_EIO. Returns SJ_EFULL if the spool is full: the report is dropped and counted
 * (refused_reports), and its number is missing in the store. */
SJ_MUST_CHECK sj_status sj_frame_writer_report(sj_frame_writer *writer, const sj_report *report);

/* Keeps a metadata frame for child sessions that another recorder has sent. */
SJ_MUST_CHECK sj_status sj_frame_writer_remember(sj_frame_writer *writer, sj_frame_type type,
                                                 sj_slice header, sj_slice payload);

/* Makes the writer keep the frames of threads, which child sessions need; frames that were sent
 * before must be sent again. Other frames that child sessions need are always kept, as long as the
 * registry keeps them. Off: removes the frames of threads. */
void sj_frame_writer_keep_threads(sj_frame_writer *writer, bool on);

/* Child sessions, if the writer keeps the frames of threads. _begin sends the parent's metadata
 * under the child's id. _block sends one block, whose bytes already have that id. _end sends its
 * sums. */
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

/* Reports a trigger that fired; fills in the identity and session. */
SJ_MUST_CHECK sj_status sj_frame_writer_trigger(sj_frame_writer *writer, Sojourn__Trigger *trigger);

/* Adds to the counts of calls that were not kept; fills in the session. */
SJ_MUST_CHECK sj_status sj_frame_writer_filtered(sj_frame_writer *writer,
                                                 Sojourn__Filtered *filtered);

/* Appends waiting metadata frames; returns the number that still wait. */
size_t sj_frame_writer_retry(sj_frame_writer *writer);

void sj_frame_writer_get_counters(sj_frame_writer *writer, sj_frame_writer_counters *counters);
/* Returns the writer's log; NULL: none. */
sj_function_log *sj_frame_writer_function_log(const sj_frame_writer *writer);

/* Returns a path as the session stores it: `path` or its file name. */
const char *sj_frame_writer_path(const sj_frame_writer *writer, const char *path);

const sj_session_id *sj_frame_writer_session(const sj_frame_writer *writer);

/* Returns a protobuf-c bytes field that borrows the session id. */
ProtobufCBinaryData sj_frame_writer_session_bytes(const sj_frame_writer *writer);

#endif
