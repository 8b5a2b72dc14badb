#include "agent/abi/plan.h"
#include "agent/inproc/hooks/arch/x86_64/code.h"
#include "agent/inproc/hooks/stub_notes.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

uint16_t sj_arch_machine(void)
{
    return EM_X86_64;
}

void sj_code_emit_bytes(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_bytes(&emitter->at, emitter->measuring, bytes + i, 1);
    }
}

void sj_code_emit_trampoline(sj_code_emitter *emitter, uint64_t target)
{
    EMIT(&emitter->at, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
    put_32(&emitter->at, emitter->measuring, (uint32_t)target);
    put_32(&emitter->at, emitter->measuring, (uint32_t)(target >> 32));
}

uint32_t sj_arch_thread_offset(void)
{
    return cursor_offset();
}

/* If dispatched calls are recorded, emits code that compares the return address with the thunk's.
 * If they are equal, a dispatched call has jumped here, and the code records its exit. */
static void emit_dispatch_check(sj_code_emitter *emitter)
{
    uint64_t *at = &emitter->at;
    uint64_t *cold_at = &emitter->cold_at;
    if (emitter->thunk == 0) {
        return;
    }
    EMIT(at, 0x48, 0xb8); /* mov $thunk, %rax */
    put_32(at, emitter->measuring, (uint32_t)emitter->thunk);
    put_32(at, emitter->measuring, (uint32_t)(emitter->thunk >> 32));
    EMIT(at, 0x48, 0x3b, 0x44, 0x24, 0x08); /* cmp 8(%rsp), %rax */
    EMIT(at, 0x0f, 0x84);                   /* je cold part */
    put_displacement(emitter, at, *cold_at);
    EMIT(cold_at, 0x48, 0x8d, 0x64, 0x24, 0x08); /* lea 8(%rsp), %rsp */
    sj_code_note_stack(emitter, cold_at, -8);
    EMIT(cold_at, 0x48, 0x8d, 0x15, 5, 0, 0, 0); /* lea back(%rip), %rdx */
    EMIT(cold_at, OPCODE_JMP32);
    put_displacement(emitter, cold_at, emitter->jump_trampoline);
    EMIT(cold_at, 0x48, 0x8d, 0x64, 0x24, 0xf8); /* back: lea -8(%rsp), %rsp */
    sj_code_note_stack(emitter, cold_at, 0);
    EMIT(cold_at, OPCODE_JMP32);
    put_displacement(emitter, cold_at, *at);
}

/* Emits code that writes a value record with the first word of the object in %rdi (or %rsi). The
 * code skips values that cannot be an object. */
static void emit_receiver(sj_code_emitter *emitter, bool is_second)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x48, 0x85, is_second ? 0xf6 : 0xff);              /* test %rdi, %rdi (or %rsi) */
    const uint64_t is_null = emit_forward(emitter, at, 0x84);   /* jz */
    EMIT(at, 0x40, 0xf6, is_second ? 0xc6 : 0xc7, 0x07);        /* test $7, %dil (or %sil) */
    const uint64_t is_tagged = emit_forward(emitter, at, 0x85); /* jnz */
    sj_code_emit_reserve(emitter, true);
    EMIT(at, 0x48, 0x8b, is_second ? 0x06 : 0x07); /* mov (%rdi), %rax (or (%rsi)) */
    EMIT(at, 0x48, 0x89, 0x01);                    /* mov %rax, (%rcx) */
    EMIT(at, 0x8d, 0x44, 0x24, 0x08);              /* lea 8(%rsp), %eax */
    EMIT(at, 0x89, 0x41, 0x08);                    /* mov %eax, 8(%rcx) */
    EMIT(at, 0x8b, 0x44, 0x24, 0xf8);              /* mov -8(%rsp), %eax */
    EMIT(at, 0x0d, 0, 0, 0, VALUE_BITS);           /* or $0xc0000000, %eax */
    EMIT(at, 0x89, 0x41, 0x0c);                    /* mov %eax, 12(%rcx) */
    set_target(emitter, is_null, *at);
    set_target(emitter, is_tagged, *at);
}

typedef enum receiver_kind { RECEIVER_NONE, RECEIVER_FIRST, RECEIVER_SECOND } receiver_kind;

