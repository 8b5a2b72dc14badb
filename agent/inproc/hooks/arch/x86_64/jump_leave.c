/* Design notes
 *
 * Some exits jump through a register or memory, or to a function that may read the flags. Such an
 * exit is marked as a tail call if the target function is hooked at that moment. Functions are
 * hooked and unhooked only by changes of the text, so this code reads the text at the target. The
 * patch of an entry is a jump to a stub, possibly through a jump in a branch island. The stub
 * begins with the probe of an entry. Compilers never write such code: it stores into the red zone
 * and then calls.
 *
 * The processor would execute the bytes at the target next, so they can be read. But the next page
 * may not be mapped, so the checks fail for an address in the last 15 bytes of a page. */
#include "agent/inproc/hooks/arch/x86_64/code.h"

enum { MOST_CHECKS = 24 };

typedef struct check {
    sj_code_emitter *emitter;
    uint64_t failed[MOST_CHECKS]; /* jumps to the code for exits that are not marked */
    unsigned count;
} check;

/* Emits a conditional jump to the code for exits that are not marked. */
static void fail_if(check *self, uint8_t condition)
{
    self->failed[self->count++] = emit_forward(self->emitter, &self->emitter->at, condition);
}

/* Fails for targets below 64 KiB. So the code does not read at a null pointer, and a call through a
 * null pointer faults as it does without a probe. */
static void emit_null_check(check *self)
{
    const sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &self->emitter->at;
    EMIT(at, 0x48, 0x81, 0xf9, 0x00, 0x00, 0x01, 0x00); /* cmp $65536, %rcx */
    fail_if(self, 0x82);                                /* jb */
}

/* Fails if fewer than 16 bytes can be read at %rcx without reading the next page. */
static void emit_page_check(check *self)
{
    const sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &self->emitter->at;
    EMIT(at, 0x89, 0xc8);                   /* mov %ecx, %eax */
    EMIT(at, 0x25, 0xff, 0x0f, 0x00, 0x00); /* and $0xfff, %eax */
    EMIT(at, 0x3d, 0xf0, 0x0f, 0x00, 0x00); /* cmp $0xff0, %eax */
    fail_if(self, 0x87);                    /* ja */
}

/* Emits code that adds 4 to %rcx if endbr64 is there. */
static void emit_landing(check *self)
{
    const sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &self->emitter->at;
    emit_page_check(self);
    EMIT(at, 0x81, 0x39, 0xf3, 0x0f, 0x1e, 0xfa); /* cmpl $endbr64, (%rcx) */
    EMIT(at, 0x75, 0x04);                         /* jne */
    EMIT(at, 0x48, 0x83, 0xc1, 0x04);             /* add $4, %rcx */
}

/* Emits code that follows a jump of the procedure linkage table: loads the address in the import
 * slot into %rcx. */
static void emit_linkage(check *self)
{
    sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &emitter->at;
    EMIT(at, 0x80, 0x39, 0xf2);             /* cmpb $bnd, (%rcx) */
    EMIT(at, 0x75, 0x03);                   /* jne */
    EMIT(at, 0x48, 0xff, 0xc1);             /* inc %rcx */
    EMIT(at, 0x66, 0x81, 0x39, 0xff, 0x25); /* cmpw $jmp *(%rip), (%rcx) */
    const uint64_t is_other = emit_forward(emitter, at, 0x85);
    EMIT(at, 0x48, 0x63, 0x41, 0x02);       /* movslq 2(%rcx), %rax */
    EMIT(at, 0x48, 0x8b, 0x4c, 0x01, 0x06); /* mov 6(%rcx,%rax), %rcx */
    emit_landing(self);
    set_target(emitter, is_other, *at);
}

/* Emits code that follows a short jump to a branch island, if there is one, and then the jump to a
 * stub. Fails if there is no jump to a stub. */
static void emit_jumps(check *self)
{
    sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &emitter->at;
    EMIT(at, 0x80, 0x39, OPCODE_JMP8); /* cmpb $jmp, (%rcx) */
    const uint64_t is_long = emit_forward(emitter, at, 0x85);
    EMIT(at, 0x48, 0x0f, 0xbe, 0x41, 0x01); /* movsbq 1(%rcx), %rax */
    EMIT(at, 0x48, 0x8d, 0x4c, 0x01, 0x02); /* lea 2(%rcx,%rax), %rcx */
    emit_page_check(self);
    set_target(emitter, is_long, *at);
    EMIT(at, 0x80, 0x39, OPCODE_JMP32);     /* cmpb $jmp, (%rcx) */
    fail_if(self, 0x85);                    /* jne */
    EMIT(at, 0x48, 0x63, 0x41, 0x01);       /* movslq 1(%rcx), %rax */
    EMIT(at, 0x48, 0x8d, 0x4c, 0x01, 0x05); /* lea 5(%rcx,%rax), %rcx */
    emit_page_check(self);
}

