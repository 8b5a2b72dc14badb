#include "tests/agent/planner/apply.h"

#include "agent/planner/planner.h"
#include "proto/base/cursor.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LABELS = 1 << 16, FIXES = 1 << 18, REACH = 1 << 30, PAGE = 4096 };

typedef struct fix {
    uint8_t *field; /* 32-bit distance, relative to the byte after it unless `end` is set */
    uint8_t *end;
    uint32_t target; /* number of the stub or label */
} fix;

typedef struct emitter {
    const sj_plan_header *header;
    applied_plan *applied;
    uint64_t bias;
    uint8_t *code;
    uint8_t *at;
    uint8_t *end;
    uint8_t **stubs;
    uint8_t **labels;
    fix *stub_fixes;
    size_t stub_fix_count;
    fix label_fixes[4096];
    size_t label_fix_count;
    uint64_t place; /* address of the next copied instruction */
    bool bad;
} emitter;

static void put(emitter *e, const void *bytes, size_t size)
{
    if ((size_t)(e->end - e->at) < size) {
        e->bad = true;
        return;
    }
    memcpy(e->at, bytes, size);
    e->at += size;
}

static void set_distance(emitter *e, uint8_t *field, const uint8_t *end, uint64_t target)
{
    const int64_t distance = (int64_t)(target - (uint64_t)(uintptr_t)end);
    const int32_t narrow = (int32_t)distance;
    e->bad = e->bad || narrow != distance;
    memcpy(field, &narrow, sizeof(narrow));
}

/* Emits code that adds 1 to the counter and keeps flags, registers and the red zone. lea, push, pop
 * and mov keep the flags, so lea computes the sum. */
static void put_probe(emitter *e, uint64_t *counter)
{
    static const uint8_t before[] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x51, 0x48, 0xb8};
    static const uint8_t after[] = {0x48, 0x8b, 0x08, 0x48, 0x8d, 0x49, 0x01, 0x48, 0x89, 0x08,
                                    0x59, 0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00};
    const uint64_t address = (uint64_t)(uintptr_t)counter;
    put(e, before, sizeof(before));
    put(e, &address, sizeof(address));
    put(e, after, sizeof(after));
}

/* Emits code that inverts the flags that the plan says are free. Any code that reads them then
 * fails. */
static void put_other_flags(emitter *e)
{
    static const uint8_t code[] = {0x48, 0x8d, 0x64, 0x24, 0x80,              /* lea -128(%rsp) */
                                   0x9c,                                      /* pushfq */
                                   0x48, 0x81, 0x34, 0x24, 0xd5, 0x08, 0, 0,  /* xorq $0x8d5 */
                                   0x9d,                                      /* popfq */
                                   0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0, 0}; /* lea 128(%rsp) */
    put(e, code, sizeof(code));
}

static void put_jump(emitter *e, uint64_t target)
{
    const uint8_t jump[5] = {0xe9};
    put(e, jump, sizeof(jump));
    set_distance(e, e->at - 4, e->at, target);
}

static void put_push(emitter *e, uint64_t value)
{
    static const uint8_t move[] = {0x48, 0x8d, 0x64, 0x24, 0xf8, 0xc7, 0x04, 0x24};
    static const uint8_t upper[] = {0xc7, 0x44, 0x24, 0x04};
    const uint32_t words[] = {(uint32_t)value, (uint32_t)(value >> 32)};
    put(e, move, sizeof(move));
    put(e, &words[0], 4);
    put(e, upper, sizeof(upper));
    put(e, &words[1], 4);
}

static void put_to_stub(emitter *e, uint32_t stub)
{
    const uint8_t zero[4] = {0};
    put(e, zero, sizeof(zero));
    if (e->bad || e->stub_fix_count == FIXES) {
        e->bad = true;
        return;
    }
    e->stub_fixes[e->stub_fix_count++] = (fix){.field = e->at - 4, .end = e->at, .target = stub};
}

/* True if the bytes are a copy of the original instruction. An indirect call that became a jump
 * differs in three bits of the byte after 0xff. */
static bool are_copied(const uint8_t *original, const uint8_t *bytes, size_t size)
{
    enum { CALL_OR_JUMP = 0x30 };
    size_t differing = 0;
    for (size_t i = 0; i < size; i++) {
        const bool is_call =
            i > 0 && bytes[i - 1] == 0xff && (original[i] ^ bytes[i]) == CALL_OR_JUMP;
        differing += original[i] != bytes[i] && !is_call;
    }
    return differing == 0;
}