/* Emits a part that probes of entries or exits share. */
static void emit_part(sj_code_emitter *emitter, sj_shared_part part, bool enters,
                      receiver_kind receiver)
{
    sj_code_begin_part(emitter, part);
    sj_code_emit_save(emitter);
    if (enters) {
        emit_dispatch_check(emitter);
    }
    if (receiver != RECEIVER_NONE) {
        emit_receiver(emitter, receiver == RECEIVER_SECOND);
    }
    sj_code_emit_record(emitter, enters, part == SJ_SHARED_TAIL_LEAVE ? SJ_STACK_TAIL_CALL : 0);
    sj_code_emit_restore(emitter, &emitter->at);
}

static void emit_tail_call_part(sj_code_emitter *emitter)
{
    sj_code_begin_part(emitter, SJ_SHARED_TAIL_CALL);
    sj_code_emit_save(emitter);
    sj_code_emit_tail_call_records(emitter);
}

void sj_code_emit_shared(sj_code_emitter *emitter)
{
    if (emitter->counts_calls) {
        sj_code_emit_counted_parts(emitter);
    }
    emitter->frees_flags = true;
    emit_part(emitter, SJ_SHARED_ENTER_FREE_FLAGS, true, RECEIVER_NONE);
    emit_part(emitter, SJ_SHARED_LEAVE_FREE_FLAGS, false, RECEIVER_NONE);
    emit_tail_call_part(emitter);
    emit_part(emitter, SJ_SHARED_TAIL_LEAVE, false, RECEIVER_NONE);
    emitter->frees_flags = false;
    emit_part(emitter, SJ_SHARED_ENTER, true, RECEIVER_NONE);
    emit_part(emitter, SJ_SHARED_LEAVE, false, RECEIVER_NONE);
    sj_code_emit_jump_leave_part(emitter);
    emit_part(emitter, SJ_SHARED_FIRST_RECEIVER, true, RECEIVER_FIRST);
    emit_part(emitter, SJ_SHARED_SECOND_RECEIVER, true, RECEIVER_SECOND);
}

enum { PROBE_BYTES = 13 };

/* Emits a probe as a call of a shared part. The code has PROBE_BYTES. */
static void emit_call(sj_code_emitter *emitter, uint32_t tag, sj_shared_part part)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xc7, 0x44, 0x24, 0xf0); /* movl $tag, -16(%rsp) */
    put_32(at, emitter->measuring, tag);
    EMIT(at, 0xe8); /* call */
    put_displacement(emitter, at, emitter->shared[part]);
}

/* Emits the slow part of an inline probe. Like sj_code_emit_slow_part, but the tag is an immediate
 * operand, and the code jumps back to emitter->at. */
static void emit_inline_slow_part(sj_code_emitter *emitter, uint32_t tag, bool reads_clock)
{
    uint64_t *at = &emitter->cold_at;
    sj_code_note_stack(emitter, at, 0);
    EMIT(at, 0xb8); /* mov $tag, %eax */
    put_32(at, emitter->measuring, tag);
    sj_code_emit_slow_call(emitter);
    if (reads_clock) {
        EMIT(at, 0x0f, 0x31); /* rdtsc */
    }
    EMIT(at, OPCODE_JMP32);
    put_displacement(emitter, at, emitter->at);
}

static void emit_inline_probe(sj_code_emitter *emitter, uint32_t tag, bool enters)
{
    uint64_t *at = &emitter->at;
    sj_code_emit_save(emitter);
    EMIT(at, 0x0f, 0x31); /* rdtsc */
    sj_code_emit_try(emitter);
    emit_inline_slow_part(emitter, tag, true);
    if (enters) {
        sj_code_emit_fetch(emitter);
    }
    EMIT(at, 0x89, 0x01);             /* mov %eax, (%rcx) */
    EMIT(at, 0x66, 0x89, 0x51, 0x04); /* mov %dx, 4(%rcx) */
    EMIT(at, 0x48, 0x89, 0x61, 0x06); /* mov %rsp, 6(%rcx) */
    EMIT(at, 0xc7, 0x41, 0x0c);       /* movl $tag, 12(%rcx) */
    put_32(at, emitter->measuring, tag);
    sj_code_emit_give_back(emitter, at);
}

