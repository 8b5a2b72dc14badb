/* Frames about the session itself: its start, clock pairs, policies and end. Each function encodes
 * and queues one frame. Thread-safe. The functions return the errors of sj_frame_writer_send. */
#ifndef SJ_AGENT_SESSION_SESSION_FRAMES_H
#define SJ_AGENT_SESSION_SESSION_FRAMES_H

#include "agent/host/clock.h"
#include "agent/host/device.h"
#include "agent/policy/policy.h"
#include "agent/session/frame_writer.h"

typedef struct sj_session_start {
    const sj_device *device;
    const char *name;        /* label; "": none */
    const char *command;     /* command line of the program */
    const char *mode;        /* trace, profile, flight */
    const sj_policy *policy; /* NULL: none */
    sj_clock_pair clock;
    sj_clock_rate rate;
    uint32_t time_step; /* in ticks: times of calls are multiples of it; 0: not known */
} sj_session_start;

SJ_MUST_CHECK sj_status sj_session_frame_send(sj_frame_writer *writer,
                                              const sj_session_start *start);

SJ_MUST_CHECK sj_status sj_clock_frame_send(sj_frame_writer *writer, const sj_device *device,
                                            const sj_clock_pair *pair);

typedef struct sj_session_finish {
    const char *how;
    sj_clock_pair clock;
    uint64_t records;
    uint64_t calls; /* calls known to the device: in blocks, or lost */
    uint64_t lost_calls;
    uint64_t lost_events;
    uint64_t blocks;
    uint64_t traced_cpu_ns;
    uint64_t estimated_probe_ns;
} sj_session_finish;

SJ_MUST_CHECK sj_status sj_session_end_frame_send(sj_frame_writer *writer,
                                                  const sj_session_finish *finish);

/* Sends the policy that is active from `ticks` on. `number` counts the policies of the session,
 * from 1. `not_applied` is a JSON list; "": everything was applied. A frame with the same number
 * replaces the earlier frame. */
SJ_MUST_CHECK sj_status sj_policy_frame_send(sj_frame_writer *writer, uint64_t number,
                                             const sj_policy *policy, uint64_t ticks,
                                             const char *not_applied);

#endif
