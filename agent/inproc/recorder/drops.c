/* Design notes
 *
 * The window holds the dropped records in order. When the recorder counts them, it follows the
 * calls of the thread's own stack. A call that began and ended among them is lost. The entry of an
 * open call stays at the start of the window and moves into the next chunk. So the recorder loses
 * calls, but later calls keep their callers.
 *
 * This knowledge is unsure if the window does not show everything. It does not show records of
 * other stacks, of runtimes without addresses, without a clock, or of handlers in the slow path. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

/* The trash area, which is never read. It holds one chunk at an aligned address. All threads that
 * cannot or must not record share it. */
static uint8_t trash[2 * SJ_CHUNK_BYTES];

enum { KEPT_RECORDS = SJ_DISCARD_RECORDS / 2 };

static uint64_t window_start(const sj_recorder_thread *self)
{
    const uint32_t thread = (uint32_t)(self->slot - sj_recorder.slots);
    return (uint64_t)(uintptr_t)sj_recorder.arena +
           sj_arena_discard_offset(sj_recorder.arena->max_threads,
                                   sj_recorder.arena->chunks_per_thread, thread);
}

void sj_recorder_count_drop(sj_recorder_thread *self, uint64_t calls, uint64_t events)
{
    self->drop_calls += calls;
    self->drop_events += events;
    sj_recorder_add(&self->slot->dropped_calls, calls);
    sj_recorder_add(&self->slot->dropped_events, events);
}

/* Counts and zeroes the short records of a slot. Returns false if one of them is not yet written.
 */
static bool count_shorts(uint64_t record, uint64_t *calls, uint64_t *events)
{
    uint64_t entered = 0;
    uint64_t found = 0;
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        const uint32_t word = *(const volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES);
        if (word == 0) {
            return false;
        }
        found += sj_short_function(word) != 0;
        entered += sj_short_function(word) != 0 && !sj_short_is_exit(word);
    }
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        *(volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES) = 0;
    }
    *calls += entered;
    *events += found;
    return true;
}

/* Zeroes a slot, because parts of its time or stack could be read as short records. */
static void zero_place(uint64_t record)
{
    atomic_store_explicit((_Atomic uint32_t *)(record + 12), 0, memory_order_relaxed);
    for (uint32_t i = 0; i + 1 < SJ_SHORTS; i++) {
        *(volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES) = 0;
    }
}

static void move_place(uint64_t to, uint64_t from)
{
    const volatile uint32_t *words = (const volatile uint32_t *)from;
    const uint32_t tag = words[SJ_SHORTS - 1];
    for (uint32_t i = 0; i + 1 < SJ_SHORTS; i++) {
        ((volatile uint32_t *)to)[i] = words[i];
    }
    /* A nonzero tag marks a complete record. */
    atomic_store_explicit((_Atomic uint32_t *)(to + 12), tag, memory_order_release);
    if (to != from) {
        zero_place(from);
    }
}

/* One pass over a window. */
typedef struct window_count {
    sj_recorder_thread *self;
    uint64_t start;
    uint64_t calls;
    uint64_t events;
} window_count;

static uint64_t place_at(const window_count *window, uint32_t number)
{
    return window->start + (uint64_t)number * SJ_RECORD_BYTES;
}

static void count_place(window_count *window, uint64_t record, uint32_t tag)
{
    window->events += 1;
    window->calls += sj_record_calls(tag);
    zero_place(record);
}

/* Ends the calls at `stack` and below. */
static void end_calls(window_count *window, uint64_t stack)
{
    sj_recorder_open_calls *open = &window->self->open;
    while (open->kept > 0) {
        const uint64_t place = place_at(window, open->kept - 1);
        const sj_record *entry = (const sj_record *)place;
        if (sj_record_frame(entry) > stack) {
            break;
        }
        count_place(window, place, sj_record_tag(entry));
        open->kept--;
    }
    open->unkept_stack = open->unkept_stack > stack ? open->unkept_stack : 0;
    open->ended_stack = open->ended_stack > stack ? open->ended_stack : stack;
}

/* Keeps a record after those that are kept already, or counts it. */
static void keep_record(window_count *window, uint64_t place, uint64_t stack, uint32_t tag)
{
    sj_recorder_open_calls *open = &window->self->open;
    if (open->unkept_stack == 0 && open->kept < KEPT_RECORDS) {
        move_place(place_at(window, open->kept), place);
        open->kept++;
        return;
    }
    open->unkept_stack = open->unkept_stack != 0 ? open->unkept_stack : stack;
    count_place(window, place, tag);
}

/* Ends the call that has made a tail call, if there is one: the entry of its callee is among the
 * dropped records. */
static void end_jumped_call(window_count *window)
{
    sj_recorder_open_calls *open = &window->self->open;
    if (open->has_jumped) {
        open->has_jumped = false;
        end_calls(window, sj_record_frame((const sj_record *)place_at(window, open->kept - 1)));
    }
}

static void follow_call(window_count *window, uint64_t place, uint64_t stack, uint32_t tag)
{
    sj_recorder_open_calls *open = &window->self->open;
    const bool is_entry = sj_record_calls(tag) != 0;
    const bool jumps =
        !is_entry && sj_record_is_tail_call(sj_record_stack((const sj_record *)place));
    end_jumped_call(window);
    end_calls(window, jumps ? stack - 1 : stack);
    if (!is_entry && !jumps) {
        count_place(window, place, tag);
        return;
    }
    const uint32_t kept = open->kept;
    keep_record(window, place, stack, tag);
    open->has_jumped = jumps && open->kept != kept;
}