void sj_code_emit_probe(sj_code_emitter *emitter, uint32_t tag)
{
    const bool enters = tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER;
    if (emitter->is_inline && emitter->thunk == 0) {
        emit_inline_probe(emitter, tag, enters);
        return;
    }
    const bool counts =
        emitter->counts_calls && (tag & SJ_RECORD_FUNCTION_MASK) < SJ_SHORT_FUNCTIONS;
    const sj_shared_part keeping = (counts ? SJ_SHARED_COUNTED_ENTER : SJ_SHARED_ENTER) + !enters;
    const sj_shared_part freeing =
        (counts ? SJ_SHARED_COUNTED_ENTER_FREE_FLAGS : SJ_SHARED_ENTER_FREE_FLAGS) + !enters;
    emit_call(emitter, tag, emitter->frees_flags ? freeing : keeping);
}

void sj_code_emit_jump_leave(sj_code_emitter *emitter, uint32_t tag, uint32_t jump_register)
{
    (void)jump_register;
    const bool counts =
        emitter->counts_calls && (tag & SJ_RECORD_FUNCTION_MASK) < SJ_SHORT_FUNCTIONS;
    if (emitter->is_inline) {
        sj_code_emit_probe(emitter, tag);
    } else {
        emit_call(emitter, tag, counts ? SJ_SHARED_COUNTED_JUMP_LEAVE : SJ_SHARED_JUMP_LEAVE);
    }
    emitter->frees_flags = false;
}

bool sj_arch_has_tail_call_entries(const sj_code_emitter *emitter)
{
    /* With a thunk, each entry must check for dispatched calls. An inline stub does not begin with
     * a call. */
    return emitter->thunk == 0 && !emitter->is_inline;
}

void sj_code_emit_tail_call_exit(sj_code_emitter *emitter, uint32_t leave_tag, uint64_t entry)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0xc7, 0x44, 0x24, 0xf0); /* movl $leave, -16(%rsp) */
    put_32(at, emitter->measuring, leave_tag);
    sj_code_emit_jump(emitter, entry);
}

/* Emits code that skips the next `distance` bytes of code if the four bytes at `address` differ
 * from `bytes`. */
static void emit_compare(sj_code_emitter *emitter, uint64_t address, const uint8_t bytes[4],
                         uint8_t distance)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x81, 0x3d); /* cmpl $bytes, address(%rip) */
    put_displacement(emitter, at, address - 4);
    put_bytes(at, emitter->measuring, bytes, 4);
    EMIT(at, 0x75, distance); /* jne */
}

void sj_code_emit_tail_call_alone(sj_code_emitter *emitter, uint32_t leave_tag,
                                  const sj_tail_call_entry *entry)
{
    enum { COMPARE_BYTES = 12, MARKED_BYTES = PROBE_BYTES + 5 };
    if (entry->start != entry->entry) {
        emit_compare(emitter, entry->start, endbr64, COMPARE_BYTES + MARKED_BYTES);
    }
    emit_compare(emitter, entry->entry, entry->patch, MARKED_BYTES);
    emit_call(emitter, leave_tag, SJ_SHARED_TAIL_LEAVE);
    sj_code_emit_jump(emitter, entry->start);
    emit_call(emitter, leave_tag, SJ_SHARED_LEAVE_FREE_FLAGS);
    sj_code_emit_jump(emitter, entry->start);
}

void sj_code_emit_tail_call_entry(sj_code_emitter *emitter, const sj_tail_call_entry *entry)
{
    enum { COMPARE_BYTES = 12, RECORD_BYTES = 20, ALONE_BYTES = 10 };
    uint64_t *at = &emitter->at;
    sj_code_begin_place(emitter, SJ_STUB_FIXED, entry->start);
    if (entry->start != entry->entry) {
        emit_compare(emitter, entry->start, endbr64, COMPARE_BYTES + RECORD_BYTES);
    }
    emit_compare(emitter, entry->entry, entry->patch, RECORD_BYTES);
    EMIT(at, 0xc7, 0x44, 0x24, 0xf4); /* movl $enter, -12(%rsp) */
    put_32(at, emitter->measuring, entry->enter_tag);
    const bool counts = emitter->counts_calls && entry->enter_tag < SJ_SHORT_FUNCTIONS;
    EMIT(at, 0xe8); /* call */
    put_displacement(emitter, at,
                     emitter->shared[counts ? SJ_SHARED_COUNTED_TAIL_CALL : SJ_SHARED_TAIL_CALL]);
    EMIT(at, 0x72, ALONE_BYTES); /* jc start */
    sj_code_emit_jump(emitter, entry->stub + PROBE_BYTES);
    EMIT(at, 0xe8); /* call */
    put_displacement(emitter, at, emitter->shared[SJ_SHARED_LEAVE_FREE_FLAGS]);
    sj_code_emit_jump(emitter, entry->start); /* start: */
}

