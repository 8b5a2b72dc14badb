#include "agent/inproc/hooks/stub_notes.h"

#include "agent/inproc/hooks/unwind_table.h"

#include <string.h>

enum { PLACE_END = 1 << SJ_STUB_KIND_SHIFT };

/* The word for code whose place is unknown: unwinding ends there. */
#define UNKNOWN_PLACE ((uint32_t)SJ_STUB_UNKNOWN << SJ_STUB_KIND_SHIFT | (uint32_t)(PLACE_END - 1))

/* Returns an entry's `start` word: the offset, and the stack's distance in words. */
static uint32_t start_of(uint64_t offset, int32_t stack)
{
    const int32_t words = (stack - SJ_STUB_STACK_LEAST) / SJ_STUB_STACK_WORD;
    return (uint32_t)offset << SJ_STUB_STACK_BITS | (uint32_t)words;
}

/* Returns an entry's `place` word. `distance` is the place's distance from the start of the text.
 * Code that replaces no instruction of the text gets UNKNOWN_PLACE, except code that stubs call. */
static uint32_t place_of(sj_stub_kind kind, uint64_t distance)
{
    if (kind == SJ_STUB_FIXED || kind == SJ_STUB_COPY) {
        return distance < PLACE_END ? (uint32_t)kind << SJ_STUB_KIND_SHIFT | (uint32_t)distance
                                    : UNKNOWN_PLACE;
    }
    return kind == SJ_STUB_CALLED ? (uint32_t)kind << SJ_STUB_KIND_SHIFT : UNKNOWN_PLACE;
}

/* True if `entry` also describes the code at `next`, so that `next` is not needed. */
static bool continues(const sj_stub_entry *entry, const sj_stub_entry *next)
{
    const uint32_t stack_mask = (1 << SJ_STUB_STACK_BITS) - 1;
    const uint32_t bytes =
        (next->start >> SJ_STUB_STACK_BITS) - (entry->start >> SJ_STUB_STACK_BITS);
    const bool is_copy = next->place >> SJ_STUB_KIND_SHIFT == SJ_STUB_COPY;
    return (entry->start & stack_mask) == (next->start & stack_mask) &&
           entry->place + (is_copy ? bytes : 0) == next->place;
}

/* Appends an entry, unless the last entry also describes its code. Replaces the last entry if it
 * starts at the same code. */
static void append_entry(sj_stub_stream *stream, const sj_stub_entry *entry)
{
    const bool replaces = stream->count != 0 && stream->last.start >> SJ_STUB_STACK_BITS ==
                                                    entry->start >> SJ_STUB_STACK_BITS;
    if (stream->count != 0 && !replaces && continues(&stream->last, entry)) {
        return;
    }
    stream->count += replaces ? 0 : 1;
    stream->last = *entry;
    if (stream->entries != NULL && stream->count <= stream->capacity) {
        stream->entries[stream->count - 1] = *entry;
    }
}

/* Notes the current place for the code from `*at` on, where the stack pointer is `stack` bytes away
 * from its value at the place. */
static void note_place(sj_code_emitter *emitter, const uint64_t *at, int32_t stack)
{
    sj_stub_notes *notes = emitter->notes;
    if (notes == NULL) {
        return;
    }
    const sj_stub_entry entry = {.start = start_of(*at - notes->area, stack),
                                 .place = place_of(notes->kind, notes->place - notes->text)};
    append_entry(at == &emitter->cold_at ? &notes->cold : &notes->main, &entry);
}

void sj_code_begin_place(sj_code_emitter *emitter, sj_stub_kind kind, uint64_t address)
{
    if (emitter->notes != NULL) {
        emitter->notes->kind = kind;
        emitter->notes->place = address;
        note_place(emitter, &emitter->at, 0);
    }
}

void sj_code_note_stack(sj_code_emitter *emitter, const uint64_t *at, int32_t stack)
{
    note_place(emitter, at, stack);
}

/* Fills unused entries with the last entry. Entries remain unused if a stub turned out to be too
 * far away. */
static void fill_unused(const sj_stub_stream *stream)
{
    for (uint32_t i = stream->count; i < stream->capacity; i++) {
        stream->entries[i] = stream->last;
    }
}

void sj_stub_notes_finish(const sj_stub_notes *notes, uint32_t map, uint32_t code_end)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)notes->area;
    const sj_stub_area area = {.magic = SJ_STUB_AREA_MAGIC,
                               .text = (int64_t)(notes->text - notes->area),
                               .map = map,
                               .count = notes->main.capacity + notes->cold.capacity,
                               .code_end = code_end};
    fill_unused(&notes->main);
    fill_unused(&notes->cold);
    memcpy(bytes + SJ_STUB_AREA_OFFSET, &area, sizeof(area));
    sj_stub_notes_write_unwind(bytes);
}

void sj_stub_notes_write_unwind(uint8_t *area)
{
    enum { UNWIND = SJ_STUB_AREA_OFFSET + sizeof(sj_stub_area) };
    const uint32_t capacity = UNWIND;
    sj_stub_area *head = (sj_stub_area *)(void *)(area + SJ_STUB_AREA_OFFSET);
    if (head->magic == SJ_STUB_AREA_MAGIC) {
        head->unwind = sj_unwind_table_write(area, area + UNWIND) != 0 ? capacity : 0;
    }
}
