#include "agent/drain/stored_offers.h"

static bool is_stored(const sj_slot_offer *offer, const sj_stored_offers *stored)
{
    const uint64_t last = (offer->number & SJ_OFFER_GAP) != 0      ? stored->gaps
                          : (offer->number & SJ_OFFER_SUMS) != 0   ? stored->summed_events
                          : (offer->number & SJ_OFFER_FLIGHT) != 0 ? stored->flight_blocks
                                                                   : stored->blocks;
    return offer->number != 0 && (offer->number & SJ_OFFER_NUMBER) <= last;
}

/* If the consumer is killed in the middle of this function, the next one calls it again. */
void sj_stored_offers_settle_slot(sj_thread_slot *slot, const sj_stored_offers *stored)
{
    if (is_stored(&slot->offer, stored)) {
        slot->cursor.unsent = slot->offer.unsent;
        slot->unsent_calls = slot->offer.unsent_calls;
    }
    atomic_signal_fence(memory_order_seq_cst);
    slot->offer.number = 0;
}

static void settle_refused(sj_refused_reports *reports, const sj_stored_offers *stored)
{
    if (reports->next_gap != 0 && reports->next_gap <= stored->gaps) {
        reports->calls = reports->calls_after;
        reports->events = reports->events_after;
        reports->has_gap = 1;
    }
    atomic_signal_fence(memory_order_seq_cst);
    reports->next_gap = 0;
}

sj_status sj_stored_offers_settle(const char *path, const sj_stored_offers *stored)
{
    sj_arena_view view;
    const sj_status status = sj_arena_view_open(path, &view);
    if (status != SJ_OK) {
        return status == SJ_ENOMEM ? status : SJ_OK;
    }
    const uint32_t begun = sj_arena_view_slots_begun(&view);
    for (uint32_t i = 0; i < begun; i++) {
        sj_stored_offers_settle_slot(sj_arena_view_slot(&view, i), stored);
    }
    settle_refused(&sj_arena_view_header(&view)->refused_reports, stored);
    sj_arena_view_close(&view);
    return SJ_OK;
}
