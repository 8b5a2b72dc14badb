/* The sessions of this device that are not delivered yet, as the spool shows them: also those of
 * recorders that an earlier daemon started. */
#ifndef SJ_AGENT_DAEMON_SESSION_LIST_H
#define SJ_AGENT_DAEMON_SESSION_LIST_H

#include "agent/host/directories.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_listed_session {
    char session[SJ_SESSION_TEXT_BYTES];
    char path[4096];      /* of its .to file */
    bool is_recording;    /* its recorder lives */
    pid_t recorder;       /* 0: not known */
    bool is_set_aside;    /* all of it was delivered but what the collector refused for good */
    uint64_t spool_bytes; /* on the disk, with what was put aside */
} sj_listed_session;

/* sj_session_list calls `visit` for each; stops when it returns false. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_session_list(const char *spool_root,
                                        bool (*visit)(void *context,
                                                      const sj_listed_session *session),
                                        void *context, sj_error *error);

#endif
