#include "agent/uplink/clock_offset.h"

static const int64_t period_ns = 600 * INT64_C(1000000000);
static const int64_t latest_ns = INT64_MAX / 4; /* Sums of such times do not overflow. */

static bool is_sound(int64_t time_ns)
{
    return time_ns > 0 && time_ns < latest_ns;
}

bool sj_clock_offset_of(const sj_clock_exchange *exchange, sj_clock_offset *offset)
{
    if (!is_sound(exchange->sent_ns) || !is_sound(exchange->received_ns) ||
        !is_sound(exchange->collector_received_ns) || !is_sound(exchange->collector_sent_ns)) {
        return false;
    }
    const int64_t round_ns = exchange->received_ns - exchange->sent_ns;
    const int64_t collector_ns = exchange->collector_sent_ns - exchange->collector_received_ns;
    if (collector_ns < 0 || collector_ns > round_ns) {
        return false;
    }
    /* The offset plus the time of the way there. */
    const int64_t there_ns = exchange->collector_received_ns - exchange->sent_ns;
    /* The offset minus the time of the way back. */
    const int64_t back_ns = exchange->collector_sent_ns - exchange->received_ns;
    *offset = (sj_clock_offset){.boottime_ns = exchange->sent_ns + round_ns / 2,
                                .offset_ns = there_ns - (there_ns - back_ns) / 2,
                                .uncertainty_ns = (round_ns - collector_ns + 1) / 2};
    return true;
}

bool sj_clock_offsets_add(sj_clock_offsets *offsets, const sj_clock_exchange *exchange,
                          sj_clock_offset *news)
{
    sj_clock_offset now;
    if (!sj_clock_offset_of(exchange, &now)) {
        return false;
    }
    if (!offsets->has_best || now.uncertainty_ns < offsets->best.uncertainty_ns) {
        offsets->best = now;
        offsets->has_best = true;
    }
    const bool is_first = offsets->reported_ns == 0;
    const bool is_due = now.boottime_ns - offsets->reported_ns >= period_ns;
    const bool is_better = offsets->best.uncertainty_ns < offsets->sent_uncertainty_ns / 2;
    if (!is_first && !is_due && !is_better) {
        return false;
    }
    *news = offsets->best;
    offsets->reported_ns = now.boottime_ns;
    offsets->sent_uncertainty_ns = news->uncertainty_ns;
    offsets->has_best = false;
    return true;
}
