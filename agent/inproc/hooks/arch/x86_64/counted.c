/* Probes of functions whose calls may be counted (calls.clock of the policy). Most of their records
 * are short and have no time. For speed, the usual path uses two registers. The code for rare cases
 * saves a third register and lies elsewhere. The rare cases are a call that is timed, a frame that
 * a short record cannot reach, and a full chunk. */
#include "agent/inproc/hooks/arch/x86_64/code.h"

#define LEAVE_TAG ((uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS)

enum {
    SHORT_STACK_MASK = SJ_SHORT_WINDOW_BYTES - SJ_STACK_ALIGNMENT,
    STACK_SHIFT = SJ_SHORT_STACK_BIT - 3,
    WORDS_IN_REACH = SJ_SHORT_REACH_BYTES / SJ_STACK_ALIGNMENT
};

/* A shared part that is being emitted. */
typedef struct counted_part {
    bool enters;
    uint8_t mark;   /* added to the stack address: 0, or SJ_STACK_TAIL_CALL */
    uint64_t timed; /* address of the code that records with a clock, after the saving of %rdx */
} counted_part;

/* Emits a jump that the code takes if no short record can reach the stack pointer, or if the stack
 * pointer is not a multiple of 8. Returns the jump, for set_target. The code changes %rax. */
static uint64_t emit_reach_check(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                     /* lea 8(%rsp), %rax */
    EMIT_OWN(at, counting.reach, 0x64, 0x48, 0x2b, 0x04, 0x25); /* sub %fs:reach, %rax */
    EMIT(at, 0x48, 0xc1, 0xc8, 0x03);                           /* ror $3, %rax */
    EMIT(at, 0x48, 0x3d);                                       /* cmp $words, %rax */
    put_32(at, emitter->measuring, WORDS_IN_REACH);
    return emit_forward(emitter, at, 0x83); /* jae */
}

/* Emits a jump that the code takes if all calls of the function with the tag in %rcx are timed.
 * Returns the jump. The code changes %rax. */
static uint64_t emit_counted_check(sj_code_emitter *emitter, uint64_t *at, bool enters)
{
    EMIT_OWN(at, counting.functions, 0x64, 0x48, 0x8b, 0x04, 0x25); /* mov %fs:functions, %rax */
    EMIT(at, 0x80, 0xbc, 0x08);                                     /* cmpb $0, -kind(%rax,%rcx) */
    put_32(at, emitter->measuring, enters ? 0 : 0 - LEAVE_TAG);
    EMIT(at, 0x00);
    return emit_forward(emitter, at, 0x84); /* je */
}

/* Emits a jump that the code takes if this entry is to be timed, or if this exit may be that of a
 * timed call. Returns the jump. */
static uint64_t emit_sample_check(sj_code_emitter *emitter, uint64_t *at, bool enters)
{
    if (enters) {
        EMIT_OWN(at, counting.countdown, 0x64, 0x83, 0x2c, 0x25); /* subl $1, %fs:countdown */
        EMIT(at, 0x01);
        return emit_forward(emitter, at, 0x88); /* js */
    }
    EMIT_OWN(at, counting.open_samples, 0x64, 0x83, 0x3c, 0x25); /* cmpl $0, %fs:open */
    EMIT(at, 0x00);
    return emit_forward(emitter, at, 0x85); /* jne */
}

/* Emits code that sets %eax to the stack bits of a short record. */
static void emit_stack_bits(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x8d, 0x44, 0x24, 0x08); /* lea 8(%rsp), %eax */
    EMIT(at, 0x25);                   /* and $mask, %eax */
    put_32(at, emitter->measuring, SHORT_STACK_MASK);
    EMIT(at, 0xc1, 0xe0, STACK_SHIFT); /* shl $13, %eax */
}

/* Emits code that sets %eax to a short record: the sum of the stack bits, the tag at -8(%rsp) and
 * `mark`. */
static void emit_tagged_stack_bits(sj_code_emitter *emitter, uint32_t mark)
{
    uint64_t *at = &emitter->at;
    emit_stack_bits(emitter);
    EMIT(at, 0x03, 0x44, 0x24, 0xf8); /* add -8(%rsp), %eax */
    EMIT(at, 0x05);                   /* add $mark, %eax */
    put_32(at, emitter->measuring, mark);
}

