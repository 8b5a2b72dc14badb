#include "agent/drain/chunk_reader.h"

#include "agent/host/clock.h"

enum { CLOCK_SLACK_TICKS = 1 << 20 /* maximum difference between the clocks of two processors */ };

void sj_chunk_reader_init(sj_chunk_reader *reader, const sj_arena_view *view, uint32_t slot,
                          sj_read_progress *progress, sj_record *buffer)
{
    *reader = (sj_chunk_reader){
        .view = view, .slot = slot, .progress = progress, .buffer = buffer, .chunk = -1};
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
        if (sequence == reader->progress->sequence) {
            return (int)i;
        }
        if (sequence > reader->progress->sequence && (*later == 0 || sequence < *later)) {
            *later = sequence;
        }
    }
    return -1;
}

static void count_note(sj_chunk_reader *reader, const sj_record *record, sj_record_batch *batch)
{
    sj_read_progress *progress = reader->progress;
    const uint32_t tag = sj_record_tag(record);
    const uint32_t note = tag & SJ_RECORD_FUNCTION_MASK;
    if (tag >> SJ_RECORD_FUNCTION_BITS != SJ_RECORD_NOTE) {
        batch->has_values = true;
    } else if (note == SJ_NOTE_REQUEST) {
        batch->has_request = true;
    } else if (note == SJ_NOTE_DROPPED_CALLS) {
        progress->noted_calls += sj_record_stack(record);
        progress->unsent_calls += sj_record_stack(record);
    } else if (note == SJ_NOTE_DROPPED_EVENTS) {
        progress->noted_events += sj_record_stack(record);
        progress->unsent += sj_record_stack(record);
    }
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

/* Returns a time for a batch. Call it after its records were copied: no record may be later than
 * the clock that extends its time. */
static uint64_t batch_ticks(void)
{
    return sj_clock_ticks() + CLOCK_SLACK_TICKS;
}

/* Completes a batch of `count` places, which the buffer holds. `events` of them are events. */
static void fill_batch(sj_chunk_reader *reader, uint32_t count, uint32_t events,
                       sj_record_batch *batch)
{
    batch->records = reader->buffer;
    batch->count = count;
    batch->now_ticks = batch_ticks();
    reader->progress->position += count;
    reader->progress->unsent += events;
    reader->stalled_ns = 0;
}

/* Copies the written places up to `limit` to the buffer, because the program could still change
 * them. Counts their records. Returns false if no place is written. */
static bool read_places(sj_chunk_reader *reader, const sj_record *records, sj_record_batch *batch)
{
    const uint32_t from = (uint32_t)reader->progress->position;
    uint32_t at = from;
    uint32_t others = 0;
    for (; at < reader->limit; at++) {
        const uint32_t tag = sj_arena_record_tag(&records[at]);
        if (tag == 0) {
            break;
        }
        if (sj_word_is_short(tag)) {
            if (!sj_arena_place_is_written(&records[at])) {
                break;
            }
            batch->has_shorts = true;
            others -= count_shorts(&records[at]);
            reader->short_records += count_shorts(&records[at]) + 1;
            continue;
        }
        if (tag >= (uint32_t)SJ_RECORD_NOTE << SJ_RECORD_FUNCTION_BITS) {
            count_note(reader, &records[at], batch);
            others++;
        }
    }
    if (at == from) {
        return false;
    }
    memcpy(reader->buffer, records + from, (size_t)(at - from) * sizeof(*records));
    fill_batch(reader, at - from, at - from - others, batch);
    return true;
}

/* Reads a partly filled place, after which nothing more will be read. */
static void read_part(sj_chunk_reader *reader, const sj_record *place, sj_record_batch *batch)
{
    reader->buffer[0] = *place;
    batch->has_shorts = true;
    /* counts the copy: the original may change */
    const uint32_t count = count_shorts(reader->buffer) + 1;
    reader->short_records += count;
    fill_batch(reader, 1, count, batch);
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

static void start_next_chunk(sj_chunk_reader *reader)
{
    reader->chunk = -1;
    reader->progress->position = 0;
    reader->progress->sequence++;
}

static void finish_chunk(sj_chunk_reader *reader, sj_chunk_header *header)
{
    const uint32_t chunk = (uint32_t)reader->chunk;
    start_next_chunk(reader);
    /* Before the chunk is returned: its records cannot be read again. */
    sj_read_progress_save(reader->progress);
    if (reader->has_holes &&
        has_unwritten(sj_arena_chunk_records(header), reserved_records(header))) {
        reader->kept_chunks |= UINT64_C(1) << chunk;
    } else {
        sj_arena_view_release(reader->view, reader->slot, chunk);
    }
    reader->has_holes = false;
    reader->stalled_ns = 0;
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
static uint32_t written_end(const sj_chunk_reader *reader)
{
    const sj_arena_view *view = reader->view;
    const uint64_t first = sj_arena_chunk_offset(view->max_threads, view->chunks_per_thread,
                                                 reader->slot, (uint32_t)reader->chunk) +
                           SJ_CHUNK_HEADER_BYTES;
    const uint64_t start = first + reader->progress->position * SJ_RECORD_BYTES;
    const uint64_t end =
        sj_arena_view_data_end(view, start, first + (uint64_t)reader->limit * SJ_RECORD_BYTES);
    return (uint32_t)((end - first) / SJ_RECORD_BYTES);
}

/* Skips the unwritten records at the position if written records follow, and counts them as torn.
 * Returns false if no written record follows yet. */
static bool skip_hole(sj_chunk_reader *reader, const sj_record *records, sj_record_batch *batch)
{
    sj_read_progress *progress = reader->progress;
    const uint32_t end = reader->is_closed ? reader->limit : written_end(reader);
    uint32_t next = (uint32_t)progress->position;
    while (next < end && !sj_arena_place_is_written(&records[next])) {
        next++;
    }
    if (next >= end && !reader->is_closed) {
        return false;
    }
    /* The content of the records is unknown, so they count as events, not calls. */
    batch->now_ticks = batch_ticks();
    batch->lost_events = next - progress->position;
    reader->torn += batch->lost_events;
    reader->has_holes = true;
    progress->unsent += batch->lost_events;
    progress->position = next;
    return true;
}

/* Reads the current chunk's state. Returns false if the mode lets the reader not touch the chunk
 * yet. */
static bool may_read(sj_chunk_reader *reader, sj_chunk_header *header)
{
    /* Pairs with the producer's release when it closes the chunk. */
    const uint32_t closed = atomic_load_explicit(&header->closed_records, memory_order_acquire);
    reader->is_closed = closed != UINT32_MAX;
    reader->limit = closed < SJ_CHUNK_RECORDS ? closed : SJ_CHUNK_RECORDS;
    return reader->is_closed || reader->mode != SJ_READ_CLOSED;
}

/* Reads what the position is at, if no written place is there. Returns false if nothing more can be
 * read there now. */
static bool read_hole(sj_chunk_reader *reader, const sj_record *records, sj_record_batch *batch)
{
    const sj_record *place = &records[reader->progress->position];
    if (reader->stalled_ns == 0) {
        reader->stalled_ns = reader->now_ns;
    }
    if (reader->mode >= SJ_READ_REST && is_partly_written(place)) {
        read_part(reader, place, batch);
        return true;
    }
    if (reader->mode < SJ_READ_REST && reader->now_ns - reader->stalled_ns < SJ_TORN_NS) {
        return false;
    }
    const bool is_skipped = skip_hole(reader, records, batch);
    /* No record follows: the thread is idle. Check again after the same time. */
    reader->stalled_ns = reader->now_ns;
    return is_skipped;
}

typedef enum chunk_step {
    STEP_BATCH, /* the batch has records or a loss */
    STEP_NEXT_CHUNK,
    STEP_END
} chunk_step;

/* The last chunk of an ended thread stays open. A chunk left open in a crash may not be the last
 * one. */
static chunk_step leave_open_chunk(sj_chunk_reader *reader)
{
    if (reader->mode != SJ_READ_LAST) {
        return STEP_END;
    }
    reader->kept_chunks |= UINT64_C(1) << reader->chunk;
    start_next_chunk(reader);
    return STEP_NEXT_CHUNK;
}

/* Reads the next batch of the current chunk. */
static chunk_step read_chunk(sj_chunk_reader *reader, sj_record_batch *batch)
{
    sj_chunk_header *header =
        sj_arena_view_chunk(reader->view, reader->slot, (uint32_t)reader->chunk);
    const sj_record *records = sj_arena_chunk_records(header);
    do {
        if (!reader->has_read_ready) {
            if (!may_read(reader, header)) {
                return STEP_END;
            }
            reader->has_read_ready = true;
            if (read_places(reader, records, batch)) {
                return STEP_BATCH;
            }
        }
        reader->has_read_ready = false;
        if (reader->progress->position >= reader->limit) {
            if (!reader->is_closed) {
                return leave_open_chunk(reader);
            }
            finish_chunk(reader, header);
            return STEP_NEXT_CHUNK;
        }
        if (!read_hole(reader, records, batch)) {
            return leave_open_chunk(reader);
        }
    } while (batch->count == 0 && batch->lost_events == 0);
    return STEP_BATCH;
}

/* Finds the chunk at which the progress stands. In an ended thread, passes missing chunks. */
static bool enter_chunk(sj_chunk_reader *reader)
{
    uint64_t later = 0;
    reader->chunk = find_chunk(reader, &later);
    if (reader->chunk < 0 && reader->mode == SJ_READ_LAST && later != 0) {
        reader->progress->sequence = later;
        reader->progress->position = 0;
        reader->chunk = find_chunk(reader, &later);
    }
    return reader->chunk >= 0;
}

void sj_chunk_reader_start(sj_chunk_reader *reader, sj_read_mode mode, uint64_t now_ns)
{
    reader->mode = mode;
    reader->now_ns = now_ns;
    reader->has_read_ready = false;
    /* A limit, so that a thread that writes as fast as the drain reads does not delay other
     * work. */
    reader->chunks_left = mode == SJ_READ_LAST ? UINT32_MAX : reader->view->chunks_per_thread + 1;
    if (mode == SJ_READ_ALL && reader->kept_chunks != 0) {
        release_kept(reader);
    }
}

bool sj_chunk_reader_next(sj_chunk_reader *reader, sj_record_batch *batch)
{
    *batch = (sj_record_batch){0};
    while (reader->chunks_left != 0) {
        const chunk_step step =
            reader->chunk >= 0 || enter_chunk(reader) ? read_chunk(reader, batch) : STEP_END;
        if (step == STEP_BATCH) {
            return true;
        }
        reader->chunks_left -= step == STEP_END ? reader->chunks_left : 1;
        reader->has_read_ready = false;
    }
    return false;
}
