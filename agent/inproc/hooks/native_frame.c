/* Design notes
 *
 * A signal handler needs a reader of .eh_frame, and libgcc's may allocate and lock. This reader
 * supports what compilers write for C code: descriptions of the form "zR", and frames whose
 * registers lie at fixed distances from the canonical frame address. It refuses everything else,
 * including places where a DWARF expression gives a register. */
#include "agent/inproc/hooks/native_frame.h"

#include "proto/base/bisect.h"
#include "proto/base/cursor.h"

#include <string.h>

enum {
    /* First word of .eh_frame_hdr (LSB): version 1, then the encodings of a distance, a count and
     * sorted distances, each of 4 bytes. */
    INDEX_FORM = 0x3b031b01,
    INDEX_ROW_BYTES = 8,
    FDE_FORM = 0x1b, /* addresses are 4-byte distances */
    FRAME_MOST_BYTES = 1 << 16,
    STATES = 2
};

typedef struct frame_rules {
    uint64_t cfa_register;
    int64_t cfa_distance;
    uint64_t saved;                      /* one bit for each register that the frame has saved */
    uint64_t unknown;                    /* one bit for each register whose rule is an expression */
    int64_t places[SJ_NATIVE_REGISTERS]; /* distances from the canonical frame address */
} frame_rules;

typedef struct description {
    uint64_t start;
    uint64_t bytes;
    uint64_t code_unit;
    int64_t data_unit;
    sj_reader common; /* instructions that several functions share (CIE); `own` has the function's
                         (FDE) */
    sj_reader own;
} description;

typedef struct rule_machine {
    const description *described;
    uint64_t at;     /* offset in the function */
    uint64_t target; /* offset in the function for which the rules are wanted */
    frame_rules rules;
    frame_rules initial;
    frame_rules states[STATES];
    uint32_t state_count;
} rule_machine;

static uint64_t address_of(const uint8_t *place)
{
    return (uint64_t)(uintptr_t)place;
}

static int64_t read_signed(sj_reader *reader)
{
    uint64_t value = 0;
    uint32_t shift = 0;
    uint8_t byte = 0;
    do {
        byte = sj_read_u8(reader);
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0 && shift < 63);
    return (int64_t)((byte & 0x40) != 0 ? value | UINT64_MAX << shift : value);
}

/* Returns a reader from `address` to the module's end, or an empty one if the address is
 * outside. */
static sj_reader reader_at(const sj_native_module *module, uint64_t address)
{
    const bool is_inside = address >= module->low && address < module->high;
    return sj_reader_of((const void *)(uintptr_t)address, is_inside ? module->high - address : 0);
}

/* Returns the body of the entry of .eh_frame at `address`, or an empty one if there is none. */
static sj_reader entry_at(const sj_native_module *module, uint64_t address)
{
    sj_reader reader = reader_at(module, address);
    const uint32_t bytes = sj_read_u32(&reader);
    const uint8_t *body = sj_read_bytes(&reader, bytes);
    return sj_reader_of(body, body != NULL ? bytes : 0);
}

static uint64_t read_distance(sj_reader *reader)
{
    return (uint64_t)(int64_t)(int32_t)sj_read_u32(reader);
}

/* Returns an address of a row of the index: column 0 is where the described code begins, column 1
 * is its description. */
static uint64_t index_cell(const sj_native_module *module, const uint8_t *rows, uint64_t row,
                           uint64_t column)
{
    sj_reader cell =
        sj_reader_of(rows + row * INDEX_ROW_BYTES + column * sizeof(int32_t), sizeof(int32_t));
    return module->index + read_distance(&cell);
}

/* Returns the address of the last description that begins at or below `pc`, or 0 if there is
 * none. */
static uint64_t find_description(const sj_native_module *module, uint64_t pc)
{
    sj_reader reader = reader_at(module, module->index);
    const uint32_t form = sj_read_u32(&reader);
    (void)sj_read_u32(&reader);
    const uint64_t count = sj_read_u32(&reader);
    const uint8_t *rows = sj_read_bytes(&reader, count * INDEX_ROW_BYTES);
    const uint64_t readable = rows != NULL && form == INDEX_FORM ? count : 0;
    const uint64_t after = SJ_BISECT(0, readable, i, index_cell(module, rows, i, 0) <= pc);
    return after != 0 ? index_cell(module, rows, after - 1, 1) : 0;
}