void sj_code_emit_receiver_probe(sj_code_emitter *emitter, uint32_t function, uint8_t receiver)
{
    emit_call(emitter, sj_record_make_tag(SJ_RECORD_ENTER, function),
              receiver == 2 ? SJ_SHARED_SECOND_RECEIVER : SJ_SHARED_FIRST_RECEIVER);
}

/* Emits a read of the stack as far down as the code that records values reaches. The code keeps the
 * flags. */
static void emit_touch(sj_code_emitter *emitter, int32_t frame_bytes)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x50); /* push %rax */
    sj_code_note_stack(emitter, at, frame_bytes + 8);
    EMIT(at, 0x48, 0x8b, 0x84, 0x24); /* mov -SJ_STUB_VALUES_TOUCHED_BYTES(%rsp), %rax */
    put_32(at, emitter->measuring, (uint32_t)-SJ_STUB_VALUES_TOUCHED_BYTES);
    EMIT(at, 0x58); /* pop %rax */
    sj_code_note_stack(emitter, at, frame_bytes);
}

void sj_code_emit_values(sj_code_emitter *emitter, uint32_t function, uint32_t descriptors)
{
    enum { FRAME_BYTES = 152 };
    uint64_t *at = &emitter->at;
    EMIT(at, 0x48, 0x8d, 0xa4, 0x24, 0x68, 0xff, 0xff, 0xff); /* lea -152(%rsp), %rsp */
    sj_code_note_stack(emitter, at, FRAME_BYTES);
    emit_touch(emitter, FRAME_BYTES);
    EMIT(at, 0x68); /* push $descriptors */
    put_32(at, emitter->measuring, descriptors);
    sj_code_note_stack(emitter, at, FRAME_BYTES + 8);
    EMIT(at, 0x68); /* push $function */
    put_32(at, emitter->measuring, function);
    sj_code_note_stack(emitter, at, FRAME_BYTES + 16);
    EMIT(at, 0xe8); /* call trampoline */
    put_displacement(emitter, at, emitter->values_trampoline);
    EMIT(at, 0x48, 0x8d, 0xa4, 0x24, 0xa8, 0x00, 0x00, 0x00); /* lea 168(%rsp), %rsp */
    sj_code_note_stack(emitter, at, 0);
}

/* Emits code that loads a register into %rax, with its value before sj_code_emit_save. `word` is
 * the register's index in sj_value_registers. */
static void emit_load(sj_code_emitter *emitter, uint32_t word)
{
    enum { RDX = 2, RCX = 3, REALS = SJ_VALUE_REGISTERS, RESULT = 2 * SJ_VALUE_REGISTERS };
    static const uint8_t moves[][3] = {{0x48, 0x89, 0xf8},  /* mov %rdi, %rax */
                                       {0x48, 0x89, 0xf0},  /* mov %rsi, %rax */
                                       {0},                 /* saved */
                                       {0},                 /* saved */
                                       {0x4c, 0x89, 0xc0},  /* mov %r8, %rax */
                                       {0x4c, 0x89, 0xc8}}; /* mov %r9, %rax */
    uint64_t *at = &emitter->at;
    if (word == RESULT) {
        EMIT(at, 0x48, 0x8b, 0x44, 0x24, 0xf0); /* mov -16(%rsp), %rax */
    } else if (word >= REALS) {
        EMIT(at, 0x66, 0x48, 0x0f, 0x7e, (uint8_t)(0xc0 | (word - REALS) << 3)); /* movq */
    } else if (word == RDX) {
        EMIT(at, 0x48, 0x8b, 0x44, 0x24, 0xe0); /* mov -32(%rsp), %rax */
    } else if (word == RCX) {
        EMIT(at, 0x48, 0x8b, 0x44, 0x24, 0xe8); /* mov -24(%rsp), %rax */
    } else {
        put_bytes(at, emitter->measuring, moves[word], sizeof(moves[word]));
    }
}