static void put_copy(emitter *e, sj_reader *operations, uint8_t operation)
{
    const uint64_t size = sj_read_varint(operations);
    const uint8_t *bytes = sj_read_bytes(operations, (size_t)size);
    if (bytes == NULL) {
        e->bad = true;
        return;
    }
    uint8_t *start = e->at;
    const bool is_plain = operation == SJ_OPERATION_COPY;
    e->bad |= is_plain && !are_copied((const uint8_t *)(uintptr_t)e->place, bytes, (size_t)size);
    e->place += size;
    put(e, bytes, (size_t)size);
    if (operation == SJ_OPERATION_COPY || e->bad) {
        return;
    }
    uint8_t *field = start + sj_read_varint(operations);
    if (operation == SJ_OPERATION_COPY_RELATIVE) {
        set_distance(e, field, e->at, e->bias + (uint64_t)sj_read_zigzag(operations));
    } else if (e->label_fix_count < sizeof(e->label_fixes) / sizeof(e->label_fixes[0])) {
        e->label_fixes[e->label_fix_count++] =
            (fix){.field = field, .end = e->at, .target = (uint32_t)sj_read_varint(operations)};
    } else {
        e->bad = true;
    }
}

static void put_stored_target(emitter *e, sj_reader *operations)
{
    (void)sj_read_varint(operations);
    const uint64_t size = sj_read_varint(operations);
    const uint8_t *bytes = sj_read_bytes(operations, (size_t)size);
    const uint64_t field = sj_read_varint(operations);
    const uint64_t target = e->bias + (uint64_t)sj_read_zigzag(operations);
    uint8_t *start = e->at;
    if (bytes == NULL) {
        e->bad = true;
        return;
    }
    put(e, bytes, (size_t)size);
    if (field != 0 && !e->bad) {
        set_distance(e, start + field, start + field + sizeof(int32_t), target);
    }
}

static void put_operation(emitter *e, const sj_plan_stub *stub, sj_reader *operations)
{
    const uint8_t operation = sj_read_u8(operations);
    switch (operation) {
    case SJ_OPERATION_ENTER:
        put_probe(e, &e->applied->entries[stub->function]);
        return;
    case SJ_OPERATION_LEAVE:
        put_probe(e, &e->applied->exits[stub->function]);
        return;
    case SJ_OPERATION_JUMP_LEAVE:
        put_stored_target(e, operations);
        put_probe(e, &e->applied->exits[stub->function]);
        return;
    case SJ_OPERATION_FREE_FLAGS:
        put_other_flags(e);
        return;
    case SJ_OPERATION_PLACE:
        e->place = e->bias + sj_plan_functions(e->header)[stub->function].offset +
                   (uint64_t)sj_read_zigzag(operations);
        return;
    case SJ_OPERATION_JUMP:
        put_jump(e, e->bias + (uint64_t)sj_read_zigzag(operations));
        return;
    case SJ_OPERATION_TAIL_CALL: {
        const sj_plan_function *callee = sj_plan_functions(e->header) + sj_read_varint(operations);
        put_other_flags(e);
        put_probe(e, &e->applied->exits[stub->function]);
        put_jump(e, e->bias + callee->offset);
        return;
    }
    case SJ_OPERATION_PUSH_RETURN:
        put_push(e, e->bias + (uint64_t)sj_read_zigzag(operations));
        return;
    case SJ_OPERATION_JUMP_IF_STUB: {
        const uint8_t jump[] = {0x0f, (uint8_t)(0x80 | sj_read_varint(operations))};
        put(e, jump, sizeof(jump));
        put_to_stub(e, (uint32_t)sj_read_varint(operations));
        return;
    }
    case SJ_OPERATION_JUMP_STUB: {
        const uint8_t jump = 0xe9;
        put(e, &jump, 1);
        put_to_stub(e, (uint32_t)sj_read_varint(operations));
        return;
    }
    case SJ_OPERATION_LABEL: {
        const uint64_t label = sj_read_varint(operations);
        e->bad = e->bad || label >= LABELS || e->labels[label] != NULL;
        if (!e->bad) {
            e->labels[label] = e->at;
        }
        return;
    }
    default:
        put_copy(e, operations, operation);
    }
}

