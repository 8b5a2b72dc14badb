/* Design notes
 *
 * Probes are inline, because a call would overwrite the link register. If calls are counted, probes
 * save the link register and call shared code (counted.c).
 *
 * AArch64 has no red zone, so a probe moves the stack pointer and saves four registers. It does not
 * change the flags. It reads the clock before it reserves the record's slot. So the times of
 * records increase even if a signal handler interrupts the probe.
 *
 * A slot is reserved by an exclusive load and store. Every return from an exception, and so from a
 * signal handler, clears the exclusive monitor. If a handler ran in between, the store fails and
 * the probe repeats the load. The cursor belongs to one thread, so no other thread makes the store
 * fail. The code also runs on processors without the LSE instructions.
 *
 * The last eight bytes of a record, which contain its tag, are stored with release. The drain reads
 * the tag first, and on this machine only a release store keeps that order. */
#include "agent/abi/aarch64_words.h"
#include "agent/abi/plan.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/stub_notes.h"
#include "agent/inproc/recorder/recorder.h"

#include <elf.h>
#include <stddef.h>

#define BRANCH_REACH_BYTES (INT64_C(1) << 27)
#define PAGES_REACH (INT64_C(1) << 20)

enum {
    WORD_RET = 0xd65f03c0,
    WORD_BTI_C = 0xd503245f,
    WORD_B = 0x14000000,
    WORD_ADRP = 0x90000000,
    WORD_ADD_64 = 0x91000000,
    WORD_MOVZ_W0 = 0x52800000,
    WORD_MOVK_W0 = 0x72a00000,
    WORD_MOVZ_W1 = 0x52800001,
    WORD_MOVK_W1 = 0x72a00001,
    WORD_MOVZ_W16 = 0x52800010,
    WORD_MOVK_W16 = 0x72a00010,
    WORD_SAVE_FIRST = 0xa9be47f0,
    WORD_SAVE_SECOND = 0xa90107e0,
    WORD_SAVE_FOR_CALL = 0xa9bc7bf0,
    WORD_MOVK_X16_HIGH = 0xf2c00010, /* bits 32 to 47 */
    CONDITION_ALWAYS = 14
};

/* Sizes of stack frames in bytes: saved registers of a probe; frame and link register around calls;
 * frame of a call of shared code. */
enum { SAVED_BYTES = 32, LINK_BYTES = 16, SHARED_FRAME_BYTES = 64 };

uint16_t sj_arch_machine(void)
{
    return EM_AARCH64;
}

static void put_word(uint64_t *at, bool measuring, uint32_t word)
{
    if (!measuring) {
        *(volatile uint32_t *)(uintptr_t)*at = word;
    }
    *at += SJ_WORD_BYTES;
}

void sj_code_emit_bytes(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i + SJ_WORD_BYTES <= count; i += SJ_WORD_BYTES) {
        put_word(&emitter->at, emitter->measuring, sj_word_read(bytes + i));
    }
}

/* Returns a branch from `at` to `target`. */
static uint32_t branch_word(uint64_t at, uint64_t target, bool *too_far)
{
    const int64_t distance = (int64_t)(target - at);
    *too_far = distance < -BRANCH_REACH_BYTES || distance >= BRANCH_REACH_BYTES;
    return WORD_B | ((uint32_t)(distance / SJ_WORD_BYTES) & UINT32_C(0x03ffffff));
}

static void put_branch(sj_code_emitter *emitter, uint64_t *at, uint64_t target, uint32_t link)
{
    bool too_far;
    const uint32_t word = branch_word(*at, target, &too_far);
    emitter->too_far |= too_far && !emitter->measuring;
    put_word(at, emitter->measuring, word | link);
}

/* Emits adrp: loads the address of target's page into a register. Keeps the flags. */
static void put_page(sj_code_emitter *emitter, uint32_t reg, uint64_t target)
{
    const int64_t pages =
        (int64_t)((target >> SJ_WORD_PAGE_BITS) - (emitter->at >> SJ_WORD_PAGE_BITS));
    if (!emitter->measuring && (pages < -PAGES_REACH || pages >= PAGES_REACH)) {
        emitter->too_far = true;
    }
    const uint32_t low = (uint32_t)pages & 3;
    const uint32_t high = (uint32_t)(pages >> 2) & UINT32_C(0x7ffff);
    put_word(&emitter->at, emitter->measuring, WORD_ADRP | low << 29 | high << 5 | reg);
}