/* Emits code that extends the value in %rax from `bytes` bytes to 64 bits. */
static void emit_widen(sj_code_emitter *emitter, uint32_t bytes, bool is_signed)
{
    uint64_t *at = &emitter->at;
    if (bytes == 1) {
        EMIT(at, 0x48, 0x0f, is_signed ? 0xbe : 0xb6, 0xc0); /* movsbq or movzbq %al, %rax */
    } else if (bytes == 2) {
        EMIT(at, 0x48, 0x0f, is_signed ? 0xbf : 0xb7, 0xc0); /* movswq or movzwq %ax, %rax */
    } else if (bytes == 4 && is_signed) {
        EMIT(at, 0x48, 0x98); /* cltq */
    } else if (bytes == 4) {
        EMIT(at, 0x89, 0xc0); /* mov %eax, %eax */
    }
}

/* Emits code that does to %rax what sj_value_narrow does to a value. */
static void emit_narrow(sj_code_emitter *emitter, uint32_t kind)
{
    uint64_t *at = &emitter->at;
    switch (kind) {
    case SJ_VALUE_INT:
        emit_widen(emitter, 4, true);
        break;
    case SJ_VALUE_CHAR:
        emit_widen(emitter, 1, true);
        break;
    case SJ_VALUE_UINT:
    case SJ_VALUE_FLOAT:
        emit_widen(emitter, 4, false);
        break;
    case SJ_VALUE_BOOL:
        EMIT(at, 0x84, 0xc0);       /* test %al, %al */
        EMIT(at, 0x0f, 0x95, 0xc0); /* setne %al */
        emit_widen(emitter, 1, false);
        break;
    default:
        break;
    }
}

/* Emits code that records a value in a register. Values narrower than 64 bits are extended. */
static void emit_plain_value(sj_code_emitter *emitter, uint32_t tag, const sj_plain_value *value)
{
    uint64_t *at = &emitter->at;
    sj_code_emit_try(emitter);
    emit_inline_slow_part(emitter, tag, false);
    emit_load(emitter, value->word);
    emit_widen(emitter, value->bytes, value->is_signed != 0);
    emit_narrow(emitter, sj_value_kind_of(value->descriptor));
    EMIT(at, 0x48, 0x89, 0x01);                    /* mov %rax, (%rcx) */
    EMIT(at, 0x8d, 0x44, 0x24, SJ_PART_VALUE);     /* lea part(%rsp), %eax */
    EMIT(at, 0x89, 0x41, 0x08);                    /* mov %eax, 8(%rcx) */
    EMIT(at, 0xc6, 0x41, 0x0b, value->descriptor); /* movb $descriptor, 11(%rcx) */
    EMIT(at, 0xc7, 0x41, 0x0c);                    /* movl $tag, 12(%rcx) */
    put_32(at, emitter->measuring, tag);
}

bool sj_code_emit_plain_values(sj_code_emitter *emitter, uint32_t function,
                               const sj_plain_value *values, uint32_t count)
{
    sj_code_emit_save(emitter);
    for (uint32_t i = 0; i < count; i++) {
        emit_plain_value(emitter, sj_record_make_tag(SJ_RECORD_VALUE, function), &values[i]);
    }
    sj_code_emit_give_back(emitter, &emitter->at);
    return true;
}

bool sj_arch_is_return(const uint8_t *bytes, uint32_t count)
{
    enum { RET = 0xc3, RET_POPPING = 0xc2, PREFIX_REP = 0xf3, PREFIX_BND = 0xf2 };
    if (count == 2 && (bytes[0] == PREFIX_REP || bytes[0] == PREFIX_BND)) {
        return bytes[1] == RET;
    }
    return (count == 1 && bytes[0] == RET) || (count == 3 && bytes[0] == RET_POPPING);
}

void sj_code_emit_jump(sj_code_emitter *emitter, uint64_t target)
{
    EMIT(&emitter->at, OPCODE_JMP32);
    put_displacement(emitter, &emitter->at, target);
}