/* Emits code that reserves `bytes` for short records and puts their address into %rcx. Returns the
 * jump that the code takes if the chunk cannot hold the first record. */
static uint64_t emit_short_try(sj_code_emitter *emitter, uint8_t bytes)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xb9, bytes, 0x00, 0x00, 0x00);                  /* mov $bytes, %ecx */
    EMIT_OWN(at, cursor, 0x64, 0x48, 0x0f, 0xc1, 0x0c, 0x25); /* xadd %rcx, %fs:cursor */
    emit_usable_test(emitter, at, false);
    return emit_forward(emitter, at, 0x84); /* jz */
}

/* Emits, in the slow part, the end of code that saved a third register: restores it and jumps to
 * `target`. */
static void emit_jump_to_counted(sj_code_emitter *emitter, uint64_t target)
{
    uint64_t *at = &emitter->cold_at;
    sj_code_emit_give_back_third(emitter, at);
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, target);
}

static void emit_jump_to_timed(sj_code_emitter *emitter, const counted_part *part)
{
    uint64_t *at = &emitter->cold_at;
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, part->timed);
}

/* Emits a comparison of the stack pointer in %rax with that of open timed call number %rdx, which
 * counts from 1. */
static void emit_compare_sample(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->cold_at;
    EMIT(at, 0x64, 0x48, 0x3b, 0x04, 0xd5); /* cmp %fs:samples-8(,%rdx,8), %rax */
    put_32(at, emitter->measuring, offset_of(&sj_recorder_self.counting.samples[0]) - 8);
}

/* Emits code that starts timing a call. Each timed call is followed by 0 to 63 counted calls. The
 * thread's random generator chooses the number. The call is added to the open timed calls, so that
 * its exit is timed, too. The code first removes open timed calls whose frames have ended. If too
 * many are open, it jumps to `counted`. */
