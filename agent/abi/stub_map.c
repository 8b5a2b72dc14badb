#include "agent/abi/stub_map.h"

#include "agent/abi/machine.h"

/* Freestanding: linked into the agent. */

enum { PLACE_MASK = (1 << SJ_STUB_KIND_SHIFT) - 1, STACK_MASK = (1 << SJ_STUB_STACK_BITS) - 1 };

/* On AArch64, a frame of at least this size holds the link register in its second word. */
enum { LINK_FRAME_BYTES = 48, LINK_AT = 8, MOST_CALLS = 4 };

static bool read_area(uint64_t low, uint64_t bytes, sj_stub_read *read, void *context,
                      sj_stub_area *area)
{
    return bytes >= SJ_STUB_AREA_OFFSET + sizeof(*area) &&
           read(context, low + SJ_STUB_AREA_OFFSET, area, sizeof(*area)) &&
           area->magic == SJ_STUB_AREA_MAGIC && area->code_end <= bytes && area->map <= bytes &&
           area->count <= (bytes - area->map) / sizeof(sj_stub_entry);
}

/* Reads the last entry that starts at or before `offset`. */
static bool find_entry(const sj_stub_area *area, uint64_t low, uint64_t offset, sj_stub_read *read,
                       void *context, sj_stub_entry *entry)
{
    const uint32_t wanted = (uint32_t)offset << SJ_STUB_STACK_BITS | STACK_MASK;
    uint64_t at = low + area->map;
    uint32_t count = area->count;
    sj_stub_entry middle;
    while (count > 1) {
        const uint32_t half = count / 2;
        const uint64_t middle_at = at + half * sizeof(middle);
        if (!read(context, middle_at, &middle, sizeof(middle))) {
            return false;
        }
        at = middle.start <= wanted ? middle_at : at;
        count -= half;
    }
    return count == 1 && read(context, at, entry, sizeof(*entry)) && entry->start <= wanted;
}

bool sj_stub_find(uint64_t low, uint64_t bytes, uint64_t pc, sj_stub_read *read, void *context,
                  sj_stub_place *place)
{
    sj_stub_area area;
    sj_stub_entry entry;
    const uint64_t offset = pc - low;
    if (offset >= bytes || !read_area(low, bytes, read, context, &area) ||
        offset >= area.code_end || !find_entry(&area, low, offset, read, context, &entry)) {
        return false;
    }
    place->kind = (sj_stub_kind)(entry.place >> SJ_STUB_KIND_SHIFT);
    place->stack = (int32_t)(entry.start & STACK_MASK) * SJ_STUB_STACK_WORD + SJ_STUB_STACK_LEAST;
    place->address = low + (uint64_t)area.text + (entry.place & PLACE_MASK);
    if (place->kind == SJ_STUB_COPY) {
        place->address += offset - (entry.start >> SJ_STUB_STACK_BITS);
    }
    return true;
}

/* Returns from code that a stub called: sets pc and sp as its return instruction would. `stack` is
 * the distance from sp to the value of sp at the code's start. */
static bool return_from(sj_stub_state *state, int32_t stack, sj_stub_read *read, void *context)
{
    const uint64_t at = state->sp + (uint64_t)(int64_t)stack;
    if (SJ_MACHINE_CALL_PUSHES) {
        state->sp = at + sizeof(state->pc);
        return read(context, at, &state->pc, sizeof(state->pc));
    }
    if (stack != 0) {
        return read(context, at, &state->pc, sizeof(state->pc));
    }
    state->pc = state->link;
    return true;
}

/* Moves pc to the program's instruction, and undoes the probe's change of the stack pointer. */
static bool leave_probe(sj_stub_state *state, const sj_stub_place *place, sj_stub_read *read,
                        void *context)
{
    const uint64_t sp = state->sp;
    state->pc = place->address;
    state->sp = sp + (uint64_t)(int64_t)place->stack;
    return SJ_MACHINE_CALL_PUSHES || place->stack < LINK_FRAME_BYTES ||
           read(context, sp + LINK_AT, &state->link, sizeof(state->link));
}

bool sj_stub_leave(uint64_t low, uint64_t bytes, sj_stub_read *read, void *context,
                   sj_stub_state *state)
{
    sj_stub_state left = *state;
    sj_stub_place place;
    for (uint32_t calls = 0; calls < MOST_CALLS; calls++) {
        /* A return address may be that of the next place, so look up the call before it. */
        const uint64_t at = left.pc - (left.is_behind ? 1 : 0);
        if (!sj_stub_find(low, bytes, at, read, context, &place)) {
            const bool has_left = left.is_behind && left.pc - low >= bytes;
            *state = has_left ? left : *state;
            return has_left;
        }
        if (place.kind == SJ_STUB_FIXED || place.kind == SJ_STUB_COPY) {
            left.is_behind = false;
            const bool has_left = leave_probe(&left, &place, read, context);
            *state = has_left ? left : *state;
            return has_left;
        }
        if (place.kind != SJ_STUB_CALLED || !return_from(&left, place.stack, read, context)) {
            return false;
        }
        left.is_behind = true;
    }
    return false;
}