/* Emits adrp and add: they load the address of `target` into a register. They keep the flags. */
static void put_address(sj_code_emitter *emitter, uint32_t reg, uint64_t target)
{
    put_page(emitter, reg, target);
    const uint32_t low_bits = (uint32_t)target & ((1 << SJ_WORD_PAGE_BITS) - 1);
    put_word(&emitter->at, emitter->measuring, WORD_ADD_64 | low_bits << 10 | reg << 5 | reg);
}

void sj_code_emit_trampoline(sj_code_emitter *emitter, uint64_t target)
{
    put_word(&emitter->at, emitter->measuring, 0x58000050); /* ldr x16, .+8 */
    put_word(&emitter->at, emitter->measuring, 0xd61f0200); /* br x16 */
    put_word(&emitter->at, emitter->measuring, (uint32_t)target);
    put_word(&emitter->at, emitter->measuring, (uint32_t)(target >> 32));
}

static uint32_t cursor_offset(void)
{
    uint64_t thread_pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(thread_pointer));
    return (uint32_t)((uint64_t)(uintptr_t)&sj_recorder_self.cursor - thread_pointer);
}

#define EMIT(at, ...)                                                                              \
    do {                                                                                           \
        const uint32_t emit_words_[] = {__VA_ARGS__};                                              \
        for (size_t i_ = 0; i_ < sizeof(emit_words_) / sizeof(emit_words_[0]); i_++) {             \
            put_word((at), emitter->measuring, emit_words_[i_]);                                   \
        }                                                                                          \
    } while (0)

/* Emits the tag into w1. */
static void put_tag(sj_code_emitter *emitter, uint64_t *at, uint32_t tag)
{
    EMIT(at, WORD_MOVZ_W1 | (tag & 0xffff) << 5, WORD_MOVK_W1 | (tag >> 16) << 5);
}

/* Emits a read of the stack `bytes` (at most 4095) below the stack pointer. If the stack ends
 * before that address, the fault occurs in the stub, and not in the recorder's code. Changes
 * register `reg`. */
static void put_touch(sj_code_emitter *emitter, uint64_t *at, uint32_t bytes, uint32_t reg)
{
    EMIT(at, 0xd10003e0 | bytes << 10 | reg, /* sub reg, sp, #bytes */
         0xf940001f | reg << 5);             /* ldr xzr, [reg] */
}

/* Emits the slow part of a probe and returns its address. The code passes the tag in w1 and gets
 * the record's address in x0. It reads the clock again, because the thread may have waited. Then it
 * jumps to `back`. */
static uint64_t emit_slow_part(sj_code_emitter *emitter, uint32_t tag, uint64_t back)
{
    const uint64_t start = emitter->cold_at;
    uint64_t *at = &emitter->cold_at;
    sj_code_note_stack(emitter, at, SAVED_BYTES);
    put_tag(emitter, at, tag);
    put_touch(emitter, at, SJ_STUB_TOUCHED_BYTES, 0);
    EMIT(at, 0xa9bf7bfd); /* stp x29, x30, [sp, #-16]! */
    sj_code_note_stack(emitter, at, SAVED_BYTES + LINK_BYTES);
    put_branch(emitter, at, emitter->slow_trampoline, UINT32_C(0x80000000)); /* bl trampoline */
    EMIT(at, 0xa8c17bfd); /* ldp x29, x30, [sp], #16 */
    sj_code_note_stack(emitter, at, SAVED_BYTES);
    EMIT(at, 0xd53be051); /* mrs x17, cntvct_el0 */
    put_branch(emitter, at, back, 0);
    return start;
}

/* Emits code that reserves a record's slot and puts its address into x0. The code changes x1 and
 * x16. */
static void emit_reserve(sj_code_emitter *emitter, uint32_t tag)
{
    uint64_t *at = &emitter->at;
    const uint32_t cursor = cursor_offset();
    EMIT(at, 0xd53bd050,                            /* mrs x16, tpidr_el0 */
         0x91400210 | (cursor >> 12 & 0xfff) << 10, /* add x16, x16, #high, lsl #12 */
         0x91000210 | (cursor & 0xfff) << 10,       /* add x16, x16, #low */
         0xc85f7e00,                                /* retry: ldxr x0, [x16] */
         0x91004000,                                /* add x0, x0, #16 */
         0xc8017e00,                                /* stxr w1, x0, [x16] */
         0x35ffffa1,                                /* cbnz w1, retry */
         0xd1004000,                                /* sub x0, x0, #16 */
         0x92740c01);                               /* and x1, x0, #0xf000 */
    const uint64_t slow = emit_slow_part(emitter, tag, *at + SJ_WORD_BYTES + SJ_WORD_BYTES);
    EMIT(at, 0xb5000041); /* cbnz x1, .+8 */
    put_branch(emitter, at, slow, 0);
}

