/* Design notes
 *
 * rdtsc dominates the time of a probe. The processor runs a probe's few other instructions
 * meanwhile, even a call. So all probes of a module share one piece of code, and each probe passes
 * its tag. With inline probes the stubs of a large program were five times as large, and not
 * faster.
 *
 * The shared code saves the registers that it uses and the flags below the stack pointer, in the
 * red zone. The red zone is unused at function entries and exits, and signal handlers do not change
 * it. The code reads the clock before it reserves the slot. So the times of records increase even
 * if a signal handler interrupts the probe. lahf and seto save the flags, and add and sahf restore
 * them. This is much faster than pushf and popf.
 *
 * A forked child inherits the cursor into its parent's arena. The mask that tests a reserved
 * address lies in a page that the kernel zeroes in a forked child. So the test fails in the child,
 * and its probes call the slow path. This needs no further instruction.
 *
 * Before the slow path, the probe touches the stack as far down as its C code reaches. If the
 * program's stack ends there, the fault occurs in the stub, and a handler sees it at the function's
 * own place. OCaml's handler, for example, turns only faults in its own code into exceptions.
 *
 * The memory for records lies in the cache of the drain's core, or in no cache. A program that
 * makes many calls fills cache lines faster than they arrive, so entries prefetch them. Exits do
 * not, because a line holds four records. */
#include "agent/inproc/hooks/arch/x86_64/code.h"
#include "agent/inproc/hooks/stub_notes.h"

enum { SHARED_ALIGNMENT = 64, FETCH_BYTES_AHEAD = 512 };

void sj_code_emit_slow_call(sj_code_emitter *emitter)
{
    enum { FRAME_BYTES = 152 };
    uint64_t *at = &emitter->cold_at;
    EMIT(at, 0x85, 0x84, 0x24); /* test %eax, -SJ_STUB_TOUCHED_BYTES(%rsp) */
    put_32(at, emitter->measuring, (uint32_t)-SJ_STUB_TOUCHED_BYTES);
    EMIT(at, 0x48, 0x8d, 0xa4, 0x24, 0x68, 0xff, 0xff, 0xff); /* lea -152(%rsp), %rsp */
    sj_code_note_stack(emitter, at, FRAME_BYTES);
    EMIT(at, 0x50); /* push %rax */
    sj_code_note_stack(emitter, at, FRAME_BYTES + 8);
    EMIT(at, 0xe8); /* call trampoline */
    put_displacement(emitter, at, emitter->slow_trampoline);
    EMIT(at, 0x48, 0x8d, 0xa4, 0x24, 0xa0, 0x00, 0x00, 0x00); /* lea 160(%rsp), %rsp */
    sj_code_note_stack(emitter, at, 0);
}

void sj_code_emit_slow_part(sj_code_emitter *emitter, bool is_value)
{
    uint64_t *at = &emitter->cold_at;
    EMIT(at, 0x8b, 0x44, 0x24, 0xf8); /* mov -8(%rsp), %eax */
    if (is_value) {
        EMIT(at, 0x0d, 0, 0, 0, VALUE_BITS); /* or $0xc0000000, %eax */
    }
    sj_code_emit_slow_call(emitter);
    EMIT(at, 0x0f, 0x31); /* rdtsc */
}

void sj_code_emit_save_two(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x48, 0x89, 0x44, 0x24, 0xf0); /* mov %rax, -16(%rsp) */
    EMIT(at, 0x48, 0x89, 0x4c, 0x24, 0xe8); /* mov %rcx, -24(%rsp) */
    if (!emitter->frees_flags) {
        EMIT(at, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto %al */
        EMIT(at, 0x89, 0x44, 0x24, 0xd8); /* mov %eax, -40(%rsp) */
    }
}

void sj_code_emit_save_third(sj_code_emitter *emitter, uint64_t *at)
{
    EMIT(at, 0x48, 0x89, 0x54, 0x24, 0xe0); /* mov %rdx, -32(%rsp) */
}

void sj_code_emit_save(sj_code_emitter *emitter)
{
    sj_code_emit_save_two(emitter);
    sj_code_emit_save_third(emitter, &emitter->at);
}

