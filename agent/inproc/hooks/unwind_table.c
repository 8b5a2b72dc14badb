/* Design notes
 *
 * A description for each stub would be as large as the stubs, and would be made at each start.
 * DWARF's expressions have loops and read memory. Two of them search the map, one for the stack
 * pointer of the interrupted code and one for its place. The search is the same as in
 * abi/stub_map.c: of `count` entries from `entry` on, take the half that contains the key.
 *
 * Where calls push no return address (AArch64), code that stubs call leaves the stack pointer as it
 * is, and a third expression finds the link register. libgcc cannot evaluate these tables there,
 * because it has no number for the program counter. gdb can: it calls the register 32. */
#include "agent/inproc/hooks/unwind_table.h"

#include "agent/abi/machine.h"
#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/arch.h"

#include <stdbool.h>
#include <string.h>

enum {
    OP_DEREF = 0x06,
    OP_CONST1 = 0x08,
    OP_CONST4 = 0x0c,
    OP_CONST8 = 0x0e,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_CONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_LE = 0x2c,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_REGISTER = 0x70, /* plus a register up to 31, followed by an offset of one byte */
    OP_REGISTER_X = 0x92,
    OP_DEREF_SIZE = 0x94,
    CFA_EXPRESSION = 0x0f,
    CFA_VALUE = 0x16,
    JUMP_BYTES = 3,
    WORD_SHIFT = 3,
    STACK_MASK = (1 << SJ_STUB_STACK_BITS) - 1,
    PLACE_MASK = (1 << SJ_STUB_KIND_SHIFT) - 1,
    PLACE_AT = 4,
    ENTRY_SHIFT = 3,
    REGISTERS_SHORT = 32,
    /* A frame of at least this size holds the link register, at LINK_AT. */
    LINK_FRAME_BYTES = 48,
    LINK_AT = 8
};

typedef struct table_writer {
    uint8_t *at;
    const uint8_t *begin;
    uint64_t begin_address; /* where `begin` lies for the readers */
    uint64_t area;
    sj_stub_area head;
} table_writer;