static void emit_save(sj_code_emitter *emitter)
{
    EMIT(&emitter->at, WORD_SAVE_FIRST); /* stp x16, x17, [sp, #-32]! */
    sj_code_note_stack(emitter, &emitter->at, SAVED_BYTES);
    EMIT(&emitter->at, WORD_SAVE_SECOND); /* stp x0, x1, [sp, #16] */
}

static void emit_restore(sj_code_emitter *emitter)
{
    EMIT(&emitter->at, 0xa94107e0, /* ldp x0, x1, [sp, #16] */
         0xa8c247f0);              /* ldp x16, x17, [sp], #32 */
    sj_code_note_stack(emitter, &emitter->at, 0);
}

/* If dispatched calls are recorded, emits code that compares the return address with the thunk's.
 * If they are equal, a dispatched call has jumped here, and the code records its exit. The
 * comparison ignores a signature of the return address. */
static void emit_dispatch_check(sj_code_emitter *emitter)
{
    enum { WORD_MOVZ_X16 = 0xd2800010, WORD_MOVK_16 = 0xf2a00010, WORD_MOVK_32 = 0xf2c00010 };
    uint64_t *at = &emitter->at;
    uint64_t *cold_at = &emitter->cold_at;
    if (emitter->thunk == 0) {
        return;
    }
    EMIT(at, 0xaa1e03f1, /* mov x17, x30 */
         0xd50320ff,     /* xpaclri */
         WORD_MOVZ_X16 | (uint32_t)(emitter->thunk & 0xffff) << 5,
         WORD_MOVK_16 | (uint32_t)(emitter->thunk >> 16 & 0xffff) << 5,
         WORD_MOVK_32 | (uint32_t)(emitter->thunk >> 32 & 0xffff) << 5,
         0xcb1e0210,  /* sub x16, x16, x30 */
         0xaa1103fe,  /* mov x30, x17 */
         0xb5000050); /* cbnz x16, .+8 */
    put_branch(emitter, at, *cold_at, 0);
    sj_code_note_stack(emitter, cold_at, SAVED_BYTES);
    put_branch(emitter, cold_at, emitter->jump_trampoline,
               UINT32_C(0x80000000)); /* bl trampoline */
    put_branch(emitter, cold_at, *at, 0);
}

/* Emits code that writes a record. `mark` is added to its stack address: SJ_STACK_TAIL_CALL or
 * 0. */
static void emit_record(sj_code_emitter *emitter, uint32_t tag, uint32_t mark)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xd53be051); /* mrs x17, cntvct_el0 */
    emit_reserve(emitter, tag);
    EMIT(at, 0x910083f0 | mark << 10, /* add x16, sp, #32 */
         0xb3503e11,                  /* bfi x17, x16, #48, #16 */
         0xf8008411,                  /* str x17, [x0], #8 */
         0xd350fe10);                 /* lsr x16, x16, #16 */
    put_tag(emitter, at, tag);
    EMIT(at, 0xb3607c30, /* bfi x16, x1, #32, #32 */
         0xc89ffc10);    /* stlr x16, [x0] */
}

uint32_t sj_arch_thread_offset(void)
{
    return 0; /* No stubs are shared between processes on this machine. */
}

/* Emits a call of a shared part, with `passed` in x16. */
static void emit_shared_call(sj_code_emitter *emitter, sj_shared_part part, uint64_t passed)
{
    uint64_t *at = &emitter->at;
    EMIT(at, WORD_SAVE_FOR_CALL); /* stp x16, x30, [sp, #-64]! */
    sj_code_note_stack(emitter, at, SHARED_FRAME_BYTES);
    const uint32_t low = (uint32_t)passed;
    const uint32_t high = (uint32_t)(passed >> 32);
    EMIT(at, WORD_MOVZ_W16 | (low & 0xffff) << 5);
    if (low >> 16 != 0) {
        EMIT(at, WORD_MOVK_W16 | (low >> 16) << 5);
    }
    if (high != 0) {
        EMIT(at, WORD_MOVK_X16_HIGH | high << 5);
    }
    put_branch(emitter, at, emitter->shared[part], UINT32_C(0x80000000)); /* bl part */
    EMIT(at, 0xa8c47bf0); /* ldp x16, x30, [sp], #64 */
    sj_code_note_stack(emitter, at, 0);
}

