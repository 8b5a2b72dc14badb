/* Stalls: io.sojourn.Sojourn.watch, in the program, finds that a thread does not answer in time and
 * says what all threads do; the agent adds the pauses of the collector and tells the recorder. */
#ifndef SJ_AGENT_INPROC_JVM_STALL_H
#define SJ_AGENT_INPROC_JVM_STALL_H

#include <stdint.h>

/* A thread that does not answer. Borrowed for the call. */
typedef struct sj_jvm_stall {
    const char *name; /* of the watch */
    uint32_t name_bytes;
    uint64_t age_ns;      /* since the heartbeat was posted */
    const char *parts[2]; /* of the report: a JSON object, in two pieces */
    uint32_t part_bytes[2];
} sj_jvm_stall;

/* sj_jvm_set_stall_reporter has stalls reported by it. It is called in a thread of the program that
 * is in native state: it may wait. */
void sj_jvm_set_stall_reporter(void (*report)(const sj_jvm_stall *stall));

/* sj_jvm_forget_pauses ends the noting of pauses, which the first watch began. */
void sj_jvm_forget_pauses(void);

/* sj_jvm_pauses_after_fork gives up a lock of the parent's. The only thread of a forked child. */
void sj_jvm_pauses_after_fork(void);

#endif
