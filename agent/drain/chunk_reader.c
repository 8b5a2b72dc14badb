#include "agent/drain/chunk_reader.h"

#include "agent/host/clock.h"

enum {
    CLOCK_SLACK_TICKS = 1 << 20, /* maximum difference between the clocks of two processors */
    PORTION = 256 /* places whose full records, four for each place, fit into the cache */
};

void sj_chunk_reader_init(sj_chunk_reader *reader, const sj_arena_view *view, uint32_t slot,
                          sj_assembler *assembler, sj_record *buffer)
{
    *reader = (sj_chunk_reader){.view = view,
                                .slot = slot,
                                .assembler = assembler,
                                .filter = {.assembler = assembler},
                                .buffer = buffer,
                                .sequence = 1,
                                .chunk = -1};
}

void sj_chunk_reader_deinit(sj_chunk_reader *reader)
{
    sj_call_filter_deinit(&reader->filter);
    sj_receiver_rewriter_deinit(&reader->receivers);
    sj_renamed_functions_deinit(&reader->renamed);
    sj_untimed_records_free(reader->untimed);
    reader->untimed = NULL;
}

static sj_thread_slot *slot_of(const sj_chunk_reader *reader)
{
    return sj_arena_view_slot(reader->view, reader->slot);
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

void sj_chunk_reader_resume(sj_chunk_reader *reader)
{
    const sj_slot_cursor *cursor = &slot_of(reader)->cursor;
    reader->sequence = cursor->sequence != 0 ? cursor->sequence : 1;
    reader->resume_at = cursor->position <= SJ_CHUNK_RECORDS ? (uint32_t)cursor->position : 0;
    reader->noted_calls = cursor->noted_calls;
    reader->noted_events = cursor->noted_events;
}

/* Returns the number of records that no assembler has yet. They wait for the time of a later
 * record, or the filter holds them back until their calls have lasted long enough. Writes the
 * number of entries among them to `*entries`. */
static size_t count_waiting(const sj_chunk_reader *reader, size_t *entries)
{
    const size_t held = sj_call_filter_count_held(&reader->filter);
    size_t waiting = 0;
    *entries = 0;
    if (reader->untimed != NULL) {
        waiting = sj_untimed_records_waiting(reader->untimed, entries);
    }
    *entries += held;
    return waiting + held;
}

/* Writes the unsent numbers to the slot, ordered against the code before and after it. Its
 * callers count so that a kill on either side makes the reported loss too large, never too
 * small. The loss after a block or a gap is exact, because of sj_slot_offer. */
static void write_unsent(const sj_chunk_reader *reader)
{
    sj_thread_slot *slot = slot_of(reader);
    size_t entries = 0;
    (void)count_waiting(reader, &entries);
    atomic_signal_fence(memory_order_seq_cst);
    slot->cursor.unsent = reader->unsent;
    slot->unsent_calls = reader->unsent_calls + entries;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Writes the unsent numbers before the position, and the reported drops after it. A kill in between
 * then makes the reported loss too large, never too small. */
static void move_cursor(sj_chunk_reader *reader, uint64_t sequence, uint64_t position)
{
    sj_slot_cursor *cursor = &slot_of(reader)->cursor;
    write_unsent(reader);
    cursor->position = position;
    cursor->sequence = sequence;
    atomic_signal_fence(memory_order_seq_cst);
    cursor->noted_calls = reader->noted_calls;
    cursor->noted_events = reader->noted_events;
    atomic_signal_fence(memory_order_seq_cst);
}

void sj_chunk_reader_save(sj_chunk_reader *reader)
{
    move_cursor(reader, reader->sequence, reader->position + reader->feeding);
}

static uint64_t subtract_down_to_zero(uint64_t from, uint64_t amount)
{
    return from > amount ? from - amount : 0;
}

void sj_chunk_reader_offer(sj_chunk_reader *reader, uint64_t number, uint64_t calls,
                           uint64_t events)
{
    size_t entries = 0;
    (void)count_waiting(reader, &entries);
    write_offer(slot_of(reader),
                &(sj_slot_offer){
                    .number = number,
                    .unsent = subtract_down_to_zero(reader->unsent, events),
                    .unsent_calls = subtract_down_to_zero(reader->unsent_calls, calls) + entries,
                });
}

void sj_chunk_reader_sent(sj_chunk_reader *reader, uint64_t calls, uint64_t events)
{
    reader->unsent = subtract_down_to_zero(reader->unsent, events);
    reader->unsent_calls = subtract_down_to_zero(reader->unsent_calls, calls);
    write_unsent(reader);
    write_offer(slot_of(reader), &(sj_slot_offer){0});
}

void sj_chunk_reader_refused(sj_chunk_reader *reader)
{
    write_offer(slot_of(reader), &(sj_slot_offer){0});
}

void sj_chunk_reader_settle(sj_chunk_reader *reader, uint64_t calls, uint64_t events)
{
    size_t entries = 0;
    reader->unsent = events + count_waiting(reader, &entries);
    reader->unsent_calls = calls;
    write_unsent(reader);
}

/* True if the pages of a chunk have memory. An old agent may have left holes, and so may an agent
 * that died before it wrote to a chunk. */
static bool may_touch(sj_chunk_reader *reader, uint32_t chunk)
{
    const sj_arena_view *view = reader->view;
    const uint64_t bit = UINT64_C(1) << chunk;
    if ((reader->backed_chunks & bit) == 0 &&
        sj_arena_view_back(
            view,
            sj_arena_chunk_offset(view->max_threads, view->chunks_per_thread, reader->slot, chunk),
            SJ_CHUNK_BYTES)) {
        reader->backed_chunks |= bit;
    }
    return (reader->backed_chunks & bit) != 0;
}

/* Finds the chunk with the wanted sequence number. Searches only chunks that are not free, so that
 * unused chunks stay unallocated. Writes the lowest later sequence number to `*later` (0: none). */
static int find_chunk(sj_chunk_reader *reader, uint64_t *later)
{
    const sj_thread_slot *slot = sj_arena_view_slot(reader->view, reader->slot);
    const uint64_t free_chunks = atomic_load_explicit(&slot->free_chunks, memory_order_acquire);
    *later = 0;
    for (uint32_t i = 0; i < reader->view->chunks_per_thread; i++) {
        if ((free_chunks >> i & 1) != 0 || (reader->kept_chunks >> i & 1) != 0 ||
            !may_touch(reader, i)) {
            continue;
        }
        /* Pairs with the producer's release when the chunk can be read. */
        const uint64_t sequence = atomic_load_explicit(
            &sj_arena_view_chunk(reader->view, reader->slot, i)->sequence, memory_order_acquire);
        if (sequence == reader->sequence) {
            return (int)i;
        }
        if (sequence > reader->sequence && (*later == 0 || sequence < *later)) {
            *later = sequence;
        }
    }
    return -1;
}

static void count_note(sj_chunk_reader *reader, const sj_record *record, uint32_t tag)
{
    const uint32_t note = tag & SJ_RECORD_FUNCTION_MASK;
    if (tag >> SJ_RECORD_FUNCTION_BITS != SJ_RECORD_NOTE) {
        reader->has_values = true;
        return;
    }
    if (note == SJ_NOTE_REQUEST) {
        sj_call_filter_expect_request(&reader->filter);
    } else if (note == SJ_NOTE_DROPPED_CALLS) {
        reader->noted_calls += sj_record_stack(record);
        reader->unsent_calls += sj_record_stack(record);
    } else if (note == SJ_NOTE_DROPPED_EVENTS) {
        reader->noted_events += sj_record_stack(record);
        reader->unsent += sj_record_stack(record);
    }
}

sj_status sj_chunk_reader_count(sj_chunk_reader *reader, sj_call_timing *timing)
{
    uint64_t low = 0;
    uint64_t high = 0;
    sj_arena_view_stack(slot_of(reader), &low, &high);
    reader->timing = timing;
    reader->untimed = sj_untimed_records_new(timing, low, high, reader->view->has_distances);
    return reader->untimed != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Returns the number of records in a place, minus one. */
static uint32_t count_shorts(const sj_record *place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        count += sj_short_function(sj_record_word(place, i)) != 0;
    }
    return count - 1;
}

/* True if a place is partly filled. That happens to the last place of a thread, if the thread or
 * its recording has ended. */
static bool is_partly_written(const sj_record *place)
{
    return sj_arena_record_tag(place) == 0 && sj_word_is_short(sj_record_word(place, 0));
}

/* Copies the written places from `from` on to the buffer, because the program could still change
 * them. Counts their records. Returns the number of places. */
static uint32_t copy_ready(sj_chunk_reader *reader, const sj_record *records, uint32_t from,
                           uint32_t limit)
{
    uint32_t at = from;
    uint32_t others = 0;
    for (; at < limit; at++) {
        const uint32_t tag = sj_arena_record_tag(&records[at]);
        if (tag == 0) {
            break;
        }
        if (sj_word_is_short(tag)) {
            if (!sj_arena_place_is_written(&records[at])) {
                break;
            }
            reader->has_shorts = true;
            others -= count_shorts(&records[at]);
            reader->short_records += count_shorts(&records[at]) + 1;
            continue;
        }
        if (tag >= (uint32_t)SJ_RECORD_NOTE << SJ_RECORD_FUNCTION_BITS) {
            count_note(reader, &records[at], tag);
            others++;
        }
    }
    reader->unsent += at - from - others;
    memcpy(reader->buffer, records + from, (size_t)(at - from) * sizeof(*records));
    return at - from;
}

static bool has_unwritten(const sj_record *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!sj_arena_place_is_written(&records[i])) {
            return true;
        }
    }
    return false;
}