static void follow_record(window_count *window, uint64_t place, uint32_t tag)
{
    const sj_thread_slot *slot = window->self->slot;
    sj_recorder_open_calls *open = &window->self->open;
    const uint32_t kind = tag >> SJ_RECORD_FUNCTION_BITS;
    const uint32_t note = tag & SJ_RECORD_FUNCTION_MASK;
    const uint64_t stack = sj_record_frame((const sj_record *)place);
    sj_alternate_stack *alternate = &window->self->dropped_alternate;
    if (kind == SJ_RECORD_ENTER || kind == SJ_RECORD_LEAVE) {
        if (window->self->has_own_stack && stack >= slot->stack_low && stack < slot->stack_high &&
            !sj_alternate_stack_has(alternate, stack)) {
            *alternate = (sj_alternate_stack){.span = 0}; /* the handler has ended */
            follow_call(window, place, stack, tag);
            return;
        }
        open->is_unsure = true;
    } else if (kind == SJ_RECORD_NOTE) {
        sj_alternate_stack_note(alternate, note, stack);
    }
    open->is_unsure |=
        kind == SJ_RECORD_NOTE && (note == SJ_NOTE_UNWOUND || note == SJ_NOTE_RECORDING);
    count_place(window, place, tag);
}

/* Gives up all kept entries. A slot that is not yet written belongs to an interrupted probe. Its
 * record would come out of order, after everything that the window keeps. */
static void keep_nothing(window_count *window)
{
    sj_recorder_open_calls *open = &window->self->open;
    const uint64_t ended_stack = open->ended_stack;
    open->has_jumped = false;
    end_calls(window, UINT64_MAX);
    open->ended_stack = ended_stack;
    open->unkept_stack = UINT64_MAX;
}

void sj_recorder_count_window(sj_recorder_thread *self)
{
    window_count window = {.self = self, .start = window_start(self)};
    uint32_t low = 0;
    if (!self->has_window) {
        return;
    }
    for (uint32_t i = self->open.kept; i < SJ_DISCARD_RECORDS; i++) {
        const uint64_t place = place_at(&window, i);
        const uint32_t tag =
            atomic_load_explicit((_Atomic uint32_t *)(place + 12), memory_order_relaxed);
        if (tag != 0 && !sj_word_is_short(tag)) {
            follow_record(&window, place, tag);
            continue;
        }
        self->open.is_unsure = true;
        if (tag == 0 || !count_shorts(place, &window.calls, &window.events)) {
            keep_nothing(&window);
            low = i + 1;
        }
    }
    self->window_low = place_at(&window, self->open.kept > low ? self->open.kept : low);
    sj_recorder_count_drop(self, window.calls, window.events);
}

uint64_t sj_recorder_put_open(sj_recorder_thread *self, uint64_t address, uint64_t ticks,
                              bool has_dropped)
{
    const sj_recorder_open_calls *open = &self->open;
    const uint32_t entries = open->kept - (open->has_jumped ? 1 : 0);
    uint64_t kept = window_start(self);
    if (open->ended_stack != 0) {
        sj_recorder_put(address, ticks, open->ended_stack + 1,
                        sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_UNWOUND));
        address += SJ_RECORD_BYTES;
    }
    for (uint32_t i = 0; i < entries; i++, kept += SJ_RECORD_BYTES) {
        move_place(address, kept);
        address += SJ_RECORD_BYTES;
    }
    if (has_dropped && !open->is_unsure && open->unkept_stack == 0) {
        sj_recorder_put(address, ticks, 0, sj_record_make_tag(SJ_RECORD_NOTE, SJ_NOTE_STACK_KNOWN));
        address += SJ_RECORD_BYTES;
    }
    if (open->has_jumped) { /* directly before the callee's entry */
        move_place(address, kept);
        address += SJ_RECORD_BYTES;
    }
    if (open->kept > 0) { /* no slot waits for its record, so the whole window is free again */
        self->window_low = window_start(self);
    }
    self->open = (sj_recorder_open_calls){.kept = 0};
    return address;
}

bool sj_recorder_arm_window(sj_recorder_thread *self)
{
    const uint64_t start = window_start(self);
    if (!self->has_window) {
        self->has_window = sj_recorder_back(self, (void *)(uintptr_t)start,
                                            SJ_DISCARD_RECORDS * SJ_RECORD_BYTES, 0);
    }
    if (!self->has_window) {
        return false;
    }
    const uint64_t end = start + SJ_DISCARD_RECORDS * SJ_RECORD_BYTES;
    if (self->window_low < start || self->window_low > end) {
        self->window_low = start;
    }
    if (self->window_low == end) {
        return false;
    }
    self->dropped_alternate = (sj_alternate_stack){.span = 0};
    if (sj_recorder_is_on_alternate(self, (uint64_t)(uintptr_t)__builtin_frame_address(0))) {
        self->dropped_alternate.low = self->alternate_low;
        self->dropped_alternate.span = self->alternate_high - self->alternate_low;
    }
    atomic_signal_fence(memory_order_seq_cst);
    self->cursor = self->window_low;
    return true;
}

void sj_recorder_arm_void(sj_recorder_thread *self, uint32_t records)
{
    const uint64_t aligned =
        ((uint64_t)(uintptr_t)trash + SJ_CHUNK_BYTES - 1) & ~(uint64_t)(SJ_CHUNK_BYTES - 1);
    self->cursor = aligned + SJ_CHUNK_BYTES - (uint64_t)records * SJ_RECORD_BYTES;
}