static void emit_sample(sj_code_emitter *emitter, const counted_part *part, uint64_t counted)
{
    uint64_t *at = &emitter->cold_at;
    sj_code_emit_save_third(emitter, at);
    EMIT_OWN(at, counting.random, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:random, %edx */
    EMIT(at, 0x89, 0xd0, 0xc1, 0xe0, 0x0d, 0x31, 0xc2);    /* mov; shl $13, %eax; xor %eax, %edx */
    EMIT(at, 0x89, 0xd0, 0xc1, 0xe8, 0x11, 0x31, 0xc2);    /* mov; shr $17, %eax; xor %eax, %edx */
    EMIT(at, 0x89, 0xd0, 0xc1, 0xe0, 0x05, 0x31, 0xc2);    /* mov; shl $5, %eax; xor %eax, %edx */
    EMIT_OWN(at, counting.random, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:random */
    EMIT(at, 0xc1, 0xea, 0x1a);                            /* shr $26, %edx */
    EMIT_OWN(at, counting.countdown, 0x64, 0x89, 0x14, 0x25);    /* mov %edx, %fs:countdown */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:open, %edx */
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                      /* lea 8(%rsp), %rax */
    const uint64_t next = *at;
    EMIT(at, 0x85, 0xd2);                                      /* test %edx, %edx */
    const uint64_t is_first = emit_forward(emitter, at, 0x84); /* jz */
    emit_compare_sample(emitter);
    const uint64_t is_inner = emit_forward(emitter, at, 0x82); /* jb */
    EMIT(at, 0xff, 0xca);                                      /* dec %edx */
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, next);
    set_target(emitter, is_first, *at);
    set_target(emitter, is_inner, *at);
    EMIT(at, 0x83, 0xfa, SJ_OPEN_SAMPLES);                     /* cmp $8, %edx */
    const uint64_t are_many = emit_forward(emitter, at, 0x83); /* jae */
    EMIT_OWN(at, counting.samples[0], 0x64, 0x48, 0x89, 0x04,
             0xd5);                                              /* mov %rax, samples(,%rdx,8) */
    EMIT(at, 0xff, 0xc2);                                        /* inc %edx */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    emit_jump_to_timed(emitter, part);
    set_target(emitter, are_many, *at);
    emit_jump_to_counted(emitter, counted);
}

/* Emits code that searches the open timed calls for the call of this frame and puts its number into
 * %rdx. At least one call must be open. The code removes open timed calls whose frames have ended.
 * Returns the jump that it takes if it finds the call. */
static uint64_t emit_find_sample(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->cold_at;
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                      /* lea 8(%rsp), %rax */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:open, %edx */
    const uint64_t next = *at;
    emit_compare_sample(emitter);
    const uint64_t is_inner = emit_forward(emitter, at, 0x82);   /* jb */
    const uint64_t is_found = emit_forward(emitter, at, 0x84);   /* je */
    EMIT(at, 0xff, 0xca);                                        /* dec %edx */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    EMIT(at, 0x0f, 0x85);                                        /* jnz next */
    put_displacement(emitter, at, next);
    set_target(emitter, is_inner, *at);
    return is_found;
}

/* Emits code that times the exit if its call is the innermost open timed call, and removes that
 * call. The code also removes open timed calls whose frames have ended. At a tail call, the call
 * stays in the list, so that the chain of tail calls is timed to its end. */
static void emit_sample_end(sj_code_emitter *emitter, const counted_part *part, uint64_t counted)
{
    uint64_t *at = &emitter->cold_at;
    sj_code_emit_save_third(emitter, at);
    const uint64_t is_found = emit_find_sample(emitter);
    emit_jump_to_counted(emitter, counted);
    set_target(emitter, is_found, *at);
    if (part->mark != SJ_STACK_TAIL_CALL) {
        EMIT(at, 0xff, 0xca);                                        /* dec %edx */
        EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    }
    emit_jump_to_timed(emitter, part);
}

/* Emits the code to which the jump `field` of emit_sample_check leads. */
static void emit_sampling(sj_code_emitter *emitter, const counted_part *part, uint64_t field,
                          uint64_t counted)
{
    set_target(emitter, field, emitter->cold_at);
    if (part->enters) {
        emit_sample(emitter, part, counted);
    } else {
        emit_sample_end(emitter, part, counted);
    }
}

/* Emits code that writes a full record without a time, for calls that no short record can hold.
 * `full_field` is the jump that a probe takes if the chunk is full. Returns the code's address. */
static uint64_t emit_untimed_record(sj_code_emitter *emitter, const counted_part *part,
                                    uint64_t full_field)
{
    const uint8_t stack_at = (uint8_t)(8 + SJ_STACK_UNTIMED + part->mark);
    uint64_t *at = &emitter->at;
    const uint64_t start = *at;
    sj_code_emit_save_third(emitter, at);
    sj_code_emit_try(emitter);
    uint64_t *cold_at = &emitter->cold_at;
    set_target(emitter, full_field, *cold_at);
    sj_code_emit_save_third(emitter, cold_at);
    EMIT(cold_at, 0x8b, 0x44, 0x24, 0xf8); /* mov -8(%rsp), %eax */
    sj_code_emit_slow_call(emitter);
    EMIT(cold_at, OPCODE_JMP32);
    put_displacement(emitter, cold_at, *at);
    EMIT(at, 0x48, 0x8d, 0x54, 0x24, stack_at); /* lea 10(%rsp), %rdx; or 11 */
    EMIT(at, 0x48, 0x89, 0x51, 0x06);           /* mov %rdx, 6(%rcx) */
    EMIT(at, 0x8b, 0x44, 0x24, 0xf8);           /* mov -8(%rsp), %eax */
    EMIT(at, 0x89, 0x41, 0x0c);                 /* mov %eax, 12(%rcx) */
    sj_code_emit_keep_place(emitter, at);
    sj_code_emit_restore(emitter, at);
    return start;
}

/* Emits the code for a frame that short records do not reach. Calls on another stack than the
 * thread's own are timed. */
static void emit_far(sj_code_emitter *emitter, const counted_part *part, uint64_t far_field,
                     uint64_t untimed)
{
    uint64_t *at = &emitter->cold_at;
    set_target(emitter, far_field, *at);
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                        /* lea 8(%rsp), %rax */
    EMIT(at, 0xa8, SJ_STACK_ALIGNMENT - 1);                        /* test $7, %al */
    const uint64_t is_unaligned = emit_forward(emitter, at, 0x85); /* jnz */
    EMIT_OWN(at, counting.low, 0x64, 0x48, 0x2b, 0x04, 0x25);      /* sub %fs:low, %rax */
    EMIT_OWN(at, counting.span, 0x64, 0x48, 0x3b, 0x04, 0x25);     /* cmp %fs:span, %rax */
    const uint64_t is_elsewhere = emit_forward(emitter, at, 0x83); /* jae */
    const uint64_t is_timed = emit_counted_check(emitter, at, part->enters);
    const uint64_t sample = emit_sample_check(emitter, at, part->enters);
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, untimed);
    set_target(emitter, is_unaligned, *at);
    set_target(emitter, is_elsewhere, *at);
    set_target(emitter, is_timed, *at);
    sj_code_emit_save_third(emitter, at);
    emit_jump_to_timed(emitter, part);
    emit_sampling(emitter, part, sample, untimed);
}