/* Emits an exit's probe as a call of a shared part. `mark` is SJ_STACK_TAIL_CALL or 0. */
static void emit_shared_leave(sj_code_emitter *emitter, uint32_t tag, uint32_t mark)
{
    const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
    if (function >= SJ_SHORT_FUNCTIONS) {
        emit_shared_call(emitter, SJ_SHARED_ENTER, (uint64_t)mark << 32 | tag);
    } else {
        emit_shared_call(
            emitter, mark != 0 ? SJ_SHARED_COUNTED_TAIL_LEAVE : SJ_SHARED_COUNTED_LEAVE, function);
    }
}

static void emit_shared_probe(sj_code_emitter *emitter, uint32_t tag)
{
    if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE) {
        emit_shared_leave(emitter, tag, 0);
    } else {
        emit_shared_call(emitter,
                         tag < SJ_SHORT_FUNCTIONS ? SJ_SHARED_COUNTED_ENTER : SJ_SHARED_ENTER, tag);
    }
}

void sj_code_emit_probe(sj_code_emitter *emitter, uint32_t tag)
{
    if (emitter->counts_calls) {
        emit_shared_probe(emitter, tag);
        return;
    }
    emit_save(emitter);
    if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER) {
        emit_dispatch_check(emitter);
    }
    emit_record(emitter, tag, 0);
    emit_restore(emitter);
}

/* Emits a forward jump that the code takes if w0 is not `word`. Returns the jump's address, for
 * set_target. The code changes w1. */
static uint64_t emit_unless(sj_code_emitter *emitter, uint32_t word)
{
    uint64_t *at = &emitter->at;
    put_tag(emitter, at, word);
    EMIT(at, 0x4b010001); /* sub w1, w0, w1 */
    *at += SJ_WORD_BYTES; /* cbnz w1 */
    return *at - SJ_WORD_BYTES;
}

/* Makes the jump at `jump` lead to the next emitted instruction. */
static void set_target(const sj_code_emitter *emitter, uint64_t jump)
{
    const uint32_t words = (uint32_t)((emitter->at - jump) / SJ_WORD_BYTES);
    put_word(&jump, emitter->measuring, UINT32_C(0x35000001) | words << 5); /* cbnz w1 */
}

/* Emits code that adds 4 to x17 if the landing instruction `word` is at x17. */
static void emit_landing(sj_code_emitter *emitter, uint32_t word)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xb9400220); /* ldr w0, [x17] */
    const uint64_t is_other = emit_unless(emitter, word);
    EMIT(at, 0x91001231); /* add x17, x17, #4 */
    set_target(emitter, is_other);
}

/* Emits code that records an exit and restores the registers of emit_save. `mark` is
 * SJ_STACK_TAIL_CALL or 0. */
static void emit_jump_end(sj_code_emitter *emitter, uint32_t tag, uint32_t mark)
{
    if (emitter->counts_calls) {
        emit_restore(emitter);
        emit_shared_leave(emitter, tag, mark);
    } else {
        emit_record(emitter, tag, mark);
        emit_restore(emitter);
    }
}

/* Emits a check whether x17 is below 64 KiB, and leaves space for a branch that the code takes
 * then. Returns the branch's address. So the probe does not read text at a null pointer, and a call
 * through a null pointer faults as it does without a probe. */
static uint64_t emit_null_check(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xd350fe21, /* lsr x1, x17, #16 */
         0xb5000041);    /* cbnz x1, .+8 */
    *at += SJ_WORD_BYTES;
    return *at - SJ_WORD_BYTES;
}

/* Emits, after emit_save, code that records an exit by a jump to the address in x17, and that
 * restores the registers. The code reads the text there to see whether the function is hooked. If
 * it is, its entry is a branch to a stub that begins with the code of emit_save or
 * emit_shared_call. */