void sj_code_emit_jump_if(sj_code_emitter *emitter, uint32_t condition, uint64_t target)
{
    EMIT(&emitter->at, 0x0f, (uint8_t)(0x80 | (condition & 15)));
    put_displacement(emitter, &emitter->at, target);
}

/* Loads the address relative to the program counter, so that other processes can use the stub. The
 * program's red zone is unused here. */
void sj_code_emit_push_return(sj_code_emitter *emitter, uint64_t address)
{
    uint64_t *at = &emitter->at;
    EMIT(at, 0x48, 0x8d, 0x64, 0x24, 0xf8); /* lea -8(%rsp), %rsp */
    sj_code_note_stack(emitter, at, 8);
    EMIT(at, 0x50); /* push %rax */
    sj_code_note_stack(emitter, at, 16);
    EMIT(at, 0x48, 0x8d, 0x05); /* lea address(%rip), %rax */
    put_displacement(emitter, at, address);
    EMIT(at, 0x48, 0x89, 0x44, 0x24, 0x08); /* mov %rax, 8(%rsp) */
    EMIT(at, 0x58);                         /* pop %rax */
    sj_code_note_stack(emitter, at, 8); /* the plan's next operation is the jump to the callee */
}

void sj_code_emit_relative(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count,
                           uint32_t position, uint64_t target)
{
    const uint64_t start = emitter->at;
    const int64_t distance = (int64_t)(target - (start + count));
    if (!emitter->measuring && distance != (int32_t)distance) {
        emitter->too_far = true;
    }
    sj_code_emit_bytes(emitter, bytes, count);
    uint64_t field = start + position;
    put_32(&field, emitter->measuring, (uint32_t)distance);
}

/* Writes into `bytes` the 32-bit displacement from `address` + `end` to `target`. The displacement
 * ends at index `end`. Returns false if it does not fit. */
static bool set_displacement(uint64_t address, uint64_t target, uint8_t *bytes, uint32_t end)
{
    const int64_t distance = (int64_t)(target - (address + end));
    for (uint32_t i = 0; i < 4; i++) {
        bytes[end - 4 + i] = (uint8_t)((uint64_t)distance >> (8 * i));
    }
    return distance == (int32_t)distance;
}

bool sj_arch_patch_bytes(uint32_t kind, uint64_t address, uint64_t target, const uint8_t *original,
                         uint32_t count, uint8_t *bytes, bool *too_far)
{
    *too_far = false;
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = kind == SJ_PATCH_REL32 ? original[i] : OPCODE_INT3;
    }
    if (kind == SJ_PATCH_JUMP32 && count >= 5) {
        bytes[0] = OPCODE_JMP32;
        *too_far = !set_displacement(address, target, bytes, 5);
        return !*too_far;
    }
    if (kind == SJ_PATCH_REL32 && count >= 4) {
        *too_far = !set_displacement(address, target, bytes, count);
        return !*too_far;
    }
    if (kind == SJ_PATCH_JUMP8) {
        const int64_t distance = (int64_t)(target - (address + 2));
        bytes[0] = OPCODE_JMP8;
        if (count > 1) {
            bytes[1] = (uint8_t)distance;
        }
        *too_far = distance != (int8_t)distance;
        return !*too_far && (count > 1 || original[1] == (uint8_t)distance);
    }
    return false;
}

/* True if the byte occurs in the no-op and trap instructions with which compilers pad functions. */
static bool is_padding(uint8_t byte)
{
    static const uint8_t parts[] = {0x00, 0x0f, 0x1f, 0x2e, 0x40,       0x44,
                                    0x66, 0x80, 0x84, 0x90, OPCODE_INT3};
    for (size_t i = 0; i < sizeof(parts); i++) {
        if (byte == parts[i]) {
            return true;
        }
    }
    return false;
}

/* Returns the size of the endbr64 at the start of a function, or 0 if there is none. */
static int32_t landing_bytes(const uint8_t *code)
{
    int32_t bytes = sizeof(endbr64);
    for (size_t i = 0; i < sizeof(endbr64); i++) {
        bytes = code[i] == endbr64[i] ? bytes : 0;
    }
    return bytes;
}