static void emit_filler_word(sj_code_emitter *emitter, uint8_t offset)
{
    uint64_t *at = &emitter->cold_at;
    EMIT(at, 0xc7, 0x41, offset); /* movl $filler, offset(%rcx) */
    put_32(at, emitter->measuring, SJ_SHORT_FILLER);
}

/* Emits the code for the case that a signal handler ran between the check of the reach and the
 * reservation. The handler's stack address would complete the short records. So the code writes
 * fillers into the reserved words and jumps to `target`, which writes a full record. The second
 * word may lie past the end of the chunk. */
static void emit_overtaken(sj_code_emitter *emitter, uint64_t field, uint8_t bytes, uint64_t target)
{
    uint64_t *at = &emitter->cold_at;
    set_target(emitter, field, *at);
    emit_filler_word(emitter, 0);
    if (bytes > SJ_SHORT_BYTES) {
        EMIT(at, 0x8d, 0x41, SJ_SHORT_BYTES);                      /* lea 4(%rcx), %eax */
        EMIT(at, 0xa9, 0x00, 0xf0, 0x00, 0x00);                    /* test $0xf000, %eax */
        const uint64_t is_alone = emit_forward(emitter, at, 0x84); /* jz */
        emit_filler_word(emitter, SJ_SHORT_BYTES);
        set_target(emitter, is_alone, *at);
    }
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, target);
}

/* Returns the number to add to a tag and stack bits, so that the sum is a short record. */
static uint32_t short_mark(bool enters, uint8_t stack_mark)
{
    if (enters) {
        return SJ_SHORT_FILLER;
    }
    return (stack_mark == SJ_STACK_TAIL_CALL ? SJ_SHORT_TAIL_CALL
                                             : SJ_SHORT_FILLER | UINT32_C(1) << SJ_SHORT_EXIT_BIT) -
           LEAVE_TAG;
}

/* Emits the shared part for entries or exits of functions whose calls may be counted. `stack_mark`
 * of an exit is SJ_STACK_TAIL_CALL or 0. */
static void emit_counted_part(sj_code_emitter *emitter, sj_shared_part shared_part, bool enters,
                              uint8_t stack_mark)
{
    uint64_t *at = &emitter->at;
    sj_code_begin_part(emitter, shared_part);
    sj_code_emit_save_two(emitter);
    EMIT(at, 0x8b, 0x4c, 0x24, 0xf8); /* mov -8(%rsp), %ecx */
    const uint64_t is_far = emit_reach_check(emitter);
    const uint64_t is_timed = emit_counted_check(emitter, at, enters);
    const uint64_t sample = emit_sample_check(emitter, at, enters);
    const uint64_t counted = *at;
    const uint64_t is_full = emit_short_try(emitter, SJ_SHORT_BYTES);
    const uint64_t is_overtaken = emit_reach_check(emitter);
    emit_tagged_stack_bits(emitter, short_mark(enters, stack_mark));
    EMIT(at, 0x89, 0x01); /* mov %eax, (%rcx) */
    sj_code_emit_give_back_two(emitter, at);
    EMIT(at, 0xc3); /* ret */
    set_target(emitter, is_timed, *at);
    sj_code_emit_save_third(emitter, at);
    const counted_part part = {.enters = enters, .mark = stack_mark, .timed = *at};
    sj_code_emit_record(emitter, enters, stack_mark);
    sj_code_emit_restore(emitter, at);
    const uint64_t untimed = emit_untimed_record(emitter, &part, is_full);
    emit_overtaken(emitter, is_overtaken, SJ_SHORT_BYTES, untimed);
    emit_sampling(emitter, &part, sample, counted);
    emit_far(emitter, &part, is_far, untimed);
}

