#include "agent/planner/arch/x86_64/x86_64.h"

#include "agent/planner/targets.h"

enum { LONG_JUMP_BYTES = 5, LONG_JUMP_IF_BYTES = 6, MODRM_REG_SHIFT = 3 };

/* Emits a copy of an instruction, which may have a rip-relative operand. */
static void emit_plain(sj_builder *builder, const sj_code *code, const uint8_t *bytes)
{
    if ((code->flags & SJ_CODE_RELATIVE) != 0) {
        sj_emit_relative(builder, bytes, code->length, code->field, sj_code_target(code));
    } else {
        sj_emit_copy(builder, bytes, code->length);
    }
}

/* Writes to `bytes` the long form of a conditional jump, with distance zero. */
static void long_jump_if(const sj_builder *builder, const sj_code *code,
                         uint8_t bytes[LONG_JUMP_IF_BYTES])
{
    memset(bytes, 0, LONG_JUMP_IF_BYTES);
    bytes[0] = 0x0f;
    bytes[1] = 0x80 | sj_x86_64_jump_condition(builder->module, code);
}

/* Emits a call as a push of the original return address and a jump. */
static void emit_call(sj_builder *builder, const sj_code *code)
{
    sj_emit_push_return(builder, sj_code_end(code));
    if (code->kind == SJ_CODE_CALL) {
        sj_emit_jump(builder, sj_code_target(code));
        return;
    }
    /* FF /2 (call) becomes FF /4 (jmp) with the same operand. */
    uint8_t bytes[SJ_PATCH_MAX_BYTES] = {0};
    memcpy(bytes, builder->module->text + code->at, code->length);
    uint8_t opcode = 0;
    while (opcode < code->length && bytes[opcode] != 0xff) {
        opcode++;
    }
    bytes[opcode + 1] =
        (uint8_t)((bytes[opcode + 1] & ~(7 << MODRM_REG_SHIFT)) | 4 << MODRM_REG_SHIFT);
    emit_plain(builder, code, bytes);
}

void sj_emit_moved(sj_builder *builder, const sj_code *code)
{
    uint8_t jump_if[LONG_JUMP_IF_BYTES];
    if (code->kind == SJ_CODE_NOP) {
        return;
    }
    sj_emit_place(builder, code->at);
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        emit_call(builder, code);
        return;
    case SJ_CODE_JUMP:
        sj_emit_jump(builder, sj_code_target(code));
        return;
    case SJ_CODE_JUMP_IF:
        long_jump_if(builder, code, jump_if);
        sj_emit_relative(builder, jump_if, sizeof(jump_if), 2, sj_code_target(code));
        return;
    default:
        emit_plain(builder, code, builder->module->text + code->at);
    }
}

void sj_emit_to_label(sj_builder *builder, const sj_code *code, uint32_t label)
{
    uint8_t bytes[LONG_JUMP_IF_BYTES] = {0xe9};
    uint8_t size = LONG_JUMP_BYTES;
    sj_emit_place(builder, code->at);
    if (code->kind == SJ_CODE_JUMP_IF) {
        long_jump_if(builder, code, bytes);
        size = LONG_JUMP_IF_BYTES;
    }
    sj_emit_copy_to_label(builder, bytes, size, (uint8_t)(size - sizeof(int32_t)), label);
}

enum {
    JUMP_MAX_BYTES = 12,
    REX = 0x40,
    REX_W = 0x48,
    REX_R = 0x44,
    LOAD_RCX = 1 << MODRM_REG_SHIFT
};

/* Writes an instruction that loads the target of a jump through memory into rcx: 8B /1 instead of
 * FF /4, without the prefixes of jumps. Returns its length. Changes `*field`, the position of the
 * jump's displacement, to the position in the load. */