static void emit_jump_record(sj_code_emitter *emitter, uint32_t tag)
{
    enum { WORD_PACIASP = 0xd503233f };
    uint64_t *at = &emitter->at;
    uint64_t is_null = emit_null_check(emitter);
    emit_landing(emitter, WORD_BTI_C);
    emit_landing(emitter, WORD_PACIASP);
    EMIT(at, 0xb9400220, /* ldr w0, [x17] */
         0x531a7c01,     /* lsr w1, w0, #26 */
         0x51001421);    /* sub w1, w1, #5 */
    uint64_t failed[3] = {*at};
    *at += SJ_WORD_BYTES; /* cbnz w1 */
    EMIT(at, 0x93406400,  /* sbfx x0, x0, #0, #26 */
         0x8b000a31,      /* add x17, x17, x0, lsl #2 */
         0xb9400220);     /* ldr w0, [x17] */
    const uint64_t is_no_call = emit_unless(emitter, WORD_SAVE_FOR_CALL);
    uint64_t is_call = *at;
    *at += SJ_WORD_BYTES; /* b */
    set_target(emitter, is_no_call);
    failed[1] = emit_unless(emitter, WORD_SAVE_FIRST);
    EMIT(at, 0xb9400620); /* ldr w0, [x17, #4] */
    failed[2] = emit_unless(emitter, WORD_SAVE_SECOND);
    put_branch(emitter, &is_call, *at, 0);
    emit_jump_end(emitter, tag, SJ_STACK_TAIL_CALL);
    uint64_t end = *at;
    *at += SJ_WORD_BYTES; /* b */
    for (unsigned i = 0; i < 3; i++) {
        set_target(emitter, failed[i]);
    }
    put_branch(emitter, &is_null, *at, 0);
    sj_code_note_stack(emitter, at, SAVED_BYTES);
    emit_jump_end(emitter, tag, 0);
    put_branch(emitter, &end, *at, 0);
}

void sj_code_emit_jump_leave(sj_code_emitter *emitter, uint32_t tag, uint32_t jump_register)
{
    enum { WORD_LOAD_X17 = 0xf94003f1, WORD_MOV_X17 = 0xaa0003f1 };
    static const uint8_t saved_at[] = {16, 17, 0, 1}; /* registers in the order of emit_save */
    uint64_t *at = &emitter->at;
    emit_save(emitter);
    uint32_t word = WORD_MOV_X17 | jump_register << 16;
    for (uint32_t i = 0; i < sizeof(saved_at); i++) {
        word = saved_at[i] == jump_register ? WORD_LOAD_X17 | i << 10 : word;
    }
    EMIT(at, word);
    emit_jump_record(emitter, tag);
}

bool sj_arch_has_tail_call_entries(const sj_code_emitter *emitter)
{
    (void)emitter;
    return false;
}

void sj_code_emit_tail_call_exit(sj_code_emitter *emitter, uint32_t leave_tag, uint64_t entry)
{
    (void)emitter;
    (void)leave_tag;
    (void)entry;
}

void sj_code_emit_tail_call_alone(sj_code_emitter *emitter, uint32_t leave_tag,
                                  const sj_tail_call_entry *entry)
{
    emit_save(emitter);
    put_address(emitter, 17, entry->start);
    emit_jump_record(emitter, leave_tag);
    sj_code_emit_jump(emitter, entry->start);
}

void sj_code_emit_tail_call_entry(sj_code_emitter *emitter, const sj_tail_call_entry *entry)
{
    (void)emitter;
    (void)entry;
}

void sj_code_emit_receiver_probe(sj_code_emitter *emitter, uint32_t function, uint8_t receiver)
{
    enum { VALUE_WORDS = 19, WORD_CBZ_X0 = 0xb4000000, WORD_CBNZ_X16 = 0xb5000010 };
    const uint32_t tag = sj_record_make_tag(SJ_RECORD_VALUE, function);
    uint64_t *at = &emitter->at;
    if (emitter->counts_calls) {
        emit_shared_call(emitter, receiver == 1 ? SJ_SHARED_FIRST_RECEIVER : SJ_SHARED_ENTER,
                         sj_record_make_tag(SJ_RECORD_ENTER, function));
        return;
    }
    emit_save(emitter);
    emit_dispatch_check(emitter);
    if (receiver == 1) {
        EMIT(at, WORD_CBZ_X0 | (VALUE_WORDS + 3) << 5, /* cbz x0 */
             0x92400810,                               /* and x16, x0, #7 */
             WORD_CBNZ_X16 | (VALUE_WORDS + 1) << 5);  /* cbnz x16 */
        emit_reserve(emitter, tag);                    /* 11 words */
        EMIT(at, 0xf9400bf1,                           /* ldr x17, [sp, #16] */
             0xf9400231,                               /* ldr x17, [x17] */
             0xf8008411,                               /* str x17, [x0], #8 */
             0x910083f0);                              /* add x16, sp, #32 */
        put_tag(emitter, at, tag);                     /* 2 words */
        EMIT(at, 0xb3607c30,                           /* bfi x16, x1, #32, #32 */
             0xc89ffc10);                              /* stlr x16, [x0] */
    }
    emit_record(emitter, sj_record_make_tag(SJ_RECORD_ENTER, function), 0);
    emit_restore(emitter);
}