void sj_code_emit_give_back_two(sj_code_emitter *emitter, uint64_t *at)
{
    if (!emitter->frees_flags) {
        EMIT(at, 0x8b, 0x44, 0x24, 0xd8); /* mov -40(%rsp), %eax */
        EMIT(at, 0x04, 0x7f, 0x9e);       /* add $127, %al; sahf */
    }
    EMIT(at, 0x48, 0x8b, 0x44, 0x24, 0xf0); /* mov -16(%rsp), %rax */
    EMIT(at, 0x48, 0x8b, 0x4c, 0x24, 0xe8); /* mov -24(%rsp), %rcx */
}

void sj_code_emit_give_back_third(sj_code_emitter *emitter, uint64_t *at)
{
    EMIT(at, 0x48, 0x8b, 0x54, 0x24, 0xe0); /* mov -32(%rsp), %rdx */
}

void sj_code_emit_give_back(sj_code_emitter *emitter, uint64_t *at)
{
    sj_code_emit_give_back_two(emitter, at);
    sj_code_emit_give_back_third(emitter, at);
}

void sj_code_emit_restore(sj_code_emitter *emitter, uint64_t *at)
{
    sj_code_emit_give_back(emitter, at);
    EMIT(at, 0xc3); /* ret */
}

/* Emits code that writes fillers into the rest of a slot that short records have begun, from %rax
 * to %rcx. Then the code jumps to `back`. */
static void emit_filler(sj_code_emitter *emitter, uint64_t back)
{
    uint64_t *at = &emitter->cold_at;
    emit_usable_test(emitter, at, true);
    EMIT(at, 0x74, 0x0f); /* jz after the loop */
    EMIT(at, 0xc7, 0x00); /* movl $filler, (%rax) */
    put_32(at, emitter->measuring, SJ_SHORT_FILLER);
    EMIT(at, 0x48, 0x83, 0xc0, 0x04); /* add $4, %rax */
    EMIT(at, 0x48, 0x39, 0xc8);       /* cmp %rcx, %rax */
    EMIT(at, 0x75, 0xf1);             /* jne */
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, back);
}

/* Like sj_code_emit_try, if short records are written (recorder/counting.c): the reserved slot is
 * aligned to 16 bytes. The code saves the clock in %rdx:%rax below the registers of
 * sj_code_emit_save. */
static void emit_aligned_try(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    EMIT_OWN(at, counting.reach, 0x64, 0x48, 0xc7, 0x04, 0x25); /* movq $0, %fs:reach */
    put_32(at, emitter->measuring, 0);
    EMIT(at, 0x89, 0x44, 0x24, 0xd0);                         /* mov %eax, -48(%rsp) */
    EMIT(at, 0x89, 0x54, 0x24, 0xd4);                         /* mov %edx, -44(%rsp) */
    EMIT_OWN(at, cursor, 0x64, 0x48, 0x8b, 0x04, 0x25);       /* mov %fs:cursor, %rax */
    EMIT(at, 0x48, 0x8d, 0x48, 0x0f);                         /* lea 15(%rax), %rcx */
    EMIT(at, 0x48, 0x83, 0xe1, 0xf0);                         /* and $-16, %rcx */
    EMIT(at, 0x48, 0x83, 0xc1, 0x10);                         /* add $16, %rcx */
    EMIT_OWN(at, cursor, 0x64, 0x48, 0x0f, 0xb1, 0x0c, 0x25); /* cmpxchg %rcx, %fs:cursor */
    EMIT(at, 0x75, 0xdf);                                     /* jne */
    EMIT(at, 0x48, 0x83, 0xe9, 0x10);                         /* sub $16, %rcx */
    EMIT(at, 0x48, 0x39, 0xc8);                               /* cmp %rcx, %rax */
    EMIT(at, 0x0f, 0x85);                                     /* jne filler */
    put_displacement(emitter, at, emitter->cold_at);
    emit_filler(emitter, *at);
    emit_usable_test(emitter, at, false);
    EMIT(at, 0x0f, 0x84); /* jz slow part */
    put_displacement(emitter, at, emitter->cold_at);
    EMIT(at, 0x8b, 0x44, 0x24, 0xd0); /* mov -48(%rsp), %eax */
    EMIT(at, 0x8b, 0x54, 0x24, 0xd4); /* mov -44(%rsp), %edx */
}

