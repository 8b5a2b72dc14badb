/* Writes reports of the heap monitor as JSON. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_REPORT_H

#include "agent/zombies/method_names.h"
#include "agent/zombies/stack_walk.h"

/* Returns the name of an sj_zombie_kind in reports and tables, or NULL if the value is not valid.
 */
const char *sj_zombie_kind_text(uint32_t kind);

/* Returns the text of an sj_zombie_refusal: why a process is not monitored, as part of a sentence.
 */
const char *sj_zombie_refusal_text(uint32_t refusal);

/* Unwinds the stacks of a process and names their frames. */
typedef struct sj_frame_namer {
    sj_unwinder *walker;    /* NULL if stacks cannot be unwound. */
    sj_method_names *names; /* Shared by all processes of the session. */
} sj_frame_namer;

/* Returns the JSON of a report, or NULL if out of memory. The content of the report is not trusted.
 * The caller frees the text. */
char *sj_zombie_report_json(const sj_frame_namer *namer, const sj_zombie_region *region,
                            const sj_zombie_report *report);

/* The strictest limits that the overhead budget has set in a process. */
typedef struct sj_zombie_limits {
    uint32_t shift_most; /* At times, one allocation in `one_in << shift_most` was guarded. */
    uint32_t delayed_shift_most; /* At times, one free in `1 << delayed_shift_most` was delayed. */
    uint32_t history_pauses;     /* Number of times that histories were paused. */
    uint32_t pressure_unseen;    /* Bits of facts that could not be read (pressure.h). */
} sj_zombie_limits;

/* Returns the JSON of a process's counters and limits, or NULL if out of memory. The caller frees
 * the text. */
char *sj_zombie_account_json(const sj_zombie_region *region, uint32_t refusal,
                             const sj_zombie_limits *limits);

#endif
