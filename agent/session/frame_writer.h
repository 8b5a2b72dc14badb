/* Frame writer: encodes the recorder's data as frames and appends them to the session's spool.
 *
 * Metadata frames (all except blocks and reports) are never lost. While the spool is full, metadata
 * frames wait in memory. When the spool has space again, the writer appends them before any other
 * frame.
 *
 * The writer refuses a block if the spool is full, if metadata frames wait, or if the session has
 * reached its maximum size. The assembler counts refused blocks as gaps. Thread-safe. */
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
    sj_uplink *uplink;         /* borrowed; the writer wakes it after each frame; NULL: none */
    const sj_journal *journal; /* borrowed; NULL: none */
    /* borrowed; gets a copy of the metadata that child sessions need, while the writer keeps
     * threads (sj_frame_writer_keep_threads); NULL: the metadata is only in memory */
    sj_metadata_store *control_store;
    sj_function_log *function_log; /* borrowed; gets names and blocks; NULL: none */
    /* maximum size of all frames of the session; 0: no limit; after the first block beyond the
     * limit, the writer refuses all blocks */
    uint64_t max_bytes;
    unsigned redaction; /* bits of the fields to leave out (agent/policy/redaction.h) */
} sj_frame_writer_options;

/* Counters of a writer. sj_frame_writer_resume sets the block and gap counters, except block_bytes,
 * to the sums of the killed recorder. */
typedef struct sj_frame_writer_counters {
    uint64_t frames;
    uint64_t bytes;
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t block_calls;
    uint64_t block_events;
    uint64_t block_lost_calls; /* from gaps inside blocks */
    uint64_t block_lost_events;
    uint64_t refused_blocks;
    uint64_t refused_calls;
    uint64_t refused_reports;
    uint64_t gap_calls; /* from Gap frames */
    uint64_t gap_events;
    uint64_t waiting_frames; /* metadata frames that wait for space in the spool */
    bool reached_max_bytes;
} sj_frame_writer_counters;

/* Makes a writer. The caller frees it with sj_frame_writer_free. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_frame_writer_new(const sj_frame_writer_options *options,
                                            sj_frame_writer **writer);
/* Continues the session of a killed recorder, from the sums and numbers in its journal. Call it
 * before the first frame. */
void sj_frame_writer_resume(sj_frame_writer *writer);

/* Return the number of blocks, and of gaps, that the killed recorder had appended. Return 0 if the
 * session has had only one recorder. Thread-safe. */
uint64_t sj_frame_writer_resumed_blocks(const sj_frame_writer *writer);
uint64_t sj_frame_writer_resumed_gaps(const sj_frame_writer *writer);

/* Return the number that the next block, or gap, will get. Numbers start at 1. Call them only on
 * the thread that appends blocks, or gaps. */
uint64_t sj_frame_writer_next_block(sj_frame_writer *writer);
uint64_t sj_frame_writer_next_gap(sj_frame_writer *writer);
void sj_frame_writer_free(sj_frame_writer *writer);

/* Appends a metadata frame with `message` as header, without the fields that the session redacts.
 * `message` and `payload` are borrowed for the call. Returns SJ_ENOMEM, SJ_ELIMIT if the message is
 * too long, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_frame_writer_send(sj_frame_writer *writer, sj_frame_type type,
                                             const ProtobufCMessage *message, sj_slice payload);

/* Appends a block. Returns SJ_EFULL if the writer refuses the block. */
SJ_MUST_CHECK sj_status sj_frame_writer_block(sj_frame_writer *writer,
                                              const sj_block_header *header, sj_slice bytes);

/* Sends a Gap frame about calls and events that were lost outside of blocks. `thread` and `stream`
 * are 0 if they are not known. Returns an error of sj_frame_writer_send. */
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

