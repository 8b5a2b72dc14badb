/* Design notes
 *
 * A table contains the place of one stub address as a constant, so its expressions do not read the
 * program counter. Unwinders keep pointers into tables, and a signal handler may ask for a table
 * while its thread reads another one. So a table never changes. Equal requests share a table.
 *
 * LLVM's unwinder subtracts 1 from a program counter before it searches. Versions up to 14 do so
 * even in a frame that a signal has interrupted. Later versions do so unless the frame is marked as
 * a signal frame. So no frame is marked for LLVM, and the place that a table gives is one byte
 * after the start of the instruction. The agent cannot see the version. But an unwinder runs a
 * description's instructions only if the true program counter is after the description's start. So
 * the common entry describes `pc` itself, and the description describes the next byte. The thread
 * is at the next byte if the unwinder has subtracted 1. */
#include "agent/inproc/hooks/unwind_describe.h"

#include "agent/abi/machine.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/stub_areas.h"

#include <stdatomic.h>
#include <string.h>

enum {
    TABLES = 16384,
    TRIES = 64,
    WORD = 8,
    /* A stub's frame of at least this size holds the link register at offset LINK_AT. */
    LINK_FRAME_BYTES = 48,
    LINK_AT = 8
};

enum {
    RULE_OFFSET = 0x80, /* DW_CFA_offset plus the register's number */
    RULE_EXPRESSION = 0x10,
    RULE_CFA = 0x12, /* DW_CFA_def_cfa_sf: followed by a factored offset */
    RULE_VALUE = 0x16,
    OP_ADDRESS = 0x03,
    OP_DEREF = 0x06,
    OP_REGISTER = 0x70 /* DW_OP_breg0 plus the register's number */
};

/* The values on which a table depends. */
typedef struct table_key {
    uint64_t begin; /* start of the described code */
    uint64_t bytes;
    /* [0]: place of `begin`, unknown unless the unwinder subtracts 1; [1]: place of the thread */
    sj_stub_place places[2];
    uint64_t subtracts_one;
} table_key;

enum { STATE_FREE, STATE_WRITTEN, STATE_READY };

typedef struct table_slot {
    _Atomic uint32_t state;
    table_key key;
    uint8_t table[SJ_UNWIND_DESCRIPTION_BYTES];
} table_slot;

static table_slot table_slots[TABLES]; /* the kernel allocates no memory for unused pages */

typedef struct entry_writer {
    uint8_t *at;
    const table_slot *slot;
} entry_writer;

