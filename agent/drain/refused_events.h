/* Reports the events of threads that found no slot. Used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_REFUSED_EVENTS_H
#define SJ_AGENT_DRAIN_REFUSED_EVENTS_H

#include "agent/drain/arena_view.h"
#include "agent/session/frame_writer.h"

typedef struct sj_refused_events {
    uint64_t calls;
    uint64_t events;
} sj_refused_events;

/* Reports the refused events of an arena that no gap has reported yet, by one gap. A gap without
 * events reports threads that found no slot and made no call. Keeps in the arena what it reported,
 * so that a kill meanwhile loses and repeats nothing. Writes the events of the gap to `*refused`,
 * also if it cannot be sent. Returns the errors of sj_frame_writer_gap. */
SJ_MUST_CHECK sj_status sj_refused_events_report(const sj_arena_view *view, sj_frame_writer *writer,
                                                 sj_refused_events *refused);

#endif