static void put_stub(emitter *e, uint32_t number)
{
    const sj_plan_stub *stub = &sj_plan_stubs(e->header)[number];
    const uint8_t *bytes =
        (const uint8_t *)e->header + e->header->operations_offset + stub->operations;
    sj_reader operations = sj_reader_of(bytes, stub->operations_bytes);
    e->stubs[number] = e->at;
    e->label_fix_count = 0;
    e->place = e->bias + sj_plan_functions(e->header)[stub->function].offset;
    const uint8_t *start = e->at;
    while (sj_reader_left(&operations) > 0 && !e->bad) {
        put_operation(e, stub, &operations);
    }
    e->bad = e->bad || operations.bad || (size_t)(e->at - start) > stub->code_bytes;
    for (size_t i = 0; i < e->label_fix_count && !e->bad; i++) {
        const fix *f = &e->label_fixes[i];
        if (e->labels[f->target] == NULL) {
            e->bad = true;
            return;
        }
        set_distance(e, f->field, f->end, (uint64_t)(uintptr_t)e->labels[f->target]);
    }
    /* Labels are local to their stub. */
    operations = sj_reader_of(bytes, stub->operations_bytes);
    if (e->label_fix_count > 0 || stub->operations_bytes > 32) {
        memset(e->labels, 0, LABELS * sizeof(*e->labels));
    } else {
        e->labels[0] = NULL;
        for (size_t i = 0; i < 64; i++) {
            e->labels[i] = NULL;
        }
    }
}

static uint8_t *map_near(uint64_t address, size_t bytes)
{
    for (uint64_t away = PAGE; away < REACH; away += 1 << 20) {
        const uint64_t wanted = (address - bytes - away) & ~(uint64_t)(PAGE - 1);
        void *found =
            mmap((void *)(uintptr_t)wanted, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
        if (found != MAP_FAILED) {
            return found;
        }
    }
    for (uint64_t away = 64 << 20; away < REACH; away += 1 << 20) {
        void *found =
            mmap((void *)(uintptr_t)((address + away) & ~(uint64_t)(PAGE - 1)), bytes,
                 PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
        if (found != MAP_FAILED) {
            return found;
        }
    }
    return NULL;
}

static void write_patch(emitter *e, const sj_plan_patch *patch)
{
    uint8_t *place = (uint8_t *)(uintptr_t)(e->bias + patch->offset);
    uint8_t *stub = e->stubs[patch->stub];
    if (memcmp(place, patch->original, patch->window) != 0) {
        e->applied->refused++;
        return;
    }
    if (patch->kind == SJ_PATCH_JUMP32) {
        memset(place, 0xcc, patch->window);
        place[0] = 0xe9;
        set_distance(e, place + 1, place + 5, (uint64_t)(uintptr_t)stub);
    } else if (patch->kind == SJ_PATCH_REL32) {
        set_distance(e, place, place + 4, (uint64_t)(uintptr_t)stub);
    } else if (patch->kind == SJ_PATCH_JUMP8) {
        const sj_plan_patch *island = &sj_plan_patches(e->header)[patch->via];
        memset(place, 0xcc, patch->window);
        place[0] = 0xeb;
        place[1] = (uint8_t)(island->offset - patch->offset - 2);
    } else {
        e->bad = true;
    }
}

static bool emit_all(emitter *e)
{
    for (uint32_t i = 0; i < e->header->stub_count && !e->bad; i++) {
        put_stub(e, i);
    }
    for (size_t i = 0; i < e->stub_fix_count && !e->bad; i++) {
        const fix *f = &e->stub_fixes[i];
        set_distance(e, f->field, f->end, (uint64_t)(uintptr_t)e->stubs[f->target]);
    }
    const uint64_t low = (e->bias + e->header->text_low) & ~(uint64_t)(PAGE - 1);
    const uint64_t high = (e->bias + e->header->text_high + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (e->bad ||
        mprotect((void *)(uintptr_t)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < e->header->patch_count; i++) {
        write_patch(e, &sj_plan_patches(e->header)[i]);
    }
    return mprotect((void *)(uintptr_t)low, high - low, PROT_READ | PROT_EXEC) == 0 && !e->bad;
}

bool apply_plan(const sj_plan_header *header, uint64_t bias, applied_plan *applied)
{
    emitter *e = calloc(1, sizeof(*e));
    applied->function_count = header->function_count;
    applied->entries = calloc(header->function_count + 1, sizeof(uint64_t));
    applied->exits = calloc(header->function_count + 1, sizeof(uint64_t));
    const size_t code_bytes = (size_t)header->stub_code_bytes + PAGE;
    uint8_t *code = map_near(bias + header->text_low, code_bytes);
    bool is_applied = false;
    if (e != NULL && applied->entries != NULL && applied->exits != NULL && code != NULL) {
        *e = (emitter){.header = header,
                       .applied = applied,
                       .bias = bias,
                       .code = code,
                       .at = code,
                       .end = code + code_bytes};
        e->stubs = calloc(header->stub_count + 1, sizeof(*e->stubs));
        e->labels = calloc(LABELS, sizeof(*e->labels));
        e->stub_fixes = calloc(FIXES, sizeof(*e->stub_fixes));
        is_applied = e->stubs != NULL && e->labels != NULL && e->stub_fixes != NULL && emit_all(e);
        free(e->stubs);
        free(e->labels);
        free(e->stub_fixes);
    }
    free(e);
    return is_applied;
}
