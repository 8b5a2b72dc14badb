/* The sessions of this device that are not delivered yet, read from the spool. They include
 * sessions whose recorder was started by an earlier daemon. */
#ifndef SJ_AGENT_DAEMON_SESSION_LIST_H
#define SJ_AGENT_DAEMON_SESSION_LIST_H

#include "agent/host/directories.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_listed_session {
    char session[SJ_SESSION_TEXT_BYTES];
    char path[4096];   /* Path of its .to file. */
    bool is_recording; /* True if its recorder is alive. */
    pid_t recorder;    /* 0: unknown. */
    /* True if all of it was delivered except what the collector finally refused. */
    bool is_set_aside;
    uint64_t spool_bytes; /* Disk space, including frames that were set aside. */
} sj_listed_session;

/* Calls `visit` for each session until it returns false. A spool that does not exist has no
 * sessions. Returns SJ_EIO if the spool cannot be read. */
SJ_MUST_CHECK sj_status sj_session_list(const char *spool_root,
                                        bool (*visit)(void *context,
                                                      const sj_listed_session *session),
                                        void *context, sj_error *error);

#endif