int32_t sj_arch_find_system_call(uint64_t address, uint32_t number)
{
    enum { OPCODE_MOV_EAX = 0xb8, OPCODE_SYSCALL_LOW = 0x0f, OPCODE_SYSCALL_HIGH = 0x05 };
    const uint8_t *code = (const uint8_t *)(uintptr_t)address;
    const int32_t at = landing_bytes(code);
    code += at;
    const uint32_t loaded = (uint32_t)code[1] | (uint32_t)code[2] << 8 | (uint32_t)code[3] << 16 |
                            (uint32_t)code[4] << 24;
    return code[0] == OPCODE_MOV_EAX && loaded == number && code[5] == OPCODE_SYSCALL_LOW &&
                   code[6] == OPCODE_SYSCALL_HIGH
               ? at
               : -1;
}

int32_t sj_arch_find_later_system_call(uint64_t address, uint32_t number)
{
    for (int32_t at = 0; at < SJ_LATER_CALL_BYTES; at++) {
        if (sj_arch_find_system_call(address + (uint64_t)at, number) == 0) {
            return at;
        }
    }
    return -1;
}

int32_t sj_arch_find_inner_call(uint64_t address, bool is_prctl)
{
    enum { FUNCTION_BYTES = 128 };
    static const uint8_t loads[2][SJ_RETURN_PATCH_BYTES + 2] = {
        {0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05},  /* mov 8(%rsp), %r9; syscall */
        {0xb8, 0x9d, 0x00, 0x00, 0x00, 0x0f, 0x05}}; /* mov $157, %eax; syscall */
    const uint8_t *code = (const uint8_t *)(uintptr_t)address;
    for (int32_t at = 0; at < FUNCTION_BYTES; at++) {
        if (memcmp(code + at, loads[is_prctl], sizeof(loads[0])) == 0) {
            return at;
        }
    }
    return -1;
}

int32_t sj_arch_find_limit_call(uint64_t address)
{
    enum { CLEAR_BYTES = 2 };
    static const uint8_t load[] = {0xb8, 0x2e, 0x01, 0x00, 0x00}; /* mov $302, %eax */
    static const uint8_t call[] = {0x31, 0xff, 0x0f, 0x05};       /* xor %edi, %edi; syscall */
    const uint8_t *code = (const uint8_t *)(uintptr_t)address;
    for (int32_t at = 0; at < SJ_LATER_CALL_BYTES; at++) {
        const uint8_t *behind = code + at + sizeof(load);
        if (memcmp(code + at, load, sizeof(load)) == 0 &&
            (memcmp(behind, call, sizeof(call)) == 0 ||
             memcmp(behind, call + CLEAR_BYTES, sizeof(call) - CLEAR_BYTES) == 0)) {
            return at;
        }
    }
    return -1;
}

uint64_t sj_arch_find_call_near(uint64_t address, uint32_t number)
{
    enum { BEFORE_BYTES = 256, BEHIND_BYTES = 512, REX_LOW = 0x40, REX_HIGH = 0x4f };
    const uint8_t call[SJ_ARCH_NUMBERED_CALL_BYTES] = {
        0xb8, (uint8_t)number, (uint8_t)(number >> 8), 0, 0, 0x0f, 0x05}; /* mov, syscall */
    for (uint64_t at = address - BEFORE_BYTES; at < address + BEHIND_BYTES; at++) {
        const uint8_t *code = (const uint8_t *)(uintptr_t)at;
        if (memcmp(code, call, sizeof(call)) == 0 && (code[-1] < REX_LOW || code[-1] > REX_HIGH)) {
            return at;
        }
    }
    return 0;
}

int32_t sj_arch_find_return(uint64_t address)
{
    enum { FUNCTION_ALIGNMENT = 16, OPCODE_RET = 0xc3 };
    const uint8_t *code = (const uint8_t *)(uintptr_t)address;
    const int32_t at = landing_bytes(code);
    if (address % FUNCTION_ALIGNMENT != 0 || code[at] != OPCODE_RET) {
        return -1;
    }
    for (int32_t i = at + 1; i < FUNCTION_ALIGNMENT; i++) {
        if (!is_padding(code[i])) {
            return -1;
        }
    }
    return at;
}

void sj_arch_sync_code(uint64_t address, uint64_t bytes)
{
    /* x86-64 keeps its instruction caches coherent. */
    (void)address;
    (void)bytes;
}