/* Returns the number of places of a chunk that may hold data. */
static uint32_t reserved_records(sj_chunk_header *header)
{
    /* Pairs with the producer's release when it closes the chunk. */
    const uint32_t closed = atomic_load_explicit(&header->closed_records, memory_order_acquire);
    return closed < SJ_CHUNK_RECORDS ? closed : SJ_CHUNK_RECORDS;
}

static void finish_chunk(sj_chunk_reader *reader, sj_chunk_header *header)
{
    const uint32_t chunk = (uint32_t)reader->chunk;
    /* Before the chunk is returned: its records cannot be read again. */
    move_cursor(reader, reader->sequence + 1, 0);
    if (reader->has_holes &&
        has_unwritten(sj_arena_chunk_records(header), reserved_records(header))) {
        reader->kept_chunks |= UINT64_C(1) << chunk;
    } else {
        sj_arena_view_release(reader->view, reader->slot, chunk);
    }
    reader->chunk = -1;
    reader->position = 0;
    reader->has_holes = false;
    reader->stalled_ns = 0;
    reader->sequence++;
}

/* Returns kept chunks to their thread once their missing records have been written. */
static void release_kept(sj_chunk_reader *reader)
{
    for (uint32_t i = 0; reader->kept_chunks != 0 && i < SJ_ARENA_MAX_CHUNKS; i++) {
        sj_chunk_header *header;
        if ((reader->kept_chunks >> i & 1) == 0) {
            continue;
        }
        header = sj_arena_view_chunk(reader->view, reader->slot, i);
        if (!has_unwritten(sj_arena_chunk_records(header), reserved_records(header))) {
            reader->kept_chunks &= ~(UINT64_C(1) << i);
            sj_arena_view_release(reader->view, reader->slot, i);
        }
    }
}

