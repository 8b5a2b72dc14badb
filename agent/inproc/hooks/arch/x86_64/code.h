/* Declarations that the files in arch/x86_64 share. Other files do not include this header. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_CODE_H

#include "agent/abi/plan.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

enum { OPCODE_JMP32 = 0xe9, OPCODE_JMP8 = 0xeb, OPCODE_INT3 = 0xcc };

/* Writes bytes at `*at`, unless measuring, and advances `*at`. Inlined for speed: constant counts
 * become plain stores, and a large program has 100,000 probes that are written before it starts. */
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

/* Emits a 32-bit displacement to `target`, which counts from the end of its own field. */
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

/* Returns the offset of a thread-local variable from the thread pointer. */
static inline uint32_t offset_of(const void *variable)
{
    uint64_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    return (uint32_t)((uint64_t)(uintptr_t)variable - thread_pointer);
}

static inline uint32_t cursor_offset(void)
{
    return offset_of(&sj_recorder_self.cursor);
}

/* Emits an instruction whose last field is the offset of a member of the thread's data. */
#define EMIT_OWN(at, word, ...)                                                                    \
    do {                                                                                           \
        EMIT((at), __VA_ARGS__);                                                                   \
        put_32((at), emitter->measuring, offset_of(&sj_recorder_self.word));                       \
    } while (0)

/* Emits a conditional forward jump. Returns the address of its displacement, for set_target. */
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

/* Emits a test of the reserved address in %ecx (or %eax). The zero flag is set if no record can be
 * at that address. */
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

/* Emits, in a slow part, a call of the slow path. The tag is in %rax. The code steps over the red
 * zone and gets the record's address in %rcx. */
void sj_code_emit_slow_call(sj_code_emitter *emitter);

/* Emits the slow part of a shared part: a call of the slow path with the tag at -8(%rsp). The code
 * reads the clock again, because the thread may have waited. The caller emits the code that follows
 * in the slow part. */
void sj_code_emit_slow_part(sj_code_emitter *emitter, bool is_value);

/* Emits code that saves the registers that a probe uses: %rax, %rcx, %rdx and, unless
 * emitter->frees_flags, the flags. In a shared part, the return address lies at (%rsp) and the tag
 * at -8(%rsp). The function's stack pointer is 8 above %rsp. The saved registers end 48 bytes below
 * the function's stack pointer; sj_arch_jump_entry uses the space below. */
void sj_code_emit_save(sj_code_emitter *emitter);

/* Emit the two steps of sj_code_emit_save. The second step saves %rdx. */
void sj_code_emit_save_two(sj_code_emitter *emitter);
void sj_code_emit_save_third(sj_code_emitter *emitter, uint64_t *at);

/* Emit code that restores the registers of the functions above. `at` is &emitter->at or
 * &emitter->cold_at. The code of sj_code_emit_restore also returns. */
void sj_code_emit_give_back(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_give_back_two(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_give_back_third(sj_code_emitter *emitter, uint64_t *at);
void sj_code_emit_restore(sj_code_emitter *emitter, uint64_t *at);

/* Emits code that reserves a slot for a record. Its address is then in %rcx, and the carry flag is
 * clear. If there is no slot, the code jumps to the slow part that is emitted next. It keeps the
 * clock in %rdx:%rax. */
void sj_code_emit_try(sj_code_emitter *emitter);

/* Emits code that reserves a slot, with its slow part. The slot's address is then in %rcx.
 * `is_value` says that the record is a value, not an entry or exit. */
void sj_code_emit_reserve(sj_code_emitter *emitter, bool is_value);

/* Emits a prefetch of the memory that the thread will write 512 bytes after the record at %rcx. It
 * does nothing if the address is past the arena. */
void sj_code_emit_fetch(sj_code_emitter *emitter);

/* If short records are written, emits code that makes this entry's or exit's stack address the
 * center of the reach of short records. The code does so only on the thread's own stack, and only
 * if the record at %rcx is the thread's last. It changes %rax and clears the carry flag. */
void sj_code_emit_keep_place(sj_code_emitter *emitter, uint64_t *at);

/* STORED_MARK is the value of `mark` if the mark is in memory, at TARGET_AT(%rsp). There
 * SJ_OPERATION_JUMP_LEAVE has stored the jump's target. */
enum { STORED_MARK = 0xff, TARGET_AT = (8 - SJ_JUMP_TARGET_BELOW) & 0xff };

/* Emits code that reads the clock and records an entry or an exit. `mark` is added to the stack
 * address. */
void sj_code_emit_record(sj_code_emitter *emitter, bool enters, uint8_t mark);

/* Begins a part that probes share, at an aligned address, and stores the address in
 * emitter->shared. */
void sj_code_begin_part(sj_code_emitter *emitter, sj_shared_part part);

/* Emits code that writes the exit and the entry of a tail call with one clock value, and returns
 * with the carry flag clear. If the chunk cannot hold both, the code writes only the exit and
 * returns with the carry flag set. Emitted after sj_code_emit_save. */
void sj_code_emit_tail_call_records(sj_code_emitter *emitter);

/* Emits the part SJ_SHARED_JUMP_LEAVE. */
void sj_code_emit_jump_leave_part(sj_code_emitter *emitter);

/* Emits the part SJ_SHARED_COUNTED_JUMP_LEAVE. The parts of counted exits, to which it jumps, are
 * emitted before. */
void sj_code_emit_counted_jump_leave_part(sj_code_emitter *emitter);

/* Emits the parts for functions whose calls may be counted. */
void sj_code_emit_counted_parts(sj_code_emitter *emitter);

#endif
