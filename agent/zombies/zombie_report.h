/* Writes reports of the monitor of freed memory as JSON. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H

#include "agent/zombies/method_names.h"
#include "agent/zombies/stack_walk.h"

/* Returns the name of a kind in reports and tables, or NULL if the kind is unknown. */
const char *sj_zombie_kind_text(uint32_t kind);

/* Returns the reason why a process is not monitored, as part of a sentence. */
const char *sj_zombie_refusal_text(uint32_t refusal);

/* The sources of names for the frames of a process's stacks. */
typedef struct sj_frame_namer {
    sj_unwinder *walker;    /* NULL: there are no frames. */
    sj_method_names *names; /* Shared by the whole session. */
} sj_frame_namer;

/* Returns the JSON of a report. The program may have damaged the report. Returns NULL if out of
 * memory. The caller frees the text. */
char *sj_zombie_report_json(const sj_frame_namer *namer, const sj_zombie_region *region,
                            const sj_zombie_report *report);

/* The limits that the overhead budget set in a process, and unknown facts about its memory. */
typedef struct sj_zombie_limits {
    uint32_t shift_most; /* The rarest sampling was one allocation in `one_in << shift_most`. */
    /* The rarest delay was one free in `1 << delayed_shift_most`. */
    uint32_t delayed_shift_most;
    uint32_t history_pauses;  /* How often histories were paused. */
    uint32_t pressure_unseen; /* Bits of agent/zombies/pressure.h. */
} sj_zombie_limits;

/* Returns the JSON of a process's counters and limits. Returns NULL if out of memory. The caller
 * frees the text. */
char *sj_zombie_account_json(const sj_zombie_region *region, uint32_t refusal,
                             const sj_zombie_limits *limits);

#endif