void sj_code_emit_values(sj_code_emitter *emitter, uint32_t function, uint32_t descriptors)
{
    uint64_t *at = &emitter->at;
    emit_save(emitter);
    put_touch(emitter, at, SJ_STUB_VALUES_TOUCHED_BYTES, 16);
    EMIT(at, WORD_MOVZ_W0 | (function & 0xffff) << 5, WORD_MOVK_W0 | (function >> 16) << 5);
    put_tag(emitter, at, descriptors);
    EMIT(at, 0xa9bf7bfd); /* stp x29, x30, [sp, #-16]! */
    sj_code_note_stack(emitter, at, SAVED_BYTES + LINK_BYTES);
    put_branch(emitter, at, emitter->values_trampoline, UINT32_C(0x80000000)); /* bl trampoline */
    EMIT(at, 0xa8c17bfd); /* ldp x29, x30, [sp], #16 */
    sj_code_note_stack(emitter, at, SAVED_BYTES);
    emit_restore(emitter);
}

bool sj_code_emit_plain_values(sj_code_emitter *emitter, uint32_t function,
                               const sj_plain_value *values, uint32_t count)
{
    (void)emitter;
    (void)function;
    (void)values;
    (void)count;
    return false;
}

bool sj_arch_is_return(const uint8_t *bytes, uint32_t count)
{
    enum { WORD_RETAA = 0xd65f0bff, WORD_RETAB = 0xd65f0fff };
    const uint32_t word = count == SJ_WORD_BYTES ? sj_word_read(bytes) : 0;
    return word == WORD_RET || word == WORD_RETAA || word == WORD_RETAB;
}

void sj_code_emit_jump(sj_code_emitter *emitter, uint64_t target)
{
    put_branch(emitter, &emitter->at, target, 0);
}

/* Emits a conditional branch to a target at any distance. `opposite` is a conditional branch over
 * the next instruction; it reaches at most 1 MiB. The next instruction is a plain branch to
 * `target`. */
static void put_branch_if(sj_code_emitter *emitter, uint32_t opposite, uint64_t target)
{
    put_word(&emitter->at, emitter->measuring, opposite);
    put_branch(emitter, &emitter->at, target, 0);
}

void sj_code_emit_jump_if(sj_code_emitter *emitter, uint32_t condition, uint64_t target)
{
    if (condition >= CONDITION_ALWAYS) {
        sj_code_emit_jump(emitter, target);
    } else {
        put_branch_if(emitter, 0x54000040 | (condition ^ 1), target);
    }
}

void sj_code_emit_push_return(sj_code_emitter *emitter, uint64_t address)
{
    put_address(emitter, SJ_WORD_LINK_REGISTER, address);
}

void sj_code_emit_relative(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count,
                           uint32_t position, uint64_t target)
{
    const uint32_t word = sj_word_read(bytes);
    const uint32_t reg = word & 31;
    (void)count;
    (void)position;
    switch (sj_word_class_of(word)) {
    case SJ_WORD_B:
        put_branch(emitter, &emitter->at, target, 0);
        break;
    case SJ_WORD_BL:
        put_branch(emitter, &emitter->at, target, UINT32_C(0x80000000));
        break;
    case SJ_WORD_B_COND:
        sj_code_emit_jump_if(emitter, word & 15, target);
        break;
    case SJ_WORD_COMPARE_BRANCH:
        put_branch_if(emitter, ((word ^ UINT32_C(0x01000000)) & UINT32_C(0xff00001f)) | 2 << 5,
                      target);
        break;
    case SJ_WORD_TEST_BRANCH:
        put_branch_if(emitter, ((word ^ UINT32_C(0x01000000)) & UINT32_C(0xfff8001f)) | 2 << 5,
                      target);
        break;
    case SJ_WORD_ADR:
        put_address(emitter, reg, target);
        break;
    case SJ_WORD_ADRP:
        put_page(emitter, reg, target);
        break;
    case SJ_WORD_LITERAL: {
        /* ldr w, ldr x and ldrsw with an offset of 0, indexed by the two bits of the literal
         * form. */
        static const uint32_t loads[] = {0xb9400000, 0xf9400000, 0xb9800000};
        put_address(emitter, reg, target);
        put_word(&emitter->at, emitter->measuring, loads[word >> 30] | reg << 5 | reg);
        break;
    }
    default:
        put_word(&emitter->at, emitter->measuring, word);
        break;
    }
}

