/* Design notes
 *
 * Reserving a record here never takes the slow path, because a handler's alternate stack may be
 * hardly larger than the kernel needs. If the chunk is full, the next probe opens another chunk,
 * which begins with the notes.
 *
 * A handler may be left by siglongjmp, and other functions may use its stack's memory afterwards.
 * Nothing reports that. So later chunks do not repeat the notes: the reader keeps the range until a
 * record lies on the thread's own stack again. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

/* True if the thread's own stack contains the alternate stack. */
static bool is_inside(const sj_recorder_thread *self)
{
    const sj_thread_slot *slot = self->slot;
    return slot != NULL && self->has_own_stack && self->alternate_low >= slot->stack_low &&
           self->alternate_low < self->alternate_high && self->alternate_high <= slot->stack_high;
}

static void put_at(uint64_t address, sj_note note, uint64_t argument)
{
    sj_recorder_put(address, sj_arch_ticks(), argument, sj_record_make_tag(SJ_RECORD_NOTE, note));
}

/* Writes a note, or returns false if the cursor has no space for it. Does not move a cursor without
 * space: nothing would move it back. */
static bool put_note(sj_recorder_thread *self, sj_note note, uint64_t argument)
{
    const uint64_t address =
        sj_recorder_usable(self->cursor) ? sj_recorder_advance(self, SJ_RECORD_BYTES) : 0;
    if (!sj_recorder_usable(address)) {
        return false;
    }
    put_at(address, note, argument);
    return true;
}

static void forget_handler(sj_recorder_thread *self)
{
    self->alternate_low = 0;
    self->alternate_high = 0;
    self->alternate_is_noted = false;
}

void sj_recorder_begin_handler(uint64_t low, uint64_t high)
{
    sj_recorder_thread *self = &sj_recorder_self;
    self->alternate_low = low;
    self->alternate_high = high;
    self->alternate_is_noted = is_inside(self) && put_note(self, SJ_NOTE_ALTERNATE_LOW, low) &&
                               put_note(self, SJ_NOTE_ALTERNATE_HIGH, high) &&
                               self->mode == SJ_MODE_CHUNK;
}

void sj_recorder_end_handler(void)
{
    sj_recorder_thread *self = &sj_recorder_self;
    if (is_inside(self)) {
        (void)put_note(self, SJ_NOTE_ALTERNATE_LOW, 0);
    }
    forget_handler(self);
}

bool sj_recorder_is_on_alternate(const sj_recorder_thread *self, uint64_t here)
{
    return here - self->alternate_low < self->alternate_high - self->alternate_low &&
           is_inside(self);
}

uint64_t sj_recorder_put_alternate(sj_recorder_thread *self, uint64_t address, bool is_first)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const sj_thread_slot *slot = self->slot;
    if (!sj_recorder_is_on_alternate(self, here)) {
        if (self->has_own_stack && here - slot->stack_low < slot->stack_high - slot->stack_low) {
            forget_handler(self);
        }
        return address;
    }
    if (self->alternate_is_noted && !is_first) {
        return address;
    }
    self->alternate_is_noted = true;
    put_at(address, SJ_NOTE_ALTERNATE_LOW, self->alternate_low);
    put_at(address + SJ_RECORD_BYTES, SJ_NOTE_ALTERNATE_HIGH, self->alternate_high);
    return address + 2 * SJ_RECORD_BYTES;
}