/* Returns the position in the chunk after which no record was ever written. */
static uint32_t written_end(const sj_chunk_reader *reader, uint32_t limit)
{
    const sj_arena_view *view = reader->view;
    const uint64_t first = sj_arena_chunk_offset(view->max_threads, view->chunks_per_thread,
                                                 reader->slot, (uint32_t)reader->chunk) +
                           SJ_CHUNK_HEADER_BYTES;
    const uint64_t start = first + (uint64_t)reader->position * SJ_RECORD_BYTES;
    const uint64_t end =
        sj_arena_view_data_end(view, start, first + (uint64_t)limit * SJ_RECORD_BYTES);
    return (uint32_t)((end - first) / SJ_RECORD_BYTES);
}

/* Skips the unwritten records at `position` if written records follow, and counts them as torn.
 * Sets `*skipped` to false if no written record follows yet. */
static sj_status skip_hole(sj_chunk_reader *reader, const sj_record *records, uint32_t limit,
                           bool is_closed, bool *skipped)
{
    const uint32_t end = is_closed ? limit : written_end(reader, limit);
    uint32_t next = reader->position;
    while (next < end && !sj_arena_place_is_written(&records[next])) {
        next++;
    }
    *skipped = next < end || is_closed;
    if (!*skipped) {
        return SJ_OK;
    }
    const uint32_t count = next - reader->position;
    SJ_TRY(sj_chunk_reader_settle_times(reader));
    if (reader->untimed != NULL) {
        sj_untimed_records_lost(reader->untimed);
    }
    reader->torn += count;
    reader->unsent += count;
    reader->has_holes = true;
    reader->position = next;
    /* The content of the records is unknown, so they count as events, not calls. */
    return sj_assembler_add_loss(reader->assembler, SJ_GAP_TORN, 0, count, sj_clock_ticks());
}

