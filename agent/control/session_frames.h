/* The frames about the session itself: its beginning, its clock pairs, its end. */
#ifndef SJ_AGENT_CONTROL_SESSION_FRAMES_H
#define SJ_AGENT_CONTROL_SESSION_FRAMES_H

#include "agent/control/clock.h"
#include "agent/control/device.h"
#include "agent/control/emitter.h"

typedef struct sj_session_start {
    const sj_device *device;
    const char *name; /* label, "" when none */
    const char *command;
    const char *mode;        /* trace, profile, flight */
    uint32_t policy_version; /* command line of the program */
    sj_clock_pair clock;
    sj_clock_rate rate;
} sj_session_start;

SJ_MUST_CHECK sj_status sj_session_frame_send(sj_emitter *emitter, const sj_session_start *start);

SJ_MUST_CHECK sj_status sj_clock_frame_send(sj_emitter *emitter, const sj_device *device,
                                            const sj_clock_pair *pair);

typedef struct sj_session_finish {
    const char *how;
    sj_clock_pair clock;
    uint64_t records;
    uint64_t calls; /* that the device knows of: those in blocks and the lost ones */
    uint64_t lost_calls;
    uint64_t lost_events;
    uint64_t blocks;
    uint64_t traced_cpu_ns;
    uint64_t estimated_probe_ns;
} sj_session_finish;

SJ_MUST_CHECK sj_status sj_session_end_frame_send(sj_emitter *emitter,
                                                  const sj_session_finish *finish);

#endif