/* Sends a profile (sums per call path) and numbers it. Adds its calls and events to block_calls and
 * block_events. Returns an error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_frame_writer_profile(sj_frame_writer *writer,
                                                const sj_profile_sums *sums, sj_slice payload);

/* Sends a Mark frame and numbers it. `end` is true if the mark ends a phase. `thread` is 0 for a
 * mark from outside the program. `source` is "app", "cli" or "http". Returns an error of
 * sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_frame_writer_mark(sj_frame_writer *writer, const char *name, bool end,
                                             uint64_t ticks, uint64_t thread, const char *source);

/* A monitor's finding. The texts are borrowed. */
typedef struct sj_report {
    uint64_t ticks;
    uint64_t process;    /* 0: no particular process */
    uint64_t thread;     /* 0: no particular thread */
    const char *monitor; /* 1 to SJ_REPORT_NAME_BYTES of A-Z a-z 0-9 _ - . */
    const char *kind;    /* same rules as `monitor` */
    const char *json;    /* a JSON object; the collector refuses any other payload */
    size_t json_bytes;   /* at most SJ_REPORT_MAX_BYTES */
} sj_report;

/* Sends a monitor's finding and numbers it. Leaves out paths if the session redacts them. If the
 * spool is full or metadata frames wait, the report is dropped and counted in refused_reports, and
 * its number is missing in the store. Returns:
 *   * SJ_EFULL: the report was dropped
 *   * SJ_ELIMIT: the payload is longer than SJ_REPORT_MAX_BYTES
 *   * SJ_EINVAL: a name is empty or too long
 *   * SJ_ENOMEM or SJ_EIO */
SJ_MUST_CHECK sj_status sj_frame_writer_report(sj_frame_writer *writer, const sj_report *report);

/* Keeps a metadata frame that another recorder has sent, for child sessions. Does not send it.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_frame_writer_remember(sj_frame_writer *writer, sj_frame_type type,
                                                 sj_slice header, sj_slice payload);

/* If `on` is true, the writer keeps the frames of threads for child sessions from now on. The
 * caller must send the frames of threads again that it has already sent. If `on` is false, the
 * writer removes the kept frames of threads.
 *
 * The writer always keeps the other frames that child sessions need. The newest frame of a module
 * part replaces the older ones. */
void sj_frame_writer_keep_threads(sj_frame_writer *writer, bool on);

/* Child sessions. The writer must keep the frames of threads. _begin sends the parent's metadata
 * under the child's id. _block sends one block, whose bytes already have the child's id, and adds
 * it to `sums`. While the spool is full, these blocks also wait in memory. _end sends `sums`. */
typedef struct sj_child_sums {
    uint64_t ended_ticks;
    uint64_t blocks;
    uint64_t calls;
    uint64_t lost_calls;
    uint64_t lost_events;
} sj_child_sums;

/* All three return an error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_frame_writer_child_begin(sj_frame_writer *writer,
                                                    const sj_session_id *child, const char *cause);
SJ_MUST_CHECK sj_status sj_frame_writer_child_block(sj_frame_writer *writer,
                                                    const sj_session_id *child,
                                                    const sj_block_header *header, sj_slice bytes,
                                                    sj_child_sums *sums);
SJ_MUST_CHECK sj_status sj_frame_writer_child_end(sj_frame_writer *writer,
                                                  const sj_session_id *child,
                                                  const sj_child_sums *sums);

/* Sends a Trigger frame about a trigger that fired. Sets the message's number and session. Returns
 * an error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_frame_writer_trigger(sj_frame_writer *writer, Sojourn__Trigger *trigger);

/* Sends counts of calls that were not kept. The collector adds them to earlier counts. Sets the
 * message's number and session. Returns an error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_frame_writer_filtered(sj_frame_writer *writer,
                                                 Sojourn__Filtered *filtered);

/* Appends the waiting metadata frames. Returns the number of frames that still wait. */
size_t sj_frame_writer_retry(sj_frame_writer *writer);

void sj_frame_writer_get_counters(sj_frame_writer *writer, sj_frame_writer_counters *counters);
/* Returns the writer's function log, or NULL if there is none. */
sj_function_log *sj_frame_writer_function_log(const sj_frame_writer *writer);

/* Returns `path`, or only its file name if the session redacts paths. */
const char *sj_frame_writer_path(const sj_frame_writer *writer, const char *path);

const sj_session_id *sj_frame_writer_session(const sj_frame_writer *writer);

/* Returns a protobuf-c bytes field that borrows the session id from the writer. */
ProtobufCBinaryData sj_frame_writer_session_bytes(const sj_frame_writer *writer);

#endif
