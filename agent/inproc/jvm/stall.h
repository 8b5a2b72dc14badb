/* Stalls of watched threads. io.sojourn.Sojourn.watch, in the program, finds that a thread does not
 * handle a heartbeat in time, and describes all threads. The agent adds the pauses of the collector
 * and reports to the recorder. */
#ifndef SJ_AGENT_INPROC_JVM_STALL_H
#define SJ_AGENT_INPROC_JVM_STALL_H

#include <stdint.h>

/* A thread that does not handle heartbeats. Borrowed for the call. */
typedef struct sj_jvm_stall {
    const char *name; /* Name of the watch. */
    uint32_t name_bytes;
    uint64_t age_ns;      /* Time since the heartbeat was posted. */
    const char *parts[2]; /* The report, a JSON object in two pieces. */
    uint32_t part_bytes[2];
} sj_jvm_stall;

/* Stops noting pauses of the collector. */
void sj_jvm_stop_pauses(void);

/* Frees a lock that the parent held. Call it on the only thread of a forked child. */
void sj_jvm_pauses_after_fork(void);

#endif