/* Passes on records whose times are all known. */
static sj_status pass(sj_chunk_reader *reader, sj_record *records, uint32_t count,
                      uint64_t now_ticks)
{
    SJ_TRY(sj_renamed_functions_follow(&reader->renamed));
    SJ_TRY(sj_renamed_functions_translate(&reader->renamed, records, count));
    if (reader->has_values || !sj_receiver_rewriter_are_idle(&reader->receivers)) {
        SJ_TRY(sj_receiver_rewriter_translate(&reader->receivers, records, &count, now_ticks));
    }
    return sj_call_filter_feed(&reader->filter, records, count, now_ticks);
}

/* Passes on the records in some places, which may hold short records. */
static sj_status feed_portion(sj_chunk_reader *reader, const sj_record *places, uint32_t count,
                              uint64_t now_ticks)
{
    sj_record *records = NULL;
    size_t record_count = 0;
    uint64_t undecided = 0;
    SJ_TRY(sj_untimed_records_read(reader->untimed, places, count, now_ticks, &records,
                                   &record_count, &undecided));
    SJ_TRY(pass(reader, records, (uint32_t)record_count, now_ticks));
    if (undecided == 0) {
        return SJ_OK;
    }
    const uint64_t calls = sj_untimed_records_undecided_calls(reader->untimed);
    reader->unsent_calls += calls;
    return sj_assembler_add_loss(reader->assembler, SJ_GAP_TORN, calls, undecided, now_ticks);
}

/* Passes on the first `ready` places of the buffer. */
static sj_status feed(sj_chunk_reader *reader, uint32_t ready)
{
    /* After the copy: no record may be later than the clock that extends its time. */
    const uint64_t now_ticks = sj_clock_ticks() + CLOCK_SLACK_TICKS;
    if (reader->has_shorts && reader->untimed == NULL) {
        SJ_TRY(sj_chunk_reader_count(reader, NULL));
    }
    if (reader->untimed == NULL) {
        const sj_status status = pass(reader, reader->buffer, ready, now_ticks);
        reader->has_values = false;
        return status;
    }
    for (uint32_t at = 0; at < ready; at += PORTION) {
        const uint32_t count = ready - at < PORTION ? ready - at : PORTION;
        SJ_TRY(feed_portion(reader, reader->buffer + at, count, now_ticks));
    }
    /* The records kept for the next call may include a value. */
    reader->has_values = reader->has_values && sj_untimed_records_are_kept(reader->untimed);
    return SJ_OK;
}

sj_status sj_chunk_reader_settle_times(sj_chunk_reader *reader)
{
    if (reader->untimed == NULL) {
        return SJ_OK;
    }
    const uint64_t now_ticks = sj_clock_ticks() + CLOCK_SLACK_TICKS;
    sj_record *records = NULL;
    size_t count = 0;
    SJ_TRY(sj_untimed_records_settle(reader->untimed, sj_clock_ticks(), &records, &count));
    return pass(reader, records, (uint32_t)count, now_ticks);
}