static void put(entry_writer *writer, const void *bytes, uint32_t count)
{
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void put_32(entry_writer *writer, uint32_t value)
{
    put(writer, &value, sizeof(value));
}

static void put_64(entry_writer *writer, uint64_t value)
{
    put(writer, &value, sizeof(value));
}

#define PUT(...)                                                                                   \
    do {                                                                                           \
        const uint8_t put_bytes_[] = {__VA_ARGS__};                                                \
        put(writer, put_bytes_, sizeof(put_bytes_));                                               \
    } while (0)

/* Writes the rule for the stack pointer: at the place it is `stack` bytes above its value in the
 * stub. */
static void put_stack(entry_writer *writer, int32_t stack)
{
    enum { SEVEN_BITS = 0x7f };
    PUT(RULE_CFA, SJ_ARCH_UNWIND_STACK, (uint8_t)(-stack / WORD) & SEVEN_BITS);
}

/* Writes the rules for code that stubs call: the caller is at the return address. */
static void put_caller(entry_writer *writer, const sj_stub_place *place)
{
    enum { LOW_BITS = 0x7f, MORE = 0x80, SEVEN = 7 };
    if (SJ_MACHINE_CALL_PUSHES) {
        put_stack(writer, place->stack + WORD);
        PUT(RULE_OFFSET | SJ_ARCH_UNWIND_PLACE, 1);
        return;
    }
    put_stack(writer, 0);
    PUT(RULE_VALUE, SJ_ARCH_UNWIND_PLACE);
    if (place->stack == 0) {
        PUT(2, OP_REGISTER + SJ_ARCH_UNWIND_LINK, 0);
    } else {
        PUT(4, OP_REGISTER + SJ_ARCH_UNWIND_STACK, (uint8_t)(place->stack & LOW_BITS) | MORE,
            (uint8_t)(place->stack >> SEVEN), OP_DEREF);
    }
}

/* Writes the rules for a known place. On x86-64 the rule reads the place from memory, because
 * libunwind needs that. On AArch64 the rule gives the place as a value, because libgcc needs
 * that. */
static void put_place(entry_writer *writer, const sj_stub_place *place)
{
    const bool is_word = SJ_ARCH_UNWIND_PLACE_IN_MEMORY;
    put_stack(writer, place->stack);
    PUT(is_word ? RULE_EXPRESSION : RULE_VALUE, SJ_ARCH_UNWIND_PLACE, 1 + sizeof(uint64_t),
        OP_ADDRESS);
    put_64(writer, is_word ? (uint64_t)(uintptr_t)&place->address : place->address);
    if (!SJ_MACHINE_CALL_PUSHES && place->stack >= LINK_FRAME_BYTES) {
        PUT(RULE_OFFSET | SJ_ARCH_UNWIND_LINK, (uint8_t)((place->stack - LINK_AT) / WORD));
    }
}

static void put_rules(entry_writer *writer, const sj_stub_place *place)
{
    if (place->kind == SJ_STUB_CALLED) {
        put_caller(writer, place);
    } else if (place->kind != SJ_STUB_UNKNOWN) {
        put_place(writer, place);
    }
}

static uint8_t *begin_entry(entry_writer *writer)
{
    put_32(writer, 0);
    return writer->at;
}

/* Pads an entry and sets its length. The entry and its length field together are whole words. */
static void end_entry(entry_writer *writer, uint8_t *begin)
{
    while ((uint32_t)(writer->at - begin + sizeof(uint32_t)) % WORD != 0) {
        PUT(0);
    }
    const uint32_t bytes = (uint32_t)(writer->at - begin);
    memcpy(begin - sizeof(bytes), &bytes, sizeof(bytes));
}

static void put_common_entry(entry_writer *writer)
{
    enum { FACTOR = 0x78 /* -8 */, ABSOLUTE = 0 };
    const table_key *key = &writer->slot->key;
    uint8_t *begin = begin_entry(writer);
    put_32(writer, 0);
    if (key->subtracts_one == 0 && key->places[1].kind != SJ_STUB_CALLED) {
        PUT(1, 'z', 'R', 'S', 0, 1, FACTOR, SJ_ARCH_UNWIND_PLACE, 1, ABSOLUTE);
    } else {
        PUT(1, 'z', 'R', 0, 1, FACTOR, SJ_ARCH_UNWIND_PLACE, 1, ABSOLUTE);
    }
    if (key->subtracts_one != 0) {
        put_rules(writer, &key->places[0]);
    }
    end_entry(writer, begin);
}

/* Writes the description and returns its start. */
static uint8_t *put_description(entry_writer *writer, const uint8_t *common)
{
    uint8_t *begin = begin_entry(writer);
    put_32(writer, (uint32_t)(begin - common));
    put_64(writer, writer->slot->key.begin);
    put_64(writer, writer->slot->key.bytes);
    PUT(0);
    put_rules(writer, &writer->slot->key.places[1]);
    end_entry(writer, begin);
    return begin - sizeof(uint32_t);
}

/* Writes an index and the frames. LLVM's unwinder searches the index; other unwinders search the
 * frames. libgcc and libunwind do not support an index whose addresses are 64 bits. */
static void write_table(table_slot *slot)
{
    enum { ABSOLUTE = 0, ABSOLUTE_64 = 4, COUNT = 3, INDEX_BYTES = 32 };
    uint8_t *frames = slot->table + INDEX_BYTES;
    entry_writer out = {frames, slot};
    entry_writer *writer = &out;
    put_common_entry(writer);
    const uint8_t *description = put_description(writer, frames);
    put_32(writer, 0); /* end mark */
    writer->at = slot->table;
    PUT(1, ABSOLUTE, COUNT, ABSOLUTE_64);
    put_64(writer, (uint64_t)(uintptr_t)frames);
    /* Number of entries: libunwind counts the common entry, too. */
    put_32(writer, slot->key.subtracts_one != 0 ? 1 : 2);
    put_64(writer, slot->key.begin);
    put_64(writer, (uint64_t)(uintptr_t)description);
}

static uint32_t hash_of(const table_key *key)
{
    uint64_t words[sizeof(*key) / sizeof(uint64_t)];
    uint64_t hash = 0;
    memcpy(words, key, sizeof(words));
    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* Returns the table for a key, and writes the table if there is none. Returns NULL if TRIES slots
 * are in use. Skips a table that another thread, or the code that a signal handler has interrupted,
 * is still writing. So a table may exist twice. */
static const uint8_t *find_table(const table_key *key)
{
    const uint32_t first = hash_of(key);
    for (uint32_t i = 0; i < TRIES; i++) {
        table_slot *slot = &table_slots[(first + i) % TABLES];
        uint32_t state = STATE_FREE;
        if (atomic_compare_exchange_strong(&slot->state, &state, STATE_WRITTEN)) {
            slot->key = *key;
            write_table(slot);
            atomic_store_explicit(&slot->state, STATE_READY, memory_order_release);
            return slot->table;
        }
        if (state == STATE_READY && memcmp(&slot->key, key, sizeof(*key)) == 0) {
            return slot->table;
        }
    }
    return NULL;
}

/* Reads the place of `pc` from the stub map and adds `shift` to its address. Sets members that are
 * not needed to 0, so that keys can be compared by their bytes. */
static void read_place(uint64_t pc, uint64_t shift, sj_stub_place *place)
{
    uint64_t low;
    uint64_t bytes;
    if (!sj_stubs_find(pc, &low, &bytes, place)) {
        *place = (sj_stub_place){.kind = SJ_STUB_UNKNOWN};
    } else if (place->kind == SJ_STUB_CALLED || place->kind == SJ_STUB_UNKNOWN) {
        place->address = 0;
    } else {
        place->kind = SJ_STUB_FIXED;
        place->address += shift;
    }
}

const uint8_t *sj_unwind_describe(uint64_t pc, bool subtracts_one)
{
    table_key key = {.begin = pc,
                     .bytes = 2,
                     .places = {{.kind = SJ_STUB_UNKNOWN}},
                     .subtracts_one = subtracts_one ? 1 : 0};
    if (subtracts_one) {
        read_place(pc, 1, &key.places[0]);
        read_place(pc + 1, 1, &key.places[1]);
    } else {
        read_place(pc, 0, &key.places[1]);
        key.begin = sj_stub_areas_find(pc, &key.bytes);
    }
    const bool is_known =
        key.places[0].kind != SJ_STUB_UNKNOWN || key.places[1].kind != SJ_STUB_UNKNOWN;
    return is_known ? find_table(&key) : NULL;
}