bool sj_arch_patch_bytes(uint32_t kind, uint64_t address, uint64_t target, const uint8_t *original,
                         uint32_t count, uint8_t *bytes, bool *too_far)
{
    (void)original;
    *too_far = false;
    if (kind != SJ_PATCH_BRANCH26 || count != SJ_WORD_BYTES || address % SJ_WORD_BYTES != 0) {
        return false;
    }
    const uint32_t word = branch_word(address, target, too_far);
    for (uint32_t i = 0; i < SJ_WORD_BYTES; i++) {
        bytes[i] = (uint8_t)(word >> (8 * i));
    }
    return !*too_far;
}

enum { WORD_MOVZ_X8 = 0xd2800008, WORD_SVC = 0xd4000001, IMMEDIATE_SHIFT = 5 };

static bool is_call(const uint32_t *code, uint32_t number)
{
    return code[0] == ((uint32_t)WORD_MOVZ_X8 | number << IMMEDIATE_SHIFT) && code[1] == WORD_SVC;
}

uint64_t sj_arch_find_call_near(uint64_t address, uint32_t number)
{
    enum { BEFORE_BYTES = 256, BEHIND_BYTES = 512 };
    for (uint64_t at = address - BEFORE_BYTES; at < address + BEHIND_BYTES; at += SJ_WORD_BYTES) {
        if (is_call((const uint32_t *)(uintptr_t)at, number)) {
            return at;
        }
    }
    return 0;
}

int32_t sj_arch_find_return(uint64_t address)
{
    const uint32_t *code = (const uint32_t *)(uintptr_t)address;
    if (address % SJ_WORD_BYTES != 0) {
        return -1;
    }
    const int32_t first = code[0] == WORD_BTI_C ? 1 : 0;
    return code[first] == WORD_RET ? first * SJ_WORD_BYTES : -1;
}

int32_t sj_arch_find_system_call(uint64_t address, uint32_t number)
{
    const uint32_t *code = (const uint32_t *)(uintptr_t)address;
    if (address % SJ_WORD_BYTES != 0) {
        return -1;
    }
    const int32_t first = code[0] == WORD_BTI_C ? 1 : 0;
    return is_call(code + first, number) ? first * SJ_WORD_BYTES : -1;
}

int32_t sj_arch_find_later_system_call(uint64_t address, uint32_t number)
{
    for (int32_t at = 0; at < SJ_LATER_CALL_BYTES; at += SJ_WORD_BYTES) {
        if (sj_arch_find_system_call(address + (uint64_t)at, number) == 0) {
            return at;
        }
    }
    return -1;
}

int32_t sj_arch_find_limit_call(uint64_t address)
{
    enum { LOAD = 0xd28020a8, CLEAR = 0xd2800000, CALL = 0xd4000001 }; /* x8 = 261, x0 = 0, svc */
    const uint32_t *code = (const uint32_t *)(uintptr_t)address;
    for (int32_t at = 0; at < SJ_LATER_CALL_BYTES / SJ_WORD_BYTES; at++) {
        if (code[at] == LOAD &&
            (code[at + 1] == CALL || (code[at + 1] == CLEAR && code[at + 2] == CALL))) {
            return at * SJ_WORD_BYTES;
        }
    }
    return -1;
}

int32_t sj_arch_find_inner_call(uint64_t address, bool is_prctl)
{
    /* Not needed on this machine: seccomp does not disable the instruction that reads the clock,
     * and the recorder checks for filters. */
    (void)address;
    (void)is_prctl;
    return -1;
}

void sj_arch_sync_code(uint64_t address, uint64_t bytes)
{
    __builtin___clear_cache((char *)(uintptr_t)address, (char *)(uintptr_t)(address + bytes));
}