/* Feeds a partly filled place, after which nothing more will be read. */
static sj_status feed_part(sj_chunk_reader *reader, const sj_record *place)
{
    reader->buffer[0] = *place;
    reader->has_shorts = true;
    /* counts the copy: the original may change */
    const uint32_t count = count_shorts(reader->buffer) + 1;
    reader->unsent += count;
    reader->short_records += count;
    reader->feeding = 1;
    SJ_TRY(feed(reader, 1));
    reader->position++;
    reader->records++;
    reader->feeding = 0;
    return SJ_OK;
}

/* Feeds the readable records of the current chunk. Sets `*more` if the reader has to search for
 * another chunk. */
static sj_status read_chunk(sj_chunk_reader *reader, sj_read_mode mode, uint64_t now_ns,
                            uint64_t *count, bool *more)
{
    sj_chunk_header *header =
        sj_arena_view_chunk(reader->view, reader->slot, (uint32_t)reader->chunk);
    const sj_record *records = sj_arena_chunk_records(header);
    for (;;) {
        /* Pairs with the producer's release when it closes the chunk. */
        const uint32_t closed = atomic_load_explicit(&header->closed_records, memory_order_acquire);
        const bool is_closed = closed != UINT32_MAX;
        const uint32_t limit = closed < SJ_CHUNK_RECORDS ? closed : SJ_CHUNK_RECORDS;
        if (mode == SJ_READ_CLOSED && !is_closed) {
            return SJ_OK;
        }
        if (reader->position < limit) {
            const uint32_t ready = copy_ready(reader, records, reader->position, limit);
            if (ready != 0) {
                reader->feeding = ready;
                SJ_TRY(feed(reader, ready));
                reader->position += ready;
                reader->records += ready;
                reader->feeding = 0;
                reader->stalled_ns = 0;
                *count += ready;
            }
        }
        if (is_closed && reader->position >= limit) {
            finish_chunk(reader, header);
            *more = true;
            return SJ_OK;
        }
        if (reader->position >= limit) {
            break;
        }
        if (reader->stalled_ns == 0) {
            reader->stalled_ns = now_ns;
        }
        bool skipped = false;
        if (mode >= SJ_READ_REST && is_partly_written(&records[reader->position])) {
            SJ_TRY(feed_part(reader, &records[reader->position]));
            *count += 1;
            continue;
        }
        if (mode >= SJ_READ_REST || now_ns - reader->stalled_ns >= SJ_TORN_NS) {
            SJ_TRY(skip_hole(reader, records, limit, is_closed, &skipped));
            /* No record follows: the thread is idle. Check again after the same time. */
            reader->stalled_ns = now_ns;
        }
        if (!skipped) {
            break;
        }
    }
    /* The last chunk of an ended thread stays open. A chunk left open in a crash may not be the
     * last one. */
    if (mode == SJ_READ_LAST) {
        reader->kept_chunks |= UINT64_C(1) << reader->chunk;
        reader->chunk = -1;
        reader->position = 0;
        reader->sequence++;
        *more = true;
    }
    return SJ_OK;
}

sj_status sj_chunk_reader_read(sj_chunk_reader *reader, sj_read_mode mode, uint64_t now_ns,
                               uint64_t *count)
{
    bool more = true;
    /* A limit, so that a thread that writes as fast as the drain reads does not delay other
     * work. */
    uint32_t chunks_left = reader->view->chunks_per_thread + 1;
    *count = 0;
    if (mode == SJ_READ_ALL && reader->kept_chunks != 0) {
        release_kept(reader);
    }
    while (more && (chunks_left != 0 || mode == SJ_READ_LAST)) {
        more = false;
        chunks_left -= mode != SJ_READ_LAST;
        if (reader->chunk < 0) {
            uint64_t later = 0;
            reader->chunk = find_chunk(reader, &later);
            if (reader->chunk < 0 && mode == SJ_READ_LAST && later != 0) {
                reader->sequence = later;
                reader->resume_at = 0;
                more = true;
                continue;
            }
            if (reader->chunk < 0) {
                return SJ_OK;
            }
            reader->position = reader->resume_at;
            reader->resume_at = 0;
        }
        SJ_TRY(read_chunk(reader, mode, now_ns, count, &more));
    }
    return SJ_OK;
}
