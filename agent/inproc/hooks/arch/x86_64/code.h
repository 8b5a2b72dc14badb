/* Declarations that the files with x86-64 probes share. Other files do not include it. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_CODE_H

#include "agent/abi/plan.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

enum { OPCODE_JMP32 = 0xe9, OPCODE_JMP8 = 0xeb, OPCODE_INT3 = 0xcc };

/* Inlined, so that constant counts become plain stores. A large program has 100,000 probes that are
 * written before it starts. */
static inline void put_bytes(uint64_t *at, bool measuring, const void *bytes, uint32_t count)
{
    if (!measuring) {
        memcpy((void *)(uintptr_t)*at, bytes, count);
    }
    *at += count;
}

static inline void put_32(uint64_t *at, bool measuring, uint32_t value)
{
    put_bytes(at, measuring, &value, sizeof(value));
}

/* Writes a displacement from the end of its own field. */
static inline void put_displacement(sj_code_emitter *emitter, uint64_t *at, uint64_t target)
{
    const int64_t distance = (int64_t)(target - (*at + 4));
    if (!emitter->measuring && distance != (int32_t)distance) {
        emitter->too_far = true;
    }
    put_32(at, emitter->measuring, (uint32_t)distance);
}

#define EMIT(at, ...)                                                                              \
    do {                                                                                           \
        const uint8_t emit_bytes_[] = {__VA_ARGS__};                                               \
        put_bytes((at), emitter->measuring, emit_bytes_, sizeof(emit_bytes_));                     \
    } while (0)

static inline uint32_t offset_of(const void *thread_local)
{
    uint64_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    return (uint32_t)((uint64_t)(uintptr_t) thread_local - thread_pointer);
}

static inline uint32_t cursor_offset(void)
{
    return offset_of(&sj_recorder_self.cursor);
}

/* Emits an instruction that ends with the offset of a member of the thread's data. */
#define EMIT_OWN(at, word, ...)                                                                    \
    do {                                                                                           \
        EMIT((at), __VA_ARGS__);                                                                   \
        put_32((at), emitter->measuring, offset_of(&sj_recorder_self.word));                       \
    } while (0)

/* Emits a forward jump and returns the address of its displacement, for set_target. */
static inline uint64_t emit_forward(sj_code_emitter *emitter, uint64_t *at, uint8_t condition)
{
    EMIT(at, 0x0f, condition);
    *at += 4;
    return *at - 4;
}

static inline void set_target(sj_code_emitter *emitter, uint64_t field, uint64_t target)
{
    put_displacement(emitter, &field, target);
}

/* Emits a test of the reserved address in %ecx (or %eax). The result is zero if no record can be
 * there. */
static inline void emit_usable_test(sj_code_emitter *emitter, uint64_t *at, bool is_rax)
{
    const uint64_t mask = (uint64_t)(uintptr_t)sj_recorder_usable_mask;
    if (mask <= INT32_MAX) {
        EMIT(at, 0x85, is_rax ? 0x04 : 0x0c, 0x25); /* test %ecx, mask */
        put_32(at, emitter->measuring, (uint32_t)mask);
    } else if (is_rax) {
        EMIT(at, 0xa9); /* test $mask, %eax */
        put_32(at, emitter->measuring, SJ_USABLE_MASK);
    } else {
        EMIT(at, 0xf7, 0xc1); /* test $mask, %ecx */
        put_32(at, emitter->measuring, SJ_USABLE_MASK);
    }
}

enum { VALUE_BITS = SJ_RECORD_VALUE << (SJ_RECORD_FUNCTION_BITS - 24) };
_Static_assert(SJ_RECORD_ENTER == 0, "the tag of an entry is the number of its function");

/* Emits, in a slow part, a call of the slow path. It steps over the red zone, passes the tag in
 * %rax, and gets the record in %rcx. */
void sj_code_emit_slow_call(sj_code_emitter *emitter);

/* Emits the slow part. It passes the tag, and reads the clock again, because the thread may have
 * waited. It continues at the code that is emitted next. */
void sj_code_emit_slow_part(sj_code_emitter *emitter, bool is_value);

/* Saves the registers that a probe uses: %rax, %rcx, %rdx and, unless emitter->frees_flags, the
 * flags. The probe's return address lies at (%rsp) and its tag at -8(%rsp). The function's stack
 * pointer is 8 above %rsp. Relative to it, the saved registers end at -48; sj_arch_jump_entry uses
 * the space below. */
void sj_code_emit_save(sj_code_emitter *emitter);

/* sj_code_emit_save in two steps; the second one saves %rdx. */
void sj_code_emit_save_two(sj_code_emitter *emitter);
void sj_code_emit_save_third(sj_code_emitter *emitter, uint64_t *at);

/* Restore the registers, `at` in the main line or in a slow part. sj_code_emit_restore returns,
 * too. */
void sj_code_emit_give_back(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_give_back_two(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_give_back_third(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_restore(sj_code_emitter *emitter, uint64_t *at);

/* Reserves a slot. Its address is in %rcx, and the carry flag is clear. If there is no slot, it
 * jumps to the slow part that is emitted next. The clock in %rdx:%rax is kept. */
void sj_code_emit_try(sj_code_emitter *emitter);

/* Reserves a slot for a value, or for an entry or exit. Its address is in %rcx. */
void sj_code_emit_reserve(sj_code_emitter *emitter, bool is_value);

/* Prefetches, for the entry at %rcx, the memory that will be written about a dozen calls later.
 * Does nothing beyond the arena. */
void sj_code_emit_fetch(sj_code_emitter *emitter);

/* Used if short records are written. It lets short records lie around this entry or exit, if that
 * is on the thread's own stack. It comes after the reservation: a handler in between uses the
 * previous place. %rax is lost. The carry flag is clear afterwards. */
void sj_code_emit_keep_place(sj_code_emitter *emitter, uint64_t *at);

/* Value of `mark` if the mark is in memory, where SJ_OPERATION_JUMP_LEAVE has stored the jump's
 * target. */
enum { STORED_MARK = 0xff, TARGET_AT = (8 - SJ_JUMP_TARGET_BELOW) & 0xff };

/* Records an entry or an exit with the clock. `mark` is added to the stack address. */
void sj_code_emit_record(sj_code_emitter *emitter, bool enters, uint8_t mark);

/* Begins a part that probes share, at its own address. sj_code_emit_save comes next. */
void sj_code_begin_part(sj_code_emitter *emitter, sj_shared_part part);

/* Writes the two records of a tail call with one clock value, and returns from SJ_SHARED_TAIL_CALL.
 * It comes after sj_code_emit_save. */
void sj_code_emit_tail_call_records(sj_code_emitter *emitter);

/* Emits the part SJ_SHARED_JUMP_LEAVE. */
void sj_code_emit_jump_leave_part(sj_code_emitter *emitter);

/* Emits the part SJ_SHARED_COUNTED_JUMP_LEAVE, after the exits at which it continues. */
void sj_code_emit_counted_jump_leave_part(sj_code_emitter *emitter);

/* Emits the parts for functions whose calls may be counted. */
void sj_code_emit_counted_parts(sj_code_emitter *emitter);

#endif