/* Reads the entry that several functions share (CIE). Returns false if it is not of the form
 * "zR". */
static bool read_common(const sj_native_module *module, uint64_t address, description *read)
{
    static const char form[] = "zR";
    sj_reader reader = entry_at(module, address);
    const uint32_t id = sj_read_u32(&reader);
    const uint8_t version = sj_read_u8(&reader);
    const uint8_t *text = sj_read_bytes(&reader, sizeof(form));
    read->code_unit = sj_read_varint(&reader);
    read->data_unit = read_signed(&reader);
    const uint8_t return_register = sj_read_u8(&reader);
    const uint64_t form_bytes = sj_read_varint(&reader);
    const uint8_t pointers = sj_read_u8(&reader);
    read->common = reader;
    return !reader.bad && id == 0 && version == 1 && memcmp(text, form, sizeof(form)) == 0 &&
           return_register == SJ_NATIVE_RETURN && form_bytes == 1 && pointers == FDE_FORM;
}

/* Finds and reads the description (FDE) of the function that contains `pc`. Returns false if there
 * is none. */
static bool read_description(const sj_native_module *module, uint64_t pc, description *read)
{
    const uint64_t found = find_description(module, pc);
    sj_reader reader = entry_at(module, found);
    const uint64_t common = address_of(reader.at);
    const uint64_t distance = sj_read_u32(&reader);
    const uint64_t place = address_of(reader.at);
    read->start = place + read_distance(&reader);
    read->bytes = sj_read_u32(&reader);
    (void)sj_read_bytes(&reader, sj_read_varint(&reader));
    read->own = reader;
    return found != 0 && !reader.bad && pc - read->start < read->bytes &&
           read_common(module, common - distance, read);
}

/* Notes that the frame has saved a register, `units` data units from the frame address. */
static void set_saved(rule_machine *machine, uint64_t number, uint64_t units)
{
    if (number < SJ_NATIVE_REGISTERS) {
        machine->rules.saved |= UINT64_C(1) << number;
        machine->rules.unknown &= ~(UINT64_C(1) << number);
        machine->rules.places[number] = (int64_t)units * machine->described->data_unit;
    }
}

static void restore_rule(rule_machine *machine, uint64_t number)
{
    if (number < SJ_NATIVE_REGISTERS) {
        const uint64_t bit = UINT64_C(1) << number;
        machine->rules.saved = (machine->rules.saved & ~bit) | (machine->initial.saved & bit);
        machine->rules.unknown = (machine->rules.unknown & ~bit) | (machine->initial.unknown & bit);
        machine->rules.places[number] = machine->initial.places[number];
    }
}

/* Skips the expression that computes the register `number`. */
static void skip_expression(rule_machine *machine, uint64_t number, sj_reader *reader)
{
    (void)sj_read_bytes(reader, sj_read_varint(reader));
    machine->rules.unknown |= number < SJ_NATIVE_REGISTERS ? UINT64_C(1) << number : 0;
}

/* Executes a call frame instruction of DWARF whose operands follow it. Returns false if compilers
 * do not use it for C code. */
