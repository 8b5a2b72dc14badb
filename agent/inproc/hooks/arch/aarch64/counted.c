/* Probes for functions whose calls may be counted (calls.clock of the policy). Each probe calls
 * code that all probes of its module share (record_code.S). Storing a short record takes few
 * instructions. But checking whether the record may be short, and reserving its place, takes many.
 * Inline code would repeat them in each probe. */
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/arch/aarch64/record_code.h"
#include "agent/inproc/hooks/stub_notes.h"
#include "agent/inproc/recorder/recorder.h"

#include <stddef.h>

#define OFFSET_OWN(field) offsetof(sj_recorder_thread, field)

_Static_assert(OFFSET_OWN(cursor) == 0, "the cursor is where the thread's data is");
_Static_assert(OFFSET_OWN(counting.low) == SJ_OWN_LOW, "low");
_Static_assert(OFFSET_OWN(counting.span) == SJ_OWN_SPAN, "span");
_Static_assert(OFFSET_OWN(counting.reach) == SJ_OWN_REACH, "reach");
_Static_assert(OFFSET_OWN(counting.functions) == SJ_OWN_FUNCTIONS, "functions");
_Static_assert(OFFSET_OWN(counting.random) == SJ_OWN_RANDOM, "random");
_Static_assert(OFFSET_OWN(counting.countdown) == SJ_OWN_COUNTDOWN, "countdown");
_Static_assert(OFFSET_OWN(counting.open_samples) == SJ_OWN_OPEN_SAMPLES, "open samples");
_Static_assert(OFFSET_OWN(counting.samples) == SJ_OWN_SAMPLES, "samples");
_Static_assert(SJ_OPEN_SAMPLES == 1 << SJ_MOST_SAMPLES_BIT, "a bit says that there are too many");
_Static_assert(SJ_SHORT_REACH_BYTES == 1 << SJ_REACH_BIT, "reach");
_Static_assert(SJ_SHORT_FILLER >> 16 == SJ_ENTER_MARK, "a short entry");
_Static_assert((SJ_SHORT_FILLER | 1 << SJ_SHORT_EXIT_BIT) >> 16 == SJ_LEAVE_MARK, "a short exit");
_Static_assert(SJ_SHORT_TAIL_CALL >> 16 == SJ_TAIL_MARK, "a short exit by a tail call");
_Static_assert(SJ_STACK_TAIL_CALL == 1 << (SJ_TAIL_BIT - 32), "a tail call");
_Static_assert(SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS == 1 << SJ_LEAVE_BIT, "an exit");
_Static_assert(SJ_STACK_UNTIMED == 1 << (SJ_UNTIMED_BIT - 32), "no clock");
_Static_assert(SJ_STUB_TOUCHED_BYTES == SJ_SLOW_TOUCHED_BYTES, "stack before the slow path");

enum { SHARED_ALIGNMENT = 64 };

extern const uint8_t sj_record_code[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_enter[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_leave[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_tail[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_whole[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_receiver[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_slow[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_slow_end[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_slow_value[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_slow_value_end[] __attribute__((visibility("hidden")));
extern const uint8_t sj_record_code_words[] __attribute__((visibility("hidden")));

/* Returns the offset of the thread's data from the thread pointer. It is the same in all
 * threads. */
static uint64_t find_thread_offset(void)
{
    uint64_t thread_pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(thread_pointer));
    return (uint64_t)(uintptr_t)&sj_recorder_self - thread_pointer;
}

/* Emits the shared code. The return address lies in the frame while the slow path runs, and in the
 * link register otherwise. */
static void emit_code(sj_code_emitter *emitter)
{
    const struct {
        const uint8_t *end;
        int32_t return_at;
    } parts[] = {{sj_record_code_slow, 0},
                 {sj_record_code_slow_end, SJ_RETURN_AT},
                 {sj_record_code_slow_value, 0},
                 {sj_record_code_slow_value_end, SJ_RETURN_AT},
                 {sj_record_code_words, 0}};
    const uint8_t *at = sj_record_code;
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        sj_code_note_stack(emitter, &emitter->at, parts[i].return_at);
        sj_code_emit_bytes(emitter, at, (uint32_t)(parts[i].end - at));
        at = parts[i].end;
    }
}

void sj_code_emit_shared(sj_code_emitter *emitter)
{
    emitter->holds_addresses =
        true; /* inline probes and the words after the shared code contain addresses */
    if (!emitter->counts_calls) {
        return;
    }
    emitter->at = (emitter->at + SHARED_ALIGNMENT - 1) & ~(uint64_t)(SHARED_ALIGNMENT - 1);
    sj_code_begin_place(emitter, SJ_STUB_CALLED, 0);
    const uint64_t moved = emitter->at - (uint64_t)(uintptr_t)sj_record_code;
    emitter->shared[SJ_SHARED_COUNTED_ENTER] = (uint64_t)(uintptr_t)sj_record_code_enter + moved;
    emitter->shared[SJ_SHARED_COUNTED_LEAVE] = (uint64_t)(uintptr_t)sj_record_code_leave + moved;
    emitter->shared[SJ_SHARED_COUNTED_TAIL_LEAVE] =
        (uint64_t)(uintptr_t)sj_record_code_tail + moved;
    emitter->shared[SJ_SHARED_ENTER] = (uint64_t)(uintptr_t)sj_record_code_whole + moved;
    emitter->shared[SJ_SHARED_FIRST_RECEIVER] =
        (uint64_t)(uintptr_t)sj_record_code_receiver + moved;
    const uint64_t words[] = {find_thread_offset(), emitter->slow_trampoline};
    emit_code(emitter);
    sj_code_emit_bytes(emitter, (const uint8_t *)words, sizeof(words));
}
