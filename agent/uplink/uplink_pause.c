/* The pauses of an uplink, and what is common to its files. */
#include "agent/uplink/uplink_state.h"

#include <stdio.h>

enum { PAUSE_MIN_MS = 200, PAUSE_MAX_MS = 10000 };

unsigned sj_uplink_count_in_flight(const sj_uplink *uplink)
{
    unsigned count = 0;
    for (unsigned rank = 0; rank < SJ_RANKS; ++rank) {
        count += uplink->in_flight[rank];
    }
    return count;
}

void sj_uplink_set_message(sj_uplink *uplink, const char *text)
{
    snprintf(uplink->status.message, sizeof(uplink->status.message), "%s", text);
}

void sj_uplink_begin_pause(sj_uplink *uplink)
{
    unsigned next = uplink->pause_ms * 2;
    if (next < PAUSE_MIN_MS) {
        next = PAUSE_MIN_MS;
    }
    uplink->pause_ms = next > PAUSE_MAX_MS ? PAUSE_MAX_MS : next;
    uplink->resume = sj_moment_after_ms(uplink->pause_ms);
}

void sj_uplink_pause_once(sj_uplink *uplink)
{
    if (uplink->pause_ms == 0 || sj_moment_has_passed(&uplink->resume)) {
        sj_uplink_begin_pause(uplink);
    }
}

void sj_uplink_probe_at_once(sj_uplink *uplink)
{
    uplink->pause_ms = PAUSE_MIN_MS;
    uplink->resume = sj_moment_after_ms(0);
}
