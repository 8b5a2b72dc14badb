#include "agent/control/session_frames.h"

#include <stdio.h>

static const sj_slice no_payload = {0};

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)(text != NULL ? text : "");
}

sj_status sj_session_frame_send(sj_emitter *emitter, const sj_session_start *start)
{
    Sojourn__Session message = SOJOURN__SESSION__INIT;
    char precision[64];
    char *tags[] = {precision};
    snprintf(precision, sizeof(precision), "clock_rate_uncertainty_ppm=%.3f",
             start->rate.uncertainty_ppm);
    message.session_id = sj_emitter_session_bytes(emitter);
    message.device_id.len = SJ_DEVICE_ID_BYTES;
    message.device_id.data = (uint8_t *)(uintptr_t)start->device->id;
    message.name = borrow(start->name);
    message.command = borrow(start->command);
    message.mode = borrow(start->mode);
    message.policy_version = start->policy_version;
    message.started_realtime_ns = start->clock.realtime_ns;
    message.started_ticks = start->clock.ticks;
    message.tick_ns_numerator = start->rate.numerator;
    message.tick_ns_denominator = start->rate.denominator;
    message.clock_step = sj_clock_step();
    message.clock_name = borrow(sj_clock_name());
    message.n_tags = 1;
    message.tags = tags;
    return sj_emitter_send(emitter, SJ_FRAME_SESSION, &message.base, no_payload);
}

sj_status sj_clock_frame_send(sj_emitter *emitter, const sj_device *device,
                              const sj_clock_pair *pair)
{
    Sojourn__ClockPair one = SOJOURN__CLOCK_PAIR__INIT;
    Sojourn__ClockPair *pairs[] = {&one};
    Sojourn__ClockPairs message = SOJOURN__CLOCK_PAIRS__INIT;
    one.ticks = pair->ticks;
    one.monotonic_ns = pair->monotonic_ns;
    one.boottime_ns = pair->boottime_ns;
    one.realtime_ns = pair->realtime_ns;
    one.uncertainty_ns = pair->uncertainty_ns;
    message.session_id = sj_emitter_session_bytes(emitter);
    message.boot_id = borrow(device->boot_id);
    message.n_pair = 1;
    message.pair = pairs;
    return sj_emitter_send(emitter, SJ_FRAME_CLOCK, &message.base, no_payload);
}

sj_status sj_session_end_frame_send(sj_emitter *emitter, const sj_session_finish *finish)
{
    Sojourn__SessionEnd message = SOJOURN__SESSION_END__INIT;
    message.session_id = sj_emitter_session_bytes(emitter);
    message.how = borrow(finish->how);
    message.ended_ticks = finish->clock.ticks;
    message.ended_realtime_ns = finish->clock.realtime_ns;
    message.records = finish->records;
    message.calls = finish->calls;
    message.lost_calls = finish->lost_calls;
    message.lost_events = finish->lost_events;
    message.blocks = finish->blocks;
    message.traced_cpu_ns = finish->traced_cpu_ns;
    message.estimated_probe_ns = finish->estimated_probe_ns;
    return sj_emitter_send(emitter, SJ_FRAME_SESSION_END, &message.base, no_payload);
}