static void put(table_writer *writer, const void *bytes, uint32_t count)
{
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void put_32(table_writer *writer, uint32_t value)
{
    put(writer, &value, sizeof(value));
}

#define PUT(...)                                                                                   \
    do {                                                                                           \
        const uint8_t put_bytes_[] = {__VA_ARGS__};                                                \
        put(writer, put_bytes_, sizeof(put_bytes_));                                               \
    } while (0)

static void put_address(table_writer *writer, uint64_t address)
{
    PUT(OP_CONST8);
    put(writer, &address, sizeof(address));
}

/* Writes a jump (OP_BRA, OP_SKIP). Returns the address after it, for set_target, which sets the
 * distance. */
static uint8_t *put_jump(table_writer *writer, uint8_t operation)
{
    PUT(operation, 0, 0);
    return writer->at;
}

static void set_target(uint8_t *jump, const uint8_t *to)
{
    const int16_t distance = (int16_t)(to - jump);
    memcpy(jump - sizeof(distance), &distance, sizeof(distance));
}

static void put_register(table_writer *writer, uint8_t number, uint8_t offset)
{
    if (number < REGISTERS_SHORT) {
        PUT((uint8_t)(OP_REGISTER + number), offset);
    } else {
        PUT(OP_REGISTER_X, number, offset);
    }
}

/* Leaves the key of the program counter and the address of its entry on the stack. */
static void put_search(table_writer *writer)
{
    put_register(writer, SJ_ARCH_UNWIND_PLACE, 0);
    put_address(writer, writer->area);
    PUT(OP_MINUS, OP_LIT0 + SJ_STUB_STACK_BITS, OP_SHL, OP_CONST1, STACK_MASK, OP_OR); /* key */
    put_address(writer, writer->area + writer->head.map);                              /* entry */
    PUT(OP_CONST4);
    put_32(writer, writer->head.count);
    const uint8_t *next = writer->at;
    PUT(OP_DUP, OP_LIT0 + 1, OP_LE); /* key entry count */
    uint8_t *found = put_jump(writer, OP_BRA);
    PUT(OP_DUP, OP_LIT0 + 1, OP_SHR);                                /* half */
    PUT(OP_DUP, OP_LIT0 + ENTRY_SHIFT, OP_SHL, OP_PICK, 3, OP_PLUS); /* middle */
    PUT(OP_DUP, OP_DEREF_SIZE, 4, OP_PICK, 5, OP_LE);                /* start <= key */
    uint8_t *branch = put_jump(writer, OP_BRA);
    PUT(OP_DROP, OP_MINUS); /* key entry count-half */
    set_target(put_jump(writer, OP_SKIP), next);
    set_target(branch, writer->at);
    PUT(OP_ROT, OP_MINUS, OP_ROT, OP_SWAP, OP_DROP, OP_SWAP); /* key middle count-half */
    set_target(put_jump(writer, OP_SKIP), next);
    set_target(found, writer->at);
    PUT(OP_DROP);
}

/* Writes operations that replace an entry's address by the stack pointer of the interrupted
 * code. */
static void put_stack(table_writer *writer)
{
    PUT(OP_DEREF_SIZE, 4, OP_CONST1, STACK_MASK, OP_AND, OP_LIT0 + WORD_SHIFT, OP_SHL);
    PUT(OP_LIT0 - SJ_STUB_STACK_LEAST, OP_MINUS);
    put_register(writer, SJ_ARCH_UNWIND_STACK, 0);
    PUT(OP_PLUS);
}

/* Writes operations that replace an entry's address by its `place` word. */
static void put_place_word(table_writer *writer)
{
    PUT(OP_PLUS_CONST, PLACE_AT, OP_DEREF_SIZE, 4);
}

/* Writes operations that replace a `place` word by 1 if it has the kind, else by 0. */
static void put_is_kind(table_writer *writer, sj_stub_kind kind)
{
    PUT(OP_CONST1, SJ_STUB_KIND_SHIFT, OP_SHR, (uint8_t)(OP_LIT0 + kind), OP_EQ);
}

/* Writes the expression for the stack pointer (CFA) of the interrupted code. */
static void put_stack_expression(table_writer *writer)
{
    put_search(writer);
    PUT(OP_DUP);
    put_stack(writer);
    PUT(OP_SWAP);
    put_place_word(writer);
    put_is_kind(writer, SJ_STUB_CALLED);
    if (SJ_MACHINE_CALL_PUSHES) { /* above the return address */
        PUT(OP_LIT0 + WORD_SHIFT, OP_SHL, OP_PLUS);
        return;
    }
    uint8_t *called = put_jump(writer, OP_BRA);
    uint8_t *end = put_jump(writer, OP_SKIP);
    set_target(called, writer->at);
    put_register(writer, SJ_ARCH_UNWIND_STACK, 0);
    set_target(end, writer->at);
}

/* Appends operations that compute the return address of code that stubs call. */
static void put_return(table_writer *writer)
{
    put_stack(writer);
    if (SJ_MACHINE_CALL_PUSHES) {
        PUT(OP_DEREF);
        return;
    }
    PUT(OP_DUP);
    put_register(writer, SJ_ARCH_UNWIND_STACK, 0);
    PUT(OP_EQ);
    uint8_t *linked = put_jump(writer, OP_BRA);
    PUT(OP_DEREF);
    uint8_t *end = put_jump(writer, OP_SKIP);
    set_target(linked, writer->at);
    put_register(writer, SJ_ARCH_UNWIND_LINK, 0);
    set_target(end, writer->at);
}

/* Writes the expression for the program counter of the interrupted code. */
static void put_place_expression(table_writer *writer)
{
    put_search(writer);
    PUT(OP_DUP);
    put_place_word(writer);
    PUT(OP_DUP);
    put_is_kind(writer, SJ_STUB_CALLED);
    uint8_t *called = put_jump(writer, OP_BRA);
    PUT(OP_DUP); /* key entry place */
    put_is_kind(writer, SJ_STUB_COPY);
    PUT(OP_PICK, 3, OP_LIT0 + SJ_STUB_STACK_BITS, OP_SHR);
    PUT(OP_PICK, 3, OP_DEREF_SIZE, 4, OP_LIT0 + SJ_STUB_STACK_BITS, OP_SHR);
    PUT(OP_MINUS, OP_MUL, OP_SWAP,
        OP_CONST4); /* for copied code, adds the distance into the copy */
    put_32(writer, PLACE_MASK);
    PUT(OP_AND, OP_PLUS);
    put_address(writer, writer->area + (uint64_t)writer->head.text);
    PUT(OP_PLUS);
    uint8_t *end = put_jump(writer, OP_SKIP);
    set_target(called, writer->at);
    PUT(OP_DROP);
    put_return(writer);
    set_target(end, writer->at);
}

static void put_link_expression(table_writer *writer)
{
    put_search(writer);
    put_stack(writer);
    put_register(writer, SJ_ARCH_UNWIND_STACK, 0);
    PUT(OP_MINUS, OP_CONST1, LINK_FRAME_BYTES, OP_GE);
    uint8_t *saved = put_jump(writer, OP_BRA);
    put_register(writer, SJ_ARCH_UNWIND_LINK, 0);
    uint8_t *end = put_jump(writer, OP_SKIP);
    set_target(saved, writer->at);
    put_register(writer, SJ_ARCH_UNWIND_STACK, LINK_AT);
    PUT(OP_DEREF);
    set_target(end, writer->at);
}

/* Writes an expression, preceded by its length of two bytes. */
static void put_expression(table_writer *writer, void (*expression)(table_writer *writer))
{
    enum { SEVEN_BITS = 7, MORE = 0x80, LOW = 0x7f };
    uint8_t *length = writer->at;
    PUT(0, 0);
    expression(writer);
    const uint32_t bytes = (uint32_t)(writer->at - length) - 2;
    length[0] = (uint8_t)(MORE | (bytes & LOW));
    length[1] = (uint8_t)(bytes >> SEVEN_BITS);
}

/* Pads an entry of .eh_frame to whole words and sets its length. */
static void end_entry(table_writer *writer, uint8_t *length)
{
    while ((uintptr_t)(writer->at - writer->begin) % sizeof(uint64_t) != 0) {
        PUT(0);
    }
    const uint32_t bytes = (uint32_t)(writer->at - length) - sizeof(bytes);
    memcpy(length, &bytes, sizeof(bytes));
}

/* Returns where readers see the next byte. */
static uint64_t here(const table_writer *writer)
{
    return writer->begin_address + (uint64_t)(writer->at - writer->begin);
}

static void put_distance(table_writer *writer, uint64_t to, uint64_t from)
{
    put_32(writer, (uint32_t)(to - from));
}

static uint8_t *put_common_entry(table_writer *writer)
{
    enum { DATA_ALIGNMENT = 0x78 /* -8 */, RELATIVE = 0x1b };
    uint8_t *start = writer->at;
    put_32(writer, 0);
    put_32(writer, 0);
    PUT(1, 'z', 'R', 'S', 0, 1, DATA_ALIGNMENT, SJ_ARCH_UNWIND_PLACE, 1, RELATIVE);
    end_entry(writer, start);
    return start;
}

static uint8_t *put_description(table_writer *writer, const uint8_t *common)
{
    uint8_t *start = writer->at;
    put_32(writer, 0);
    put_32(writer, (uint32_t)(writer->at - common));
    put_distance(writer, writer->area, here(writer));
    put_32(writer, writer->head.code_end);
    PUT(0, CFA_EXPRESSION);
    put_expression(writer, put_stack_expression);
    PUT(CFA_VALUE, SJ_ARCH_UNWIND_PLACE);
    put_expression(writer, put_place_expression);
    if (!SJ_MACHINE_CALL_PUSHES) {
        PUT(CFA_VALUE, SJ_ARCH_UNWIND_LINK);
        put_expression(writer, put_link_expression);
    }
    end_entry(writer, start);
    return start;
}

static table_writer begin_table(const void *area, uint8_t *at, uint64_t address)
{
    table_writer writer = {
        .at = at, .begin = at, .begin_address = address, .area = (uint64_t)(uintptr_t)area};
    memcpy(&writer.head, (const uint8_t *)area + SJ_STUB_AREA_OFFSET, sizeof(writer.head));
    return writer;
}

/* Writes .eh_frame. Returns its description. */
static const uint8_t *put_frames(table_writer *writer)
{
    const uint8_t *description = put_description(writer, put_common_entry(writer));
    put_32(writer, 0); /* the end of .eh_frame */
    return description;
}

uint32_t sj_unwind_frames_write(const void *area, uint8_t *at, uint64_t address)
{
    table_writer writer = begin_table(area, at, address);
    (void)put_frames(&writer);
    return (uint32_t)(writer.at - at);
}

uint32_t sj_unwind_table_write(const void *area, uint8_t *at)
{
    enum { RELATIVE = 0x1b, COUNT = 0x03, TABLE = 0x3b };
    const uint64_t index = (uint64_t)(uintptr_t)at;
    uint8_t *frames = at + SJ_UNWIND_INDEX_BYTES;
    table_writer out = begin_table(area, frames, index + SJ_UNWIND_INDEX_BYTES);
    table_writer *writer = &out;
    if (!SJ_ARCH_UNWIND_BY_TABLE) {
        return 0;
    }
    const uint8_t *description = put_frames(writer);
    const uint32_t bytes = (uint32_t)(writer->at - at);
    writer->at = at;
    PUT(1, RELATIVE, COUNT, TABLE);
    put_distance(writer, (uint64_t)(uintptr_t)frames, index + 4);
    put_32(writer, 1);
    put_distance(writer, writer->area, index);
    put_distance(writer, (uint64_t)(uintptr_t)description, index);
    put_32(writer, 0);
    return bytes;
}