/* Fails unless the code at %rcx is the start of an entry's stub: `movl $tag, -16(%rsp)` and a call,
 * or the code that records values. */
static void emit_stub_check(check *self)
{
    sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &emitter->at;
    EMIT(at, 0x81, 0x39, 0x48, 0x8d, 0xa4, 0x24); /* cmpl $lea, (%rcx) */
    const uint64_t is_probe = emit_forward(emitter, at, 0x85);
    EMIT(at, 0x81, 0x79, 0x04, 0x68, 0xff, 0xff, 0xff); /* cmpl $-152, 4(%rcx) */
    fail_if(self, 0x85);                                /* jne */
    EMIT(at, 0x80, 0x79, 0x08, 0x68);                   /* cmpb $push, 8(%rcx) */
    fail_if(self, 0x85);                                /* jne */
    const uint64_t has_values = emit_forward(emitter, at, 0x84);
    set_target(emitter, is_probe, *at);
    EMIT(at, 0x81, 0x39, 0xc7, 0x44, 0x24, 0xf0); /* cmpl $movl, (%rcx) */
    fail_if(self, 0x85);                          /* jne */
    EMIT(at, 0xf6, 0x41, 0x07, 0xc0);             /* testb $kind, 7(%rcx) */
    fail_if(self, 0x85);                          /* jne */
    EMIT(at, 0x80, 0x79, 0x08, 0xe8);             /* cmpb $call, 8(%rcx) */
    fail_if(self, 0x85);                          /* jne */
    set_target(emitter, has_values, *at);
}

/* Emits code that loads the target into %rcx, sets the stored mark to 0, and checks the target. The
 * code after the checks runs only if the target function is hooked. */
static void emit_checks(check *self)
{
    const sj_code_emitter *emitter = self->emitter;
    uint64_t *at = &self->emitter->at;
    EMIT(at, 0x48, 0x8b, 0x4c, 0x24, TARGET_AT);                         /* mov target, %rcx */
    EMIT(at, 0x48, 0xc7, 0x44, 0x24, TARGET_AT, 0x00, 0x00, 0x00, 0x00); /* movq $0, mark */
    emit_null_check(self);
    emit_landing(self);
    emit_linkage(self);
    emit_jumps(self);
    emit_stub_check(self);
}

static void set_failed_targets(const check *self)
{
    for (unsigned i = 0; i < self->count; i++) {
        set_target(self->emitter, self->failed[i], self->emitter->at);
    }
}

static void emit_jump_to_part(sj_code_emitter *emitter, sj_shared_part part)
{
    uint64_t *at = &emitter->at;
    sj_code_emit_give_back(emitter, at);
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, emitter->shared[part]);
}

void sj_code_emit_counted_jump_leave_part(sj_code_emitter *emitter)
{
    check self = {.emitter = emitter};
    sj_code_begin_part(emitter, SJ_SHARED_COUNTED_JUMP_LEAVE);
    sj_code_emit_save(emitter);
    emit_checks(&self);
    emit_jump_to_part(emitter, SJ_SHARED_COUNTED_TAIL_LEAVE);
    set_failed_targets(&self);
    emit_jump_to_part(emitter, SJ_SHARED_COUNTED_LEAVE);
}

void sj_code_emit_jump_leave_part(sj_code_emitter *emitter)
{
    check self = {.emitter = emitter};
    uint64_t *at = &emitter->at;
    sj_code_begin_part(emitter, SJ_SHARED_JUMP_LEAVE);
    sj_code_emit_save(emitter);
    emit_checks(&self);
    EMIT(at, 0xc6, 0x44, 0x24, TARGET_AT, SJ_STACK_TAIL_CALL); /* movb $1, mark */
    set_failed_targets(&self);
    sj_code_emit_record(emitter, false, STORED_MARK);
    sj_code_emit_restore(emitter, at);
}
