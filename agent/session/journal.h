/* The journal: what a recorder must remember so that another process can finish its session after
 * it was killed. A shared file `journal` in the session's runtime directory, gone with it.
 *
 * Beside it, each thread slot of an arena carries a cursor (recorder/arena.h) that says up to where
 * its records are in the spool. Numbers that name things (threads, streams, marks, gaps) are taken
 * from the journal, so that they never come twice. Written by one recorder at a time. */
#ifndef SJ_AGENT_SESSION_JOURNAL_H
#define SJ_AGENT_SESSION_JOURNAL_H

#include "agent/uplink/spool.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    SJ_JOURNAL_VERSION = 2,
    SJ_JOURNAL_PENDING = 2,
    SJ_JOURNAL_PROCESSES = 2048,
    SJ_JOURNAL_NAME_BYTES = 64
};

#define SJ_JOURNAL_MAGIC UINT64_C(0x4c4e524a4a53) /* "SJJRNL" */

/* Sums over what was appended to the spool. */
typedef struct sj_journal_sums {
    uint64_t next_gap;
    uint64_t blocks;
    uint64_t block_calls;
    uint64_t block_events;
    uint64_t block_lost_calls;
    uint64_t block_lost_events;
    uint64_t gap_calls;
    uint64_t gap_events;
    uint64_t next_profile;
} sj_journal_sums;

typedef struct sj_journal_process {
    uint64_t number;
    uint64_t parent;
    uint64_t started_ticks;
    uint32_t pid;
    char how[12];
    char arena_name[SJ_JOURNAL_NAME_BYTES];
} sj_journal_process;

typedef struct sj_journal_data {
    uint64_t magic;
    uint32_t version;
    uint32_t mode; /* sj_policy_mode */
    sj_session_id session;
    double ns_per_tick; /* 0: not known yet; the session's first frame follows at once */
    _Atomic uint64_t next_thread;
    _Atomic uint64_t next_mark;
    _Atomic uint32_t next_stream;
    _Atomic uint32_t next_report;
    /* Of profiles: all that went into sums so far, sent or not. */
    _Atomic uint64_t summed_calls;
    _Atomic uint64_t summed_events;
    /* Bit 0: which sums hold. While SJ_JOURNAL_PENDING is set a frame is being appended and the
     * other sums hold as soon as the spool has grown beyond `end_before`. */
    _Atomic uint32_t state;
    _Atomic uint32_t process_count;
    uint64_t end_before;
    sj_journal_sums sums[2];
    sj_journal_process processes[SJ_JOURNAL_PROCESSES];
} sj_journal_data;

typedef struct sj_journal {
    sj_journal_data *data; /* NULL: none */
    int fd;
} sj_journal;

/* sj_journal_create makes the journal of a new session. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_journal_create(const char *runtime_directory,
                                          const sj_session_id *session, sj_journal *journal,
                                          sj_error *error);

/* sj_journal_open opens that of a session whose recorder is gone. SJ_ENOTFOUND: there is none;
 * SJ_ECORRUPT, SJ_EVERSION: it cannot be used. */
SJ_MUST_CHECK sj_status sj_journal_open(const char *runtime_directory, sj_journal *journal,
                                        sj_error *error);

/* sj_journal_close leaves the file. A journal of zeros is allowed. */
void sj_journal_close(sj_journal *journal);

/* sj_journal_add_process notes a process; the first SJ_JOURNAL_PROCESSES can be recovered. */
void sj_journal_add_process(const sj_journal *journal, const sj_journal_process *process);

/* sj_journal_begin says which sums hold once the frame that is about to be appended is there. */
void sj_journal_begin(const sj_journal *journal, const sj_journal_sums *sums, uint64_t spool_end);

/* sj_journal_commit ends that: the frame was appended, or it was not. */
void sj_journal_commit(const sj_journal *journal, bool appended);

/* sj_journal_recover decides a frame that was being appended when the recorder was killed and
 * returns the sums that hold. */
sj_journal_sums sj_journal_recover(const sj_journal *journal, uint64_t spool_end);

#endif