void sj_code_emit_try(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    if (emitter->counts_calls) {
        emit_aligned_try(emitter);
        return;
    }
    EMIT(at, 0xb9, 0x10, 0x00, 0x00, 0x00);       /* mov $16, %ecx */
    EMIT(at, 0x64, 0x48, 0x0f, 0xc1, 0x0c, 0x25); /* xadd %rcx, %fs:cursor */
    put_32(at, emitter->measuring, cursor_offset());
    emit_usable_test(emitter, at, false);
    EMIT(at, 0x0f, 0x84); /* jz slow part */
    put_displacement(emitter, at, emitter->cold_at);
}

void sj_code_emit_reserve(sj_code_emitter *emitter, bool is_value)
{
    sj_code_emit_try(emitter);
    sj_code_emit_slow_part(emitter, is_value);
    EMIT(&emitter->cold_at, OPCODE_JMP32);
    put_displacement(emitter, &emitter->cold_at, emitter->at);
}

void sj_code_emit_fetch(sj_code_emitter *emitter)
{
    EMIT(&emitter->at, 0x0f, 0x0d, 0x89); /* prefetchw bytes(%rcx) */
    put_32(&emitter->at, emitter->measuring, FETCH_BYTES_AHEAD);
}

void sj_code_emit_keep_place(sj_code_emitter *emitter, uint64_t *at)
{
    if (!emitter->counts_calls) {
        return;
    }
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                        /* lea 8(%rsp), %rax */
    EMIT_OWN(at, counting.low, 0x64, 0x48, 0x2b, 0x04, 0x25);      /* sub %fs:low, %rax */
    EMIT_OWN(at, counting.span, 0x64, 0x48, 0x3b, 0x04, 0x25);     /* cmp %fs:span, %rax */
    const uint64_t is_elsewhere = emit_forward(emitter, at, 0x83); /* jae */
    EMIT(at, 0x48, 0x8d, 0x84, 0x24); /* lea 8 - reach / 2(%rsp), %rax */
    put_32(at, emitter->measuring, (uint32_t)(8 - SJ_SHORT_REACH_BYTES / 2));
    EMIT(at, 0x48, 0x83, 0xe0, 0xf8);                           /* and $-8, %rax */
    EMIT_OWN(at, counting.reach, 0x64, 0x48, 0x89, 0x04, 0x25); /* mov %rax, %fs:reach */
    EMIT(at, 0x48, 0x8d, 0x41, SJ_RECORD_BYTES);                /* lea 16(%rcx), %rax */
    EMIT_OWN(at, cursor, 0x64, 0x48, 0x3b, 0x04, 0x25);         /* cmp %fs:cursor, %rax */
    const uint64_t is_last = emit_forward(emitter, at, 0x84);   /* je */
    EMIT_OWN(at, counting.reach, 0x64, 0x48, 0xc7, 0x04, 0x25); /* movq $0, %fs:reach */
    put_32(at, emitter->measuring, 0);
    EMIT(at, 0xf8); /* clc */
    set_target(emitter, is_last, *at);
    set_target(emitter, is_elsewhere, *at);
}