/* Emits the shared part for a tail call between two functions whose calls may be counted. It writes
 * two short records, unless the call that ends is timed. A timed call stays in the list of open
 * timed calls, so that the exit of the call that begins is timed, too. */
static void emit_counted_tail_call_part(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    sj_code_begin_part(emitter, SJ_SHARED_COUNTED_TAIL_CALL);
    sj_code_emit_save(emitter);
    const uint64_t is_far = emit_reach_check(emitter);
    EMIT(at, 0x8b, 0x4c, 0x24, 0xf8); /* mov -8(%rsp), %ecx */
    EMIT(at, 0x81, 0xf9);             /* cmp $end, %ecx */
    put_32(at, emitter->measuring, LEAVE_TAG + SJ_SHORT_FUNCTIONS);
    const uint64_t is_high = emit_forward(emitter, at, 0x83); /* jae */
    const uint64_t leaves_timed = emit_counted_check(emitter, at, false);
    EMIT(at, 0x8b, 0x54, 0x24, 0xfc);                              /* mov -4(%rsp), %edx */
    EMIT(at, 0x80, 0x3c, 0x10, 0x00);                              /* cmpb $0, (%rax,%rdx) */
    const uint64_t enters_timed = emit_forward(emitter, at, 0x84); /* je */
    const uint64_t sample = emit_sample_check(emitter, at, false);
    const uint64_t counted = *at;
    emit_stack_bits(emitter);
    EMIT(at, 0x8d, 0x94, 0x10); /* lea filler(%rax,%rdx), %edx */
    put_32(at, emitter->measuring, SJ_SHORT_FILLER);
    const uint64_t is_full = emit_short_try(emitter, 2 * SJ_SHORT_BYTES);
    const uint64_t is_overtaken = emit_reach_check(emitter);
    emit_tagged_stack_bits(emitter, SJ_SHORT_TAIL_CALL - LEAVE_TAG);
    EMIT(at, 0x89, 0x01);                                      /* mov %eax, (%rcx) */
    EMIT(at, 0x8d, 0x41, SJ_SHORT_BYTES);                      /* lea 4(%rcx), %eax */
    EMIT(at, 0xa9, 0x00, 0xf0, 0x00, 0x00);                    /* test $0xf000, %eax */
    const uint64_t is_alone = emit_forward(emitter, at, 0x84); /* jz */
    EMIT(at, 0x89, 0x51, SJ_SHORT_BYTES);                      /* mov %edx, 4(%rcx) */
    sj_code_emit_restore(emitter, at); /* returns with the carry flag clear */
    set_target(emitter, is_alone, *at);
    EMIT(at, 0xf9); /* stc */
    sj_code_emit_restore(emitter, at);
    set_target(emitter, sample, emitter->cold_at);
    const uint64_t is_found = emit_find_sample(emitter);
    EMIT(&emitter->cold_at, 0x8b, 0x54, 0x24, 0xfc, OPCODE_JMP32); /* mov -4(%rsp), %edx; jmp */
    put_displacement(emitter, &emitter->cold_at, counted);
    set_target(emitter, is_found, *at);
    set_target(emitter, is_far, *at);
    set_target(emitter, is_high, *at);
    set_target(emitter, leaves_timed, *at);
    set_target(emitter, enters_timed, *at);
    set_target(emitter, is_full, *at);
    emit_overtaken(emitter, is_overtaken, 2 * SJ_SHORT_BYTES, *at);
    sj_code_emit_tail_call_records(emitter);
}

void sj_code_emit_counted_parts(sj_code_emitter *emitter)
{
    emitter->frees_flags = true;
    emit_counted_part(emitter, SJ_SHARED_COUNTED_ENTER_FREE_FLAGS, true, 0);
    emit_counted_part(emitter, SJ_SHARED_COUNTED_LEAVE_FREE_FLAGS, false, 0);
    emit_counted_tail_call_part(emitter);
    emitter->frees_flags = false;
    emit_counted_part(emitter, SJ_SHARED_COUNTED_ENTER, true, 0);
    emit_counted_part(emitter, SJ_SHARED_COUNTED_LEAVE, false, 0);
    emit_counted_part(emitter, SJ_SHARED_COUNTED_TAIL_LEAVE, false, SJ_STACK_TAIL_CALL);
    sj_code_emit_counted_jump_leave_part(emitter);
}
