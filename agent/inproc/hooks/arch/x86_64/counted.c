/* Probes of functions whose calls may be counted (calls.clock of the policy): most of their records
 * are short and without a clock. Short, too, is what the probe may cost, so that its rare ways lie
 * elsewhere: a call that is timed, a record that cannot be short because of where its frame lies, a
 * chunk that is full. */
#include "agent/inproc/hooks/arch/x86_64/code.h"

/* The end of a short record's probe that could not be short: a whole record without a clock. The
 * jumps that lead here are those at `fields`; `slow_field`: a jump by one that has reserved no
 * place in the chunk. */
static void emit_untimed_record(sj_code_emitter *emitter, uint64_t far_field, uint64_t slow_field)
{
    uint64_t *at = &emitter->at;
    land(emitter, far_field, *at);
    sj_code_emit_try(emitter);
    uint64_t *cold_at = &emitter->cold_at;
    land(emitter, slow_field, *cold_at);
    EMIT(cold_at, 0x8b, 0x44, 0x24, 0xf8); /* mov -8(%rsp), %eax */
    sj_code_emit_slow_call(emitter);
    EMIT(cold_at, OPCODE_JMP32);
    put_displacement(emitter, cold_at, *at);
    EMIT(at, 0x48, 0x8d, 0x54, 0x24, 8 + SJ_STACK_UNTIMED); /* lea 10(%rsp), %rdx */
    EMIT(at, 0x48, 0x89, 0x51, 0x06);                       /* mov %rdx, 6(%rcx) */
    EMIT(at, 0x8b, 0x44, 0x24, 0xf8);                       /* mov -8(%rsp), %eax */
    EMIT(at, 0x89, 0x41, 0x0c);                             /* mov %eax, 12(%rcx) */
    sj_code_emit_restore(emitter, at);
}

/* One call is timed after 1 to 64 counted ones, each as likely: a generator of the thread's says
 * which. It is noted among the open ones, so that its exit is timed, too; those of frames that are
 * gone are forgotten. The distance of the frame is in %rax. */
static void emit_sample(sj_code_emitter *emitter, uint64_t timed, uint64_t counted)
{
    uint64_t *at = &emitter->cold_at;
    EMIT_OWN(at, counting.random, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:random, %edx */
    EMIT(at, 0x89, 0xd1, 0xc1, 0xe1, 0x0d, 0x31, 0xca);    /* mov; shl $13, %ecx; xor %ecx, %edx */
    EMIT(at, 0x89, 0xd1, 0xc1, 0xe9, 0x11, 0x31, 0xca);    /* mov; shr $17, %ecx; xor %ecx, %edx */
    EMIT(at, 0x89, 0xd1, 0xc1, 0xe1, 0x05, 0x31, 0xca);    /* mov; shl $5, %ecx; xor %ecx, %edx */
    EMIT_OWN(at, counting.random, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:random */
    EMIT(at, 0xc1, 0xea, 0x1a);                            /* shr $26, %edx */
    EMIT_OWN(at, counting.countdown, 0x64, 0x89, 0x14, 0x25);    /* mov %edx, %fs:countdown */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:open, %edx */
    EMIT(at, 0x85, 0xd2);                                        /* test %edx, %edx */
    EMIT(at, 0x74, 0x0f);                                        /* jz put */
    EMIT(at, 0x64, 0x48, 0x3b, 0x04, 0xd5);                      /* cmp %fs:samples-8(,%rdx,8), */
    put_32(at, emitter->measuring, offset_of(&sj_recorder_self.counting.samples[0]) - 8); /* %rax */
    EMIT(at, 0x72, 0x04);                  /* jb put */
    EMIT(at, 0xff, 0xca);                  /* dec %edx */
    EMIT(at, 0xeb, 0xed);                  /* jmp test */
    EMIT(at, 0x8b, 0x4c, 0x24, 0xf8);      /* put: mov -8(%rsp), %ecx */
    EMIT(at, 0x83, 0xfa, SJ_OPEN_SAMPLES); /* cmp $8, %edx */
    EMIT(at, 0x0f, 0x83);                  /* jae counted */
    put_displacement(emitter, at, counted);
    EMIT_OWN(at, counting.samples[0], 0x64, 0x48, 0x89, 0x04,
             0xd5);                                              /* mov %rax, samples(,%rdx,8) */
    EMIT(at, 0xff, 0xc2);                                        /* inc %edx */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, timed);
}

/* The exit of a call that is timed, if it is the innermost of those; others have ended. */
static void emit_sample_end(sj_code_emitter *emitter, uint64_t timed, uint64_t counted)
{
    uint64_t *at = &emitter->cold_at;
    EMIT_OWN(at, counting.open_samples, 0x64, 0x8b, 0x14, 0x25); /* mov %fs:open, %edx */
    EMIT(at, 0x64, 0x48, 0x3b, 0x04, 0xd5);                      /* next: cmp samples-8(,%rdx,8), */
    put_32(at, emitter->measuring, offset_of(&sj_recorder_self.counting.samples[0]) - 8); /* %rax */
    EMIT(at, 0x0f, 0x82); /* jb counted */
    put_displacement(emitter, at, counted);
    EMIT(at, 0x74, 0x11);                                        /* je found */
    EMIT(at, 0xff, 0xca);                                        /* dec %edx */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    EMIT(at, 0x75, 0xe3);                                        /* jnz next */
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, counted);
    EMIT(at, 0xff, 0xca);                                        /* found: dec %edx */
    EMIT_OWN(at, counting.open_samples, 0x64, 0x89, 0x14, 0x25); /* mov %edx, %fs:open */
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, timed);
}