static bool execute_long(rule_machine *machine, uint8_t instruction, sj_reader *reader)
{
    enum {
        NOP = 0,
        ADVANCE_1 = 2,
        ADVANCE_2 = 3,
        ADVANCE_4 = 4,
        REMEMBER = 10,
        RECALL = 11,
        CFA = 12,
        CFA_REGISTER = 13,
        CFA_DISTANCE = 14,
        CFA_EXPRESSION = 15,
        EXPRESSION = 16,
        VALUE_EXPRESSION = 22,
        ARGUMENTS = 0x2e
    };
    const uint64_t unit = machine->described->code_unit;
    switch (instruction) {
    case NOP:
        return true;
    case ADVANCE_1:
        machine->at += sj_read_u8(reader) * unit;
        return true;
    case ADVANCE_2:
        machine->at += sj_read_u16(reader) * unit;
        return true;
    case ADVANCE_4:
        machine->at += sj_read_u32(reader) * unit;
        return true;
    case REMEMBER:
        machine->states[machine->state_count % STATES] = machine->rules;
        return machine->state_count++ < STATES;
    case RECALL:
        machine->state_count--; /* wraps if no state is remembered */
        machine->rules = machine->states[machine->state_count % STATES];
        return machine->state_count < STATES;
    case CFA:
        machine->rules.cfa_register = sj_read_varint(reader);
        machine->rules.cfa_distance = (int64_t)sj_read_varint(reader);
        return true;
    case CFA_REGISTER:
        machine->rules.cfa_register = sj_read_varint(reader);
        return true;
    case CFA_DISTANCE:
        machine->rules.cfa_distance = (int64_t)sj_read_varint(reader);
        return true;
    case CFA_EXPRESSION:
        /* An expression computes the frame address, not a register. */
        machine->rules.cfa_register = SJ_NATIVE_REGISTERS;
        skip_expression(machine, SJ_NATIVE_REGISTERS, reader);
        return true;
    case EXPRESSION:
    case VALUE_EXPRESSION:
        skip_expression(machine, sj_read_varint(reader), reader);
        return true;
    case ARGUMENTS:
        (void)sj_read_varint(reader);
        return true;
    default:
        return false;
    }
}

/* Executes instructions up to machine->target. Returns false at an unknown or truncated
 * instruction. */
static bool execute(rule_machine *machine, sj_reader reader)
{
    enum { ADVANCE = 1, OFFSET = 2, RESTORE = 3, OPERAND = 0x3f };
    bool is_known = true;
    while (is_known && !reader.bad && sj_reader_left(&reader) != 0) {
        const frame_rules before = machine->rules;
        const uint8_t instruction = sj_read_u8(&reader);
        const uint64_t operand = instruction & OPERAND;
        if (instruction >> 6 == ADVANCE) {
            machine->at += operand * machine->described->code_unit;
        } else if (instruction >> 6 == OFFSET) {
            set_saved(machine, operand, sj_read_varint(&reader));
        } else if (instruction >> 6 == RESTORE) {
            restore_rule(machine, operand);
        } else {
            is_known = execute_long(machine, instruction, &reader);
        }
        if (machine->at > machine->target) {
            machine->rules = before;
            break;
        }
    }
    return is_known && !reader.bad;
}

/* Computes the rules at `pc`. Returns false if any of them is not supported. */
static bool find_rules(const sj_native_module *module, uint64_t pc, frame_rules *rules)
{
    description found;
    if (!read_description(module, pc, &found)) {
        return false;
    }
    rule_machine machine = {.described = &found, .target = pc - found.start};
    bool is_known = execute(&machine, found.common);
    machine.initial = machine.rules;
    is_known = is_known && execute(&machine, found.own);
    *rules = machine.rules;
    return is_known && rules->unknown == 0 && rules->cfa_register < SJ_NATIVE_REGISTERS;
}

uint64_t sj_native_function(const sj_native_module *module, uint64_t pc)
{
    description found;
    return read_description(module, pc, &found) ? found.start : 0;
}

bool sj_native_leave(const sj_native_module *module, bool is_return_address,
                     uint64_t registers[SJ_NATIVE_REGISTERS])
{
    frame_rules rules;
    if (!find_rules(module, registers[SJ_NATIVE_PC] - is_return_address, &rules)) {
        return false;
    }
    const uint64_t sp = registers[SJ_NATIVE_SP];
    const uint64_t cfa = registers[rules.cfa_register] + (uint64_t)rules.cfa_distance;
    if (cfa - sp > FRAME_MOST_BYTES) {
        return false;
    }
    for (uint64_t i = 0; i < SJ_NATIVE_REGISTERS; i++) {
        const uint64_t below = -(uint64_t)rules.places[i];
        if ((rules.saved >> i & 1) != 0 && (below > cfa - sp + SJ_NATIVE_RED_ZONE || below == 0)) {
            return false;
        }
    }
    for (uint64_t i = 0; i < SJ_NATIVE_REGISTERS; i++) {
        if ((rules.saved >> i & 1) != 0) {
            registers[i] = *(const uint64_t *)(uintptr_t)(cfa + (uint64_t)rules.places[i]);
        }
    }
    registers[SJ_NATIVE_SP] = cfa;
    registers[SJ_NATIVE_PC] = registers[SJ_NATIVE_RETURN];
    return true;
}
