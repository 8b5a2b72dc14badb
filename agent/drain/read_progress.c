#include "agent/drain/read_progress.h"

void sj_read_progress_init(sj_read_progress *progress, sj_thread_slot *slot)
{
    *progress = (sj_read_progress){.slot = slot, .sequence = 1};
}

void sj_read_progress_resume(sj_read_progress *progress)
{
    const sj_slot_cursor *cursor = &progress->slot->cursor;
    progress->sequence = cursor->sequence != 0 ? cursor->sequence : 1;
    progress->position = cursor->position <= SJ_CHUNK_RECORDS ? cursor->position : 0;
    progress->noted_calls = cursor->noted_calls;
    progress->noted_events = cursor->noted_events;
}

/* Writes the offer to the slot. Its number says whether the other members are valid, so it is
 * cleared first and written last. */
static void write_offer(sj_thread_slot *slot, const sj_slot_offer *offer)
{
    atomic_signal_fence(memory_order_seq_cst);
    slot->offer.number = 0;
    atomic_signal_fence(memory_order_seq_cst);
    slot->offer.unsent = offer->unsent;
    slot->offer.unsent_calls = offer->unsent_calls;
    atomic_signal_fence(memory_order_seq_cst);
    slot->offer.number = offer->number;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Writes the unsent numbers to the slot, ordered against the code before and after it. Its
 * callers count so that a kill on either side makes the reported loss too large, never too
 * small. The loss after a block or a gap is exact, because of sj_slot_offer. */
static void write_unsent(const sj_read_progress *progress)
{
    atomic_signal_fence(memory_order_seq_cst);
    progress->slot->cursor.unsent = progress->unsent;
    progress->slot->unsent_calls = progress->unsent_calls + progress->waiting_entries;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Writes the unsent numbers before the position, and the reported drops after it. A kill in between
 * then makes the reported loss too large, never too small. */
void sj_read_progress_save(sj_read_progress *progress)
{
    sj_slot_cursor *cursor = &progress->slot->cursor;
    write_unsent(progress);
    cursor->position = progress->position;
    cursor->sequence = progress->sequence;
    atomic_signal_fence(memory_order_seq_cst);
    cursor->noted_calls = progress->noted_calls;
    cursor->noted_events = progress->noted_events;
    atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t subtract_down_to_zero(uint64_t from, uint64_t amount)
{
    return from > amount ? from - amount : 0;
}

void sj_read_progress_offer(sj_read_progress *progress, uint64_t number, uint64_t calls,
                            uint64_t events)
{
    const sj_slot_offer offer = {
        .number = number,
        .unsent = subtract_down_to_zero(progress->unsent, events),
        .unsent_calls =
            subtract_down_to_zero(progress->unsent_calls, calls) + progress->waiting_entries,
    };
    write_offer(progress->slot, &offer);
}

void sj_read_progress_sent(sj_read_progress *progress, uint64_t calls, uint64_t events)
{
    progress->unsent = subtract_down_to_zero(progress->unsent, events);
    progress->unsent_calls = subtract_down_to_zero(progress->unsent_calls, calls);
    write_unsent(progress);
    write_offer(progress->slot, &(sj_slot_offer){0});
}

void sj_read_progress_refused(sj_read_progress *progress)
{
    write_offer(progress->slot, &(sj_slot_offer){0});
}

void sj_read_progress_settle(sj_read_progress *progress, uint64_t calls, uint64_t events)
{
    progress->unsent = events + progress->waiting;
    progress->unsent_calls = calls;
    write_unsent(progress);
}