/* A probe of a function whose calls may be counted: a short record in most of them. */
static void emit_counted_part(sj_code_emitter *emitter, sj_shared_part part, bool enters)
{
    const uint32_t kind = enters ? 0 : (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS;
    const uint32_t exit = enters ? 0 : UINT32_C(1) << SJ_SHORT_EXIT_BIT;
    uint64_t *at = &emitter->at;
    sj_code_begin_part(emitter, part);
    EMIT(at, 0x8b, 0x4c, 0x24, 0xf8);                               /* mov -8(%rsp), %ecx */
    EMIT(at, 0x48, 0x8d, 0x44, 0x24, 0x08);                         /* lea 8(%rsp), %rax */
    EMIT_OWN(at, counting.base, 0x64, 0x48, 0x2b, 0x04, 0x25);      /* sub %fs:base, %rax */
    EMIT_OWN(at, counting.span, 0x64, 0x48, 0x3b, 0x04, 0x25);      /* cmp %fs:span, %rax */
    const uint64_t is_elsewhere = emit_forward(emitter, at, 0x83);  /* jae */
    EMIT(at, 0xa8, SJ_STACK_ALIGNMENT - 1);                         /* test $7, %al */
    const uint64_t is_odd = emit_forward(emitter, at, 0x85);        /* jnz */
    EMIT_OWN(at, counting.functions, 0x64, 0x48, 0x8b, 0x14, 0x25); /* mov %fs:functions, %rdx */
    EMIT(at, 0x80, 0xbc, 0x0a);                                     /* cmpb $0, -kind(%rdx,%rcx) */
    put_32(at, emitter->measuring, 0 - kind);
    EMIT(at, 0x00);
    const uint64_t is_timed = emit_forward(emitter, at, 0x84); /* je */
    uint64_t sample = 0;
    if (enters) {
        EMIT_OWN(at, counting.countdown, 0x64, 0x83, 0x2c, 0x25); /* subl $1, %fs:countdown */
        EMIT(at, 0x01);
        sample = emit_forward(emitter, at, 0x88); /* js */
    } else {
        EMIT_OWN(at, counting.open_samples, 0x64, 0x83, 0x3c, 0x25); /* cmpl $0, %fs:open */
        EMIT(at, 0x00);
        sample = emit_forward(emitter, at, 0x85); /* jne */
    }
    const uint64_t short_start = *at;
    EMIT(at, 0x48, 0x89, 0xc2);                                /* mov %rax, %rdx */
    EMIT_OWN(at, counting.last, 0x64, 0x48, 0x2b, 0x14, 0x25); /* sub %fs:last, %rdx */
    EMIT(at, 0x48, 0x81, 0xc2);                                /* add $reach, %rdx */
    put_32(at, emitter->measuring, SJ_SHORT_REACH_BYTES);
    EMIT(at, 0x48, 0x81, 0xfa); /* cmp $2 * reach, %rdx */
    put_32(at, emitter->measuring, 2 * SJ_SHORT_REACH_BYTES);
    EMIT_OWN(at, counting.last, 0x64, 0x48, 0x89, 0x04, 0x25); /* mov %rax, %fs:last */
    const uint64_t is_far = emit_forward(emitter, at, 0x83);   /* jae */
    EMIT(at, 0x25, 0xff, 0x7f, 0x00, 0x00);                    /* and $0x7fff, %eax */
    EMIT(at, 0xc1, 0xe0, 0x0d);                                /* shl $13, %eax */
    EMIT(at, 0x8d, 0x84, 0x08);                                /* lea mark(%rax,%rcx), %eax */
    put_32(at, emitter->measuring, SJ_SHORT_FILLER + exit - kind);
    EMIT(at, 0xb9, SJ_SHORT_BYTES, 0x00, 0x00, 0x00);         /* mov $4, %ecx */
    EMIT_OWN(at, cursor, 0x64, 0x48, 0x0f, 0xc1, 0x0c, 0x25); /* xadd %rcx, %fs:cursor */
    EMIT(at, 0xf7, 0xc1, 0x00, 0xf0, 0x00, 0x00);             /* test $0xf000, %ecx */
    const uint64_t is_full = emit_forward(emitter, at, 0x84); /* jz */
    EMIT(at, 0x89, 0x01);                                     /* mov %eax, (%rcx) */
    sj_code_emit_restore(emitter, at);
    const uint64_t timed = *at;
    land(emitter, is_timed, timed);
    land(emitter, is_elsewhere, timed);
    land(emitter, is_odd, timed);
    sj_code_emit_record(emitter, enters, 0);
    sj_code_emit_restore(emitter, at);
    emit_untimed_record(emitter, is_far, is_full);
    land(emitter, sample, emitter->cold_at);
    if (enters) {
        emit_sample(emitter, timed, short_start);
    } else {
        emit_sample_end(emitter, timed, short_start);
    }
}

void sj_code_emit_counted_parts(sj_code_emitter *emitter)
{
    emitter->frees_flags = true;
    emit_counted_part(emitter, SJ_SHARED_COUNTED_ENTER_FREE_FLAGS, true);
    emit_counted_part(emitter, SJ_SHARED_COUNTED_LEAVE_FREE_FLAGS, false);
    emitter->frees_flags = false;
    emit_counted_part(emitter, SJ_SHARED_COUNTED_ENTER, true);
    emit_counted_part(emitter, SJ_SHARED_COUNTED_LEAVE, false);
}
