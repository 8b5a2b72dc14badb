/* Frames are sent in the order of the spool, but resent frames may overtake each other. So a frame
 * waits until no frame of an earlier kind is in flight. The kinds are HELLO, SESSION, other
 * metadata, blocks and threads, and the end of the session. Frames of a session that are missing
 * when its end arrives were refused. */
#include "agent/uplink/uplink_state.h"

static sj_frame_rank rank_of(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    sj_read_bytes(&reader, 6);
    switch (sj_read_u16(&reader)) {
    case SJ_FRAME_SESSION:
        return SJ_RANK_SESSION;
    case SJ_FRAME_BLOCK:
    case SJ_FRAME_THREAD: /* The blocks of a thread may be sent before its THREAD frame. */
        return SJ_RANK_BLOCK;
    case SJ_FRAME_SESSION_END:
        return SJ_RANK_END;
    default:
        return SJ_RANK_METADATA;
    }
}

static bool may_send(const sj_uplink *uplink, sj_frame_rank rank)
{
    for (unsigned lower = 0; lower < rank; ++lower) {
        if (uplink->in_flight[lower] != 0) {
            return false;
        }
    }
    return true;
}

static sj_uplink_slot *find_idle_slot(sj_uplink *uplink)
{
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        if (!uplink->slots[i].is_busy) {
            return &uplink->slots[i];
        }
    }
    return NULL;
}

static sj_status send_frame(sj_uplink *uplink, sj_uplink_slot *idle, sj_slice frame,
                            sj_frame_rank rank, uint64_t position)
{
    const int64_t sent_ns = sj_boottime_ns();
    SJ_TRY(uplink->kind->ask(uplink->channel, (uint32_t)(idle - uplink->slots), frame));
    *idle =
        (sj_uplink_slot){.is_busy = true, .rank = rank, .position = position, .sent_ns = sent_ns};
    uplink->in_flight[rank]++;
    return SJ_OK;
}

/* Reads the next sound frame of the spool into `held`. Returns SJ_EAGAIN if it has none. */
static sj_status hold_pending(sj_uplink *uplink)
{
    sj_status status = SJ_ECORRUPT;
    while (status == SJ_ECORRUPT) {
        status = sj_spool_next(uplink->spool, &uplink->held, &uplink->held_position);
    }
    uplink->held_back = status == SJ_OK;
    uplink->held_is_recalled = false;
    return status;
}

/* Reads the next announcement or frame into `held`, unless `held` is set already. Returns false if
 * none is available or the spool cannot be read. */
static bool hold_next(sj_uplink *uplink)
{
    sj_status status = uplink->held_back ? SJ_OK : SJ_EAGAIN;
    if (!uplink->held_back && uplink->is_recalling) {
        status = sj_uplink_hold_recalled(uplink);
    }
    if (status == SJ_EAGAIN && uplink->recalled_in_flight == 0) {
        status = hold_pending(uplink);
    }
    if (status != SJ_OK && status != SJ_EAGAIN) {
        sj_uplink_set_message(uplink,
                              status == SJ_EFULL ? SJ_UPLINK_NO_SPACE : "cannot read the spool");
        uplink->rewind = true; /* The spool has moved past a frame that is not sent. */
        sj_uplink_begin_pause(uplink);
    }
    return status == SJ_OK;
}

static sj_status send_clock(sj_uplink *uplink, sj_uplink_slot *idle)
{
    uint8_t header[256];
    uint8_t frame[sizeof(header) + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    Sojourn__DeviceClock clock = SOJOURN__DEVICE_CLOCK__INIT;
    clock.device_id = uplink->about->device_id;
    clock.boot_id = uplink->about->boot_id;
    clock.boottime_ns = (uint64_t)uplink->clock.boottime_ns;
    clock.offset_ns = uplink->clock.offset_ns;
    clock.uncertainty_ns = (uint64_t)uplink->clock.uncertainty_ns;
    if (sojourn__device_clock__get_packed_size(&clock) > sizeof(header)) {
        return SJ_ELIMIT;
    }
    const sj_slice packed = {.data = header, .size = sojourn__device_clock__pack(&clock, header)};
    SJ_TRY(
        sj_frame_write(SJ_FRAME_DEVICE_CLOCK, packed, (sj_slice){0}, frame, sizeof(frame), &size));
    return send_frame(uplink, idle, (sj_slice){.data = frame, .size = size}, SJ_RANK_CLOCK, 0);
}

void sj_uplink_send(sj_uplink *uplink)
{
    if (uplink->pause_ms != 0 && !sj_moment_has_passed(&uplink->resume)) {
        return;
    }
    sj_uplink_slot *idle = find_idle_slot(uplink);
    if (uplink->hello_wanted && idle != NULL && uplink->in_flight[SJ_RANK_HELLO] == 0) {
        uplink->hello_wanted = false;
        const sj_slice hello = {.data = uplink->hello, .size = uplink->hello_bytes};
        if (send_frame(uplink, idle, hello, SJ_RANK_HELLO, 0) != SJ_OK) {
            uplink->hello_wanted = true;
            sj_uplink_begin_pause(uplink);
        }
        return;
    }
    if (uplink->clock_wanted && idle != NULL && uplink->status.state == SJ_UPLINK_SENDING) {
        uplink->clock_wanted = false;
        (void)!send_clock(uplink, idle); /* A later exchange replaces a lost offset. */
    }
    while (!uplink->waits && !uplink->rewind && !uplink->hello_wanted &&
           uplink->status.state != SJ_UPLINK_CONNECTING &&
           uplink->status.state != SJ_UPLINK_REFUSED) {
        /* After a pause, or without credit, one frame probes the collector. */
        const uint32_t window = uplink->pause_ms != 0 || uplink->window == 0 ? 1 : uplink->window;
        idle = find_idle_slot(uplink);
        if (idle == NULL || sj_uplink_count_in_flight(uplink) >= window || !hold_next(uplink)) {
            return;
        }
        const sj_frame_rank rank = rank_of(uplink->held);
        if (!may_send(uplink, rank)) {
            return;
        }
        if (send_frame(uplink, idle, uplink->held, rank, uplink->held_position) != SJ_OK) {
            sj_uplink_begin_pause(uplink);
            return;
        }
        idle->is_recalled = uplink->held_is_recalled;
        idle->recall_at = uplink->held_recall_at;
        uplink->recalled_in_flight += idle->is_recalled;
        uplink->held_back = false;
    }
}