static uint8_t load_of(const uint8_t *jump, uint8_t length, uint8_t *load, uint8_t *field)
{
    uint8_t size = 0;
    uint8_t at = 0;
    uint8_t rex = REX_W;
    for (; jump[at] != 0xff; at++) {
        if ((jump[at] & 0xf0) == REX) {
            rex = (uint8_t)((jump[at] | REX_W) & ~(REX_R & ~REX));
        } else if (jump[at] != 0x3e && jump[at] != 0xf2) { /* notrack, bnd */
            load[size++] = jump[at];
        }
    }
    load[size++] = rex;
    load[size++] = 0x8b;
    *field = (uint8_t)(*field + size - (at + 1));
    load[size++] = (uint8_t)((jump[at + 1] & ~(7 << MODRM_REG_SHIFT)) | LOAD_RCX);
    for (at += 2; at < length; at++) {
        load[size++] = jump[at];
    }
    return size;
}

/* Code that stores a jump's target where SJ_OPERATION_JUMP_LEAVE reads it. */
typedef struct target_store {
    uint8_t bytes[SJ_JUMP_STORE_MAX_BYTES];
    uint8_t size;
    uint8_t field; /* position of a displacement that must reach the jump's target; 0: none */
} target_store;

static void append(target_store *store, const uint8_t *bytes, uint8_t size)
{
    memcpy(store->bytes + store->size, bytes, size);
    store->size = (uint8_t)(store->size + size);
}

static void store_register(target_store *store, const uint8_t *jump, uint8_t length)
{
    const uint8_t reg = (uint8_t)(jump[length - 1] & 7);
    const bool is_high = length >= 3 && (jump[length - 3] & 0xf1) == 0x41;
    const uint8_t move[] = {(uint8_t)(REX_W | (is_high ? REX_R : 0)), 0x89,
                            (uint8_t)(0x44 | reg << MODRM_REG_SHIFT), 0x24, 0xb8};
    append(store, move, sizeof(move));
}

/* Returns code that stores the target of an exit's jump. It uses only rcx, which it saves below the
 * stack pointer. */
static target_store store_target(const sj_module *module, const sj_code *exit)
{
    static const uint8_t keep_rcx[] = {0x48, 0x89, 0x4c, 0x24, 0xb0};    /* mov %rcx, -80(%rsp) */
    static const uint8_t store_rcx[] = {0x48, 0x89, 0x4c, 0x24, 0xb8};   /* mov %rcx, -72(%rsp) */
    static const uint8_t restore_rcx[] = {0x48, 0x8b, 0x4c, 0x24, 0xb0}; /* mov -80(%rsp), %rcx */
    static const uint8_t lea_rcx[] = {0x48, 0x8d, 0x0d, 0, 0, 0, 0};     /* lea target, %rcx */
    _Static_assert(SJ_JUMP_TARGET_BELOW == 72, "store_rcx");
    enum { LEA_FIELD = 3 };
    const uint8_t *jump = module->text + exit->at;
    const bool is_direct = exit->kind != SJ_CODE_JUMP_INDIRECT;
    target_store store = {0};
    if (!is_direct && (exit->flags & (SJ_CODE_MEMORY | SJ_CODE_RELATIVE)) == 0) {
        store_register(&store, jump, exit->length);
        return store;
    }
    append(&store, keep_rcx, sizeof(keep_rcx));
    if (is_direct) {
        store.field = (uint8_t)(store.size + LEA_FIELD);
        append(&store, lea_rcx, sizeof(lea_rcx));
    } else {
        uint8_t field = exit->field;
        uint8_t load[SJ_PATCH_MAX_BYTES + 1];
        const uint8_t size = load_of(jump, exit->length, load, &field);
        store.field = (exit->flags & SJ_CODE_RELATIVE) != 0 ? (uint8_t)(store.size + field) : 0;
        append(&store, load, size);
    }
    append(&store, store_rcx, sizeof(store_rcx));
    append(&store, restore_rcx, sizeof(restore_rcx));
    return store;
}