void sj_code_emit_record(sj_code_emitter *emitter, bool enters, uint8_t mark)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x0f, 0x31); /* rdtsc */
    sj_code_emit_reserve(emitter, false);
    if (enters) {
        sj_code_emit_fetch(emitter);
    }
    const bool is_stored = mark == STORED_MARK;
    const uint8_t stack_at = (uint8_t)(0x08 + (is_stored ? 0 : mark));
    EMIT(at, 0x89, 0x01);                       /* mov %eax, (%rcx) */
    EMIT(at, 0x66, 0x89, 0x51, 0x04);           /* mov %dx, 4(%rcx) */
    EMIT(at, 0x48, 0x8d, 0x54, 0x24, stack_at); /* lea 8(%rsp), %rdx */
    if (is_stored) {
        EMIT(at, 0x48, 0x03, 0x54, 0x24, TARGET_AT); /* add mark, %rdx */
    }
    EMIT(at, 0x48, 0x89, 0x51, 0x06); /* mov %rdx, 6(%rcx) */
    EMIT(at, 0x8b, 0x44, 0x24, 0xf8); /* mov -8(%rsp), %eax */
    EMIT(at, 0x89, 0x41, 0x0c);       /* mov %eax, 12(%rcx) */
    sj_code_emit_keep_place(emitter, at);
}

/* Offsets of the tags of the two records from the stack pointer, as bytes of an instruction. */
typedef enum tail_call_tag {
    LEAVE_TAG_AT = 0xf8 /* -8 */,
    ENTER_TAG_AT = 0xfc /* -4 */
} tail_call_tag;

/* Emits code that writes one of the two records of a tail call. The code keeps the clock in
 * %rdx:%rax and changes %rsi. */
static void emit_tail_call_record(sj_code_emitter *emitter, uint64_t *at, tail_call_tag tag_at)
{
    const uint8_t stack_at = tag_at == LEAVE_TAG_AT ? 8 + SJ_STACK_TAIL_CALL : 8;
    EMIT(at, 0x89, 0x01);                        /* mov %eax, (%rcx) */
    EMIT(at, 0x66, 0x89, 0x51, 0x04);            /* mov %dx, 4(%rcx) */
    EMIT(at, 0x48, 0x8d, 0x74, 0x24, stack_at);  /* lea 8(%rsp), %rsi; or 9 */
    EMIT(at, 0x48, 0x89, 0x71, 0x06);            /* mov %rsi, 6(%rcx) */
    EMIT(at, 0x8b, 0x74, 0x24, (uint8_t)tag_at); /* mov tag, %esi */
    EMIT(at, 0x89, 0x71, 0x0c);                  /* mov %esi, 12(%rcx) */
}

/* Emits the return from the code of sj_code_emit_tail_call_records. `is_alone` says that only the
 * exit was recorded. */
static void emit_tail_call_end(sj_code_emitter *emitter, uint64_t *at, bool is_alone)
{
    sj_code_emit_keep_place(emitter, at);
    if (is_alone) {
        EMIT(at, 0xf9); /* stc */
    }
    EMIT(at, 0x48, 0x8b, 0x74, 0x24, 0xd8); /* mov -40(%rsp), %rsi */
    sj_code_emit_restore(emitter, at);
}

/* If the thread waited for a chunk, the text may have changed. So the code then records only the
 * exit, and its caller jumps to the callee's start. */
void sj_code_emit_tail_call_records(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    uint64_t *cold_at = &emitter->cold_at;
    EMIT(at, 0x48, 0x89, 0x74, 0x24, 0xd8); /* mov %rsi, -40(%rsp) */
    EMIT(at, 0x0f, 0x31);                   /* rdtsc */
    sj_code_emit_try(emitter);
    sj_code_emit_slow_part(emitter, false);
    emit_tail_call_record(emitter, cold_at, LEAVE_TAG_AT);
    emit_tail_call_end(emitter, cold_at, true);
    emit_tail_call_record(emitter, at, LEAVE_TAG_AT);
    sj_code_emit_try(emitter);
    emit_tail_call_end(emitter, cold_at, true);
    sj_code_emit_fetch(emitter);
    emit_tail_call_record(emitter, at, ENTER_TAG_AT);
    emit_tail_call_end(emitter, at, false);
}

void sj_code_begin_part(sj_code_emitter *emitter, sj_shared_part part)
{
    emitter->at = (emitter->at + SHARED_ALIGNMENT - 1) & ~(uint64_t)(SHARED_ALIGNMENT - 1);
    emitter->shared[part] = emitter->at;
    sj_code_begin_place(emitter, SJ_STUB_CALLED, 0);
}
