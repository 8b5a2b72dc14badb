/* What a monitor wrote, as a report's JSON. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H

#include "agent/zombies/method_names.h"
#include "agent/zombies/stack_walk.h"

/* sj_zombie_kind_text returns the name of a kind, as reports and tables have it; NULL: unknown. */
const char *sj_zombie_kind_text(uint32_t kind);

/* sj_zombie_refusal_text says why a process is not monitored, as part of a sentence. */
const char *sj_zombie_refusal_text(uint32_t refusal);

/* What names the frames of a process's stacks. */
typedef struct sj_frame_namer {
    sj_unwinder *walker;    /* NULL: there are no frames */
    sj_method_names *names; /* of the whole session */
} sj_frame_namer;

/* sj_zombie_report_json describes a report, which the program may have damaged; NULL: no memory.
 * The caller frees the text. */
char *sj_zombie_report_json(const sj_frame_namer *namer, const sj_zombie_region *region,
                            const sj_zombie_report *report);

/* What the overhead budget has left out in a process, and what is not known of its memory. */
typedef struct sj_zombie_limits {
    uint32_t shift_most; /* the rarest sampling: one allocation in `one_in << shift_most` */
    uint32_t quarantine_shift_most; /* at the least, one free in `1 << it` was quarantined */
    uint32_t history_pauses;        /* how often histories were given up */
    uint32_t pressure_unseen;       /* agent/zombies/pressure.h */
} sj_zombie_limits;

/* sj_zombie_account_json describes a process's counters and limits. */
char *sj_zombie_account_json(const sj_zombie_region *region, uint32_t refusal,
                             const sj_zombie_limits *limits);

#endif
