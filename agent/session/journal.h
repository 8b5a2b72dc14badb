/* Journal: the data with which another process can finish a session after its recorder was killed.
 * It is the file `journal` in the session's runtime directory, mapped as shared memory. It is
 * deleted with that directory.
 *
 * In addition, each thread slot of an arena has a cursor (agent/abi/arena.h) up to which its
 * records are in the spool. Numbers of threads, streams, marks and gaps come from the journal, so
 * that they are unique. One recorder writes at a time. */
#ifndef SJ_AGENT_SESSION_JOURNAL_H
#define SJ_AGENT_SESSION_JOURNAL_H

#include "agent/uplink/spool.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    SJ_JOURNAL_VERSION = 3,
    SJ_JOURNAL_PENDING = 2,
    SJ_JOURNAL_PROCESSES = 2048,
    SJ_JOURNAL_NAME_BYTES = 64
};

#define SJ_JOURNAL_MAGIC UINT64_C(0x4c4e524a4a53) /* "SJJRNL" */

/* Sums over everything appended to the spool. */
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
    uint32_t mode;      /* sj_policy_mode */
    uint32_t redaction; /* bits of the fields that frames leave out (agent/policy/redaction.h) */
    /* Number of the gap that reports calls of a profile whose sums the killed recorder had not
     * sent; 0: none. */
    uint32_t sums_gap;
    sj_session_id session;
    double ns_per_tick; /* 0: not known yet, because the session's first frame was not sent */
    _Atomic uint64_t next_thread;
    _Atomic uint64_t next_mark;
    _Atomic uint32_t next_stream;
    _Atomic uint32_t next_report;
    /* Profiles: number of calls and events added to sums so far, whether the sums were sent or
     * not. */
    _Atomic uint64_t summed_calls;
    _Atomic uint64_t summed_events;
    /* Bit 0 selects the valid sums. While SJ_JOURNAL_PENDING is set, a frame is being appended. The
     * other sums become valid as soon as the spool has grown beyond `end_before`. */
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

/* Makes the journal of a new session. Returns SJ_EIO. */
SJ_MUST_CHECK sj_status sj_journal_create(const char *runtime_directory,
                                          const sj_session_id *session, sj_journal *journal,
                                          sj_error *error);

/* Opens the journal of a session whose recorder was killed. Returns SJ_ENOTFOUND if the session has
 * no journal, or if the recorder was killed while it made the journal. Returns SJ_ECORRUPT if the
 * journal is damaged, or SJ_EVERSION if another version wrote it. */
SJ_MUST_CHECK sj_status sj_journal_open(const char *runtime_directory, sj_journal *journal,
                                        sj_error *error);

/* Closes the journal and keeps the file. An all-zero journal is allowed. */
void sj_journal_close(sj_journal *journal);

/* Stores a process. Only the first SJ_JOURNAL_PROCESSES can be recovered. */
void sj_journal_add_process(const sj_journal *journal, const sj_journal_process *process);

/* Stores the sums that become valid when the next frame is appended. `spool_end` is the end of the
 * spool before that frame. */
void sj_journal_begin(const sj_journal *journal, const sj_journal_sums *sums, uint64_t spool_end);

/* Ends sj_journal_begin. `appended`: true if the frame was appended. */
void sj_journal_commit(const sj_journal *journal, bool appended);

/* Returns the valid sums. If the recorder was killed after sj_journal_begin, first decides from
 * `spool_end`, the end of the spool, whether the frame was appended. */
sj_journal_sums sj_journal_recover(const sj_journal *journal, uint64_t spool_end);

#endif