/* Emits the probe of an exit: a return, or a jump that is taken. */
static void emit_leave(sj_builder *builder, const sj_code *exit)
{
    const sj_module *module = builder->module;
    if (exit->kind == SJ_CODE_RETURN) {
        sj_emit_probe(builder, SJ_OPERATION_LEAVE,
                      module->ranges[builder->function].dead_flags_at_return);
    } else if (module->is_generated || exit->length > JUMP_MAX_BYTES) {
        sj_emit_probe(builder, SJ_OPERATION_LEAVE, false);
    } else {
        const target_store store = store_target(module, exit);
        sj_emit_stored_jump_leave(builder, store.bytes, store.size, store.field,
                                  sj_code_target(exit));
    }
}

/* Returns the index of the function that starts at an offset, if the flags are dead there.
 * Otherwise returns SJ_CODE_RANGE_NONE. */
static uint32_t callee_at(const sj_module *module, int64_t target)
{
    const uint32_t callee = sj_module_range_at(module, target);
    const bool is_start = callee != SJ_CODE_RANGE_NONE && target == module->ranges[callee].start &&
                          module->ranges[callee].parent == callee;
    return is_start && module->ranges[callee].dead_flags_at_entry ? callee : SJ_CODE_RANGE_NONE;
}

void sj_emit_exit(sj_builder *builder, const sj_code *code)
{
    const uint32_t callee = code->kind == SJ_CODE_JUMP
                                ? callee_at(builder->module, sj_code_target(code))
                                : SJ_CODE_RANGE_NONE;
    sj_emit_place(builder, code->at);
    if (callee != SJ_CODE_RANGE_NONE) {
        sj_emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, code);
        sj_emit_moved(builder, code);
    }
}

uint32_t sj_emit_leave_stub(sj_builder *builder, const sj_code *jump, const sj_code *exit)
{
    const uint32_t stub = sj_stub_begin(builder);
    const uint32_t callee = callee_at(builder->module, sj_code_target(jump));
    sj_emit_place(builder, jump->at);
    if (exit != jump) {
        sj_emit_exit(builder, exit);
    } else if (callee != SJ_CODE_RANGE_NONE) {
        sj_emit_tail_call(builder, callee);
    } else {
        emit_leave(builder, jump);
        sj_emit_jump(builder, sj_code_target(jump));
    }
    sj_stub_end(builder);
    return stub;
}

uint32_t sj_emit_window(sj_builder *builder, const sj_code_range *range, const sj_window *window,
                        bool is_at_entry)
{
    const sj_code *codes = builder->module->codes;
    uint32_t leave_stubs[SJ_PATCH_MAX_BYTES] = {0};
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *exit =
            sj_leaving_code(builder, &codes[i], sj_exit_of(builder->module, range, &codes[i]));
        if (codes[i].kind == SJ_CODE_JUMP_IF && exit != NULL) {
            leave_stubs[i - window->first] = sj_emit_leave_stub(builder, &codes[i], exit);
        }
    }
    const uint32_t stub = sj_stub_begin(builder);
    if (is_at_entry) {
        sj_emit_enter(builder);
    }
    for (uint32_t i = window->first; i <= window->last; i++) {
        const sj_code *code = &codes[i];
        const sj_code *exit =
            sj_leaving_code(builder, code, sj_exit_of(builder->module, range, code));
        if (exit == NULL) {
            sj_emit_moved(builder, code);
        } else if (code->kind == SJ_CODE_JUMP_IF) {
            sj_emit_place(builder, code->at);
            sj_emit_jump_if_stub(builder, sj_x86_64_jump_condition(builder->module, code),
                                 leave_stubs[i - window->first]);
        } else {
            sj_emit_exit(builder, exit);
        }
    }
    const sj_code *last = &codes[window->last];
    if (!sj_code_is_final(last) && last->kind != SJ_CODE_CALL &&
        last->kind != SJ_CODE_CALL_INDIRECT) {
        sj_emit_place(builder, sj_code_end(last));
        sj_emit_jump(builder, sj_code_end(last));
    }
    sj_stub_end(builder);
    return stub;
}
