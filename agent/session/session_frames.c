#include "agent/session/session_frames.h"

#include <stdio.h>
#include <string.h>

enum { PPM_A_PERCENT = 10000 };

static const sj_slice no_payload = {0};

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)(text != NULL ? text : "");
}

sj_status sj_session_frame_send(sj_frame_writer *writer, const sj_session_start *start)
{
    Sojourn__Session message = SOJOURN__SESSION__INIT;
    char precision[64];
    char redacted[SJ_REDACTION_TEXT_BYTES + 16] = "redacted=";
    char redacted_by[SJ_POLICY_NAME_BYTES + 16];
    char *tags[] = {precision, redacted, redacted_by};
    const sj_policy *policy = start->policy;
    const size_t named = strlen(redacted);
    if (policy != NULL) {
        sj_redaction_describe(&policy->redaction, redacted + named);
        snprintf(redacted_by, sizeof(redacted_by), "redacted_by=%s", policy->name);
    }
    snprintf(precision, sizeof(precision), "clock_rate_uncertainty_ppm=%.3f",
             start->rate.uncertainty_ppm);
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.device_id.len = SJ_DEVICE_ID_BYTES;
    message.device_id.data = (uint8_t *)(uintptr_t)start->device->id;
    message.name = borrow(start->name);
    message.command = borrow(start->command);
    message.mode = borrow(start->mode);
    message.policy_version = policy != NULL ? policy->version : 0;
    message.started_realtime_ns = start->clock.realtime_ns;
    message.started_ticks = start->clock.ticks;
    message.tick_ns_numerator = start->rate.numerator;
    message.tick_ns_denominator = start->rate.denominator;
    message.clock_step = start->time_step;
    message.clock_name = borrow(sj_clock_name());
    message.n_tags = redacted[named] != '\0' ? 3 : 1;
    message.tags = tags;
    return sj_frame_writer_send(writer, SJ_FRAME_SESSION, &message.base, no_payload);
}

sj_status sj_clock_frame_send(sj_frame_writer *writer, const sj_device *device,
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
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.boot_id = borrow(device->boot_id);
    message.n_pair = 1;
    message.pair = pairs;
    return sj_frame_writer_send(writer, SJ_FRAME_CLOCK, &message.base, no_payload);
}

sj_status sj_session_end_frame_send(sj_frame_writer *writer, const sj_session_finish *finish)
{
    Sojourn__SessionEnd message = SOJOURN__SESSION_END__INIT;
    message.session_id = sj_frame_writer_session_bytes(writer);
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
    return sj_frame_writer_send(writer, SJ_FRAME_SESSION_END, &message.base, no_payload);
}

sj_status sj_policy_frame_send(sj_frame_writer *writer, uint64_t number, const sj_policy *policy,
                               uint64_t ticks, const char *not_applied)
{
    Sojourn__Policy message = SOJOURN__POLICY__INIT;
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.policy = number;
    message.name = borrow(policy->name);
    message.version = policy->version;
    message.mode = borrow(sj_policy_mode_text(policy->mode));
    message.budget_ppm = (uint32_t)(policy->budget_percent * PPM_A_PERCENT + 0.5);
    message.document = policy->document;
    message.ticks = ticks;
    message.not_applied = borrow(not_applied);
    return sj_frame_writer_send(writer, SJ_FRAME_POLICY, &message.base, no_payload);
}
