/* Design notes
 *
 * A description for each stub would be as large as the stubs, and each process would have to write
 * it. DWARF's expressions can loop and read memory. So two expressions search the map. One computes
 * the stack pointer of the interrupted code, and one its place. They use the binary search of
 * abi/stub_map.c. Comments at operations list the expression's stack. */
#include "agent/inproc/hooks/unwind_table.h"

#include "agent/abi/stub_map.h"

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
    OP_LE = 0x2c,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_STACK_POINTER = 0x77, /* breg7; an offset of one byte follows */
    OP_COUNTER = 0x80,       /* breg16 */
    OP_DEREF_SIZE = 0x94,
    CFA_EXPRESSION = 0x0f,
    CFA_VALUE = 0x16,
    RETURN_COLUMN = 16,
    JUMP_BYTES = 3,
    WORD_SHIFT = 3,
    STACK_MASK = (1 << SJ_STUB_STACK_BITS) - 1,
    PLACE_MASK = (1 << SJ_STUB_KIND_SHIFT) - 1,
    PLACE_AT = 4,
    ENTRY_SHIFT = 3
};

typedef struct table_writer {
    uint8_t *at;
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

/* Writes a jump (OP_BRA, OP_SKIP). Returns the address behind it, for set_target, which sets the
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

/* Writes operations that push the key of the program counter, and the address of the map entry that
 * covers it. */
static void put_search(table_writer *writer)
{
    PUT(OP_COUNTER, 0);
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
    PUT(OP_LIT0 - SJ_STUB_STACK_LEAST, OP_MINUS, OP_STACK_POINTER, 0, OP_PLUS);
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
    put_is_kind(writer,
                SJ_STUB_CALLED); /* if stubs call the code, adds the size of the return address */
    PUT(OP_LIT0 + WORD_SHIFT, OP_SHL, OP_PLUS);
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
    put_stack(writer);
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
    while ((uintptr_t)writer->at % sizeof(uint64_t) != 0) {
        PUT(0);
    }
    const uint32_t bytes = (uint32_t)(writer->at - length) - sizeof(bytes);
    memcpy(length, &bytes, sizeof(bytes));
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
    PUT(1, 'z', 'R', 'S', 0, 1, DATA_ALIGNMENT, RETURN_COLUMN, 1, RELATIVE);
    end_entry(writer, start);
    return start;
}

static uint8_t *put_description(table_writer *writer, const uint8_t *common)
{
    uint8_t *start = writer->at;
    put_32(writer, 0);
    put_32(writer, (uint32_t)(writer->at - common));
    put_distance(writer, writer->area, (uint64_t)(uintptr_t)writer->at);
    put_32(writer, writer->head.code_end);
    PUT(0, CFA_EXPRESSION);
    put_expression(writer, put_stack_expression);
    PUT(CFA_VALUE, RETURN_COLUMN);
    put_expression(writer, put_place_expression);
    end_entry(writer, start);
    return start;
}

uint32_t sj_unwind_table_write(const void *area, uint8_t *at)
{
    enum { RELATIVE = 0x1b, COUNT = 0x03, TABLE = 0x3b };
    table_writer out = {.at = at + SJ_UNWIND_INDEX_BYTES, .area = (uint64_t)(uintptr_t)area};
    table_writer *writer = &out;
    memcpy(&writer->head, (const uint8_t *)area + SJ_STUB_AREA_OFFSET, sizeof(writer->head));
    const uint64_t index = (uint64_t)(uintptr_t)at;
    const uint8_t *common = put_common_entry(writer);
    const uint8_t *description = put_description(writer, common);
    put_32(writer, 0); /* the end of .eh_frame */
    const uint32_t bytes = (uint32_t)(writer->at - at);
    writer->at = at;
    PUT(1, RELATIVE, COUNT, TABLE);
    put_distance(writer, (uint64_t)(uintptr_t)common, index + 4);
    put_32(writer, 1);
    put_distance(writer, writer->area, index);
    put_distance(writer, (uint64_t)(uintptr_t)description, index);
    put_32(writer, 0);
    return bytes;
}
