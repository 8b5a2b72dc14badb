#include "agent/runtimes/jvm/value_code.h"

#include "agent/runtimes/jvm/bytecode.h"

#include <stdlib.h>

enum {
    SHORT_ID_MAX = INT16_MAX,
    PARAMETERS_MAX = 255, /* Maximum number of slots (JVM specification, 4.3.3). */
    PARAMETER_NONE = 0
};

enum opcode {
    ACONST_NULL = 0x01,
    ICONST_1 = 0x04,
    ILOAD = 0x15,
    LLOAD = 0x16,
    FLOAD = 0x17,
    DLOAD = 0x18,
    ALOAD = 0x19,
    LOAD_TO_STORE = 0x21, /* Difference between the opcodes of a load and of the matching store. */
    DUP = 0x59,
    DUP2 = 0x5c,
    IAND = 0x7e,
    LXOR = 0x83,
    I2L = 0x85,
    L2I = 0x88,
    I2B = 0x91,
    I2C = 0x92,
    I2S = 0x93,
    IFEQ = 0x99,
    IRETURN = 0xac,
    LRETURN = 0xad,
    FRETURN = 0xae,
    DRETURN = 0xaf,
    ARETURN = 0xb0,
    RETURN = 0xb1
};

/* A parameter or the result. */
typedef struct typed_place {
    char type;    /* First character of its descriptor; 0 if it does not exist. */
    uint8_t slot; /* Local variable of a parameter. */
} typed_place;

typedef struct code_draft {
    const sj_class_method *method;
    const sj_java_values *values;
    const sj_value_constants *constants;
    uint32_t function;
    typed_place places[SJ_VALUE_LAST_POSITION + 1]; /* [0] is the result; parameters follow. */
    sj_value_code *code;
} code_draft;

/* Returns the first character of the type at `*at`, and advances `*at` past the type. Returns 0 if
 * it is not a type. */
static char parse_type(sj_slice text, size_t *at)
{
    const char type = *at < text.size ? (char)text.data[*at] : '\0';
    while (*at < text.size && text.data[*at] == '[') {
        ++*at;
    }
    const char element = *at < text.size ? (char)text.data[(*at)++] : '\0';
    if (element == 'L') {
        while (*at < text.size && text.data[*at] != ';') {
            ++*at;
        }
        return *at < text.size && text.data[(*at)++] == ';' ? type : '\0';
    }
    return element != '\0' && strchr("ZBCSIJFDV", element) != NULL ? type : '\0';
}

static bool is_wide(char type)
{
    return type == 'J' || type == 'D';
}

/* Reads the parameters and the result from the method's descriptor. */
static sj_status read_places(code_draft *draft)
{
    enum { STATIC = 0x0008 };
    const sj_slice text = draft->method->descriptor;
    uint32_t slot = (draft->method->access & STATIC) != 0 ? 0 : 1;
    size_t at = 1;
    if (text.size < 3 || text.data[0] != '(') {
        return SJ_ECORRUPT;
    }
    for (uint32_t number = 1; at < text.size && text.data[at] != ')'; number++) {
        const char type = parse_type(text, &at);
        if (type == '\0' || type == 'V' || slot >= PARAMETERS_MAX) {
            return SJ_ECORRUPT;
        }
        if (number <= SJ_VALUE_LAST_POSITION) {
            draft->places[number] = (typed_place){.type = type, .slot = (uint8_t)slot};
        }
        slot += is_wide(type) ? 2 : 1;
    }
    at++;
    draft->places[0].type = parse_type(text, &at);
    return draft->places[0].type != '\0' && at == text.size ? SJ_OK : SJ_ECORRUPT;
}

static sj_java_type java_type_of(char type)
{
    switch (type) {
    case 'Z':
        return SJ_JAVA_BOOLEAN;
    case 'C':
        return SJ_JAVA_CHARACTER;
    case 'F':
        return SJ_JAVA_FLOAT;
    case 'D':
        return SJ_JAVA_DOUBLE;
    case 'L':
    case '[':
        return SJ_JAVA_REFERENCE;
    case 'V':
        return SJ_JAVA_VOID;
    case 'J':
        return SJ_JAVA_LONG;
    default:
        return SJ_JAVA_WHOLE;
    }
}

/* True if a value of this type can be recorded as the kind that a descriptor names. */
static bool fits_kind(char type, uint8_t descriptor)
{
    const uint32_t kind = sj_value_kind_of(descriptor);
    switch (java_type_of(type)) {
    case SJ_JAVA_FLOAT:
        return kind == SJ_VALUE_FLOAT;
    case SJ_JAVA_DOUBLE:
        return kind == SJ_VALUE_DOUBLE;
    case SJ_JAVA_REFERENCE:
        return kind == SJ_VALUE_STRING || kind == SJ_VALUE_OBJECT;
    case SJ_JAVA_VOID:
        return false;
    default:
        return !sj_value_is_real(kind) && kind != SJ_VALUE_STRING;
    }
}

/* Returns the kind of the recorded values of a type. For SJ_VALUE_OBJECT, the object's class
 * decides when it is recorded. */
static uint32_t own_kind(char type)
{
    switch (java_type_of(type)) {
    case SJ_JAVA_WHOLE:
        return SJ_VALUE_INT;
    case SJ_JAVA_BOOLEAN:
        return SJ_VALUE_BOOL;
    case SJ_JAVA_FLOAT:
        return SJ_VALUE_FLOAT;
    case SJ_JAVA_DOUBLE:
        return SJ_VALUE_DOUBLE;
    case SJ_JAVA_LONG:
        return SJ_VALUE_LONG;
    default:
        return SJ_VALUE_OBJECT;
    }
}

/* True if an item records or tests this value of the method. */
static bool has_item(const code_draft *draft, uint8_t descriptor)
{
    bool has = false;
    for (size_t i = 0; i < SJ_VALUES_PER_FUNCTION; i++) {
        has = has || draft->values->items[i].descriptor == descriptor;
    }
    return has;
}

static uint8_t load_opcode(char type)
{
    switch (type) {
    case 'J':
        return LLOAD;
    case 'F':
        return FLOAD;
    case 'D':
        return DLOAD;
    case 'L':
    case '[':
        return ALOAD;
    default:
        return ILOAD;
    }
}

static uint8_t return_opcode(char type)
{
    switch (type) {
    case 'J':
        return LRETURN;
    case 'F':
        return FRETURN;
    case 'D':
        return DRETURN;
    case 'L':
    case '[':
        return ARETURN;
    case 'V':
        return RETURN;
    default:
        return IRETURN;
    }
}

static void put_static_call(sj_be_output *output, uint16_t method)
{
    sj_be_put8(output, SJ_BYTECODE_INVOKESTATIC);
    sj_be_put16(output, method);
}

/* Converts the value on top of the stack to a long, the parameter type of the native methods. */
static void put_widening(const code_draft *draft, sj_be_output *output, char type)
{
    const uint16_t *conversions = draft->constants->conversions;
    if (type == 'F') {
        put_static_call(output, conversions[SJ_JAVA_FLOAT_TO_BITS]);
    } else if (type == 'D') {
        put_static_call(output, conversions[SJ_JAVA_DOUBLE_TO_BITS]);
    }
    if (type == 'F' || load_opcode(type) == ILOAD) {
        sj_be_put8(output, I2L);
    }
}

/* Converts the long on top of the stack to the type. A boolean becomes 0 or 1, because compiled
 * code relies on that. */
static void put_narrowing(const code_draft *draft, sj_be_output *output, char type)
{
    const uint16_t *conversions = draft->constants->conversions;
    if (type == 'F' || load_opcode(type) == ILOAD) {
        sj_be_put8(output, L2I);
    }
    switch (type) {
    case 'F':
        put_static_call(output, conversions[SJ_JAVA_BITS_TO_FLOAT]);
        break;
    case 'D':
        put_static_call(output, conversions[SJ_JAVA_BITS_TO_DOUBLE]);
        break;
    case 'Z':
        sj_be_put8(output, ICONST_1);
        sj_be_put8(output, IAND);
        break;
    case 'B':
        sj_be_put8(output, I2B);
        break;
    case 'C':
        sj_be_put8(output, I2C);
        break;
    case 'S':
        sj_be_put8(output, I2S);
        break;
    default:
        break;
    }
}

/* Calls a native method with `what` and the function id. */
static void put_call(const code_draft *draft, sj_be_output *output, sj_java_native native,
                     uint32_t what)
{
    sj_be_put8(output, SJ_BYTECODE_SIPUSH);
    sj_be_put16(output, (uint16_t)what);
    if (draft->function <= SHORT_ID_MAX) {
        sj_be_put8(output, SJ_BYTECODE_SIPUSH);
        sj_be_put16(output, (uint16_t)draft->function);
    } else {
        sj_be_put8(output, SJ_BYTECODE_LDC_W);
        sj_be_put16(output, draft->constants->id);
    }
    put_static_call(output, draft->constants->natives[native]);
}

/* Returns the argument `what` of a native method: the descriptor, the type, and whether it is the
 * first value of the entry or exit. */
static uint32_t what_of(char type, uint8_t descriptor, bool is_first)
{
    return descriptor | (is_first ? (uint32_t)SJ_JAVA_VALUE_FIRST : 0) |
           (uint32_t)java_type_of(type) << SJ_JAVA_VALUE_TYPE_SHIFT;
}

/* Records the value on top of the stack by its own type, and removes it. */
static void put_own_record(const code_draft *draft, sj_be_output *output, char type,
                           uint8_t descriptor, bool is_first)
{
    if (java_type_of(type) != SJ_JAVA_REFERENCE) {
        put_widening(draft, output, type);
        put_call(draft, output, SJ_JAVA_RECORD_NUMBER, what_of(type, descriptor, is_first));
        return;
    }
    put_call(draft, output, SJ_JAVA_RECORD_OBJECT,
             what_of(type, descriptor, is_first) | (uint32_t)SJ_JAVA_VALUE_OWN);
}

/* True if the value at a position is recorded by its own type. Writes its descriptor. */
static bool is_own(const code_draft *draft, uint32_t position, uint8_t *descriptor)
{
    const char type = draft->places[position].type;
    *descriptor = sj_value_descriptor(position, own_kind(type));
    return (draft->values->own >> position & 1) != 0 && type != '\0' && type != 'V' &&
           !has_item(draft, *descriptor);
}

/* Records the arguments that no item records, by their own types. */
static void put_own_arguments(const code_draft *draft)
{
    sj_be_output *output = &draft->code->entry;
    uint8_t descriptor;
    for (uint32_t number = 1; number <= SJ_VALUE_LAST_POSITION; number++) {
        const typed_place place = draft->places[number];
        if (is_own(draft, number, &descriptor)) {
            const bool is_first = output->size == 0;
            sj_be_put8(output, load_opcode(place.type));
            sj_be_put8(output, place.slot);
            put_own_record(draft, output, place.type, descriptor, is_first);
        }
    }
}

/* Records the result by its own type, unless an item records it. */
static void put_own_result(const code_draft *draft, bool is_first)
{
    sj_be_output *output = &draft->code->exit;
    uint8_t descriptor;
    if (is_own(draft, SJ_VALUE_RESULT, &descriptor)) {
        const char type = draft->places[0].type;
        sj_be_put8(output, is_wide(type) ? DUP2 : DUP);
        put_own_record(draft, output, type, descriptor, is_first);
    }
}

/* Records the value on top of the stack and removes it. */
static void put_record(const code_draft *draft, sj_be_output *output, char type, uint8_t descriptor,
                       bool is_first)
{
    const bool is_object = java_type_of(type) == SJ_JAVA_REFERENCE;
    if (!is_object) {
        put_widening(draft, output, type);
    }
    put_call(draft, output, is_object ? SJ_JAVA_RECORD_OBJECT : SJ_JAVA_RECORD_NUMBER,
             what_of(type, descriptor, is_first));
}

/* Records an argument. If the parameter does not exist, the rule that changes calls without testing
 * it is still judged. */
static void put_argument(const code_draft *draft, const sj_java_value *value)
{
    sj_be_output *output = &draft->code->entry;
    const typed_place place = value->parameter <= SJ_VALUE_LAST_POSITION
                                  ? draft->places[value->parameter]
                                  : (typed_place){0};
    if (place.type == '\0') {
        if (!value->has_condition && draft->values->may_leave) {
            put_call(draft, output, SJ_JAVA_JUDGE,
                     what_of('V', value->descriptor, output->size == 0));
        }
    } else if (fits_kind(place.type, value->descriptor)) {
        const bool is_first = output->size == 0;
        sj_be_put8(output, load_opcode(place.type));
        sj_be_put8(output, place.slot);
        put_record(draft, output, place.type, value->descriptor, is_first);
    }
}

/* Writes code that returns at once, or throws, if a rule decides so. Not for constructors, whose
 * object would be uninitialised. */
static void put_decision(const code_draft *draft)
{
    sj_be_output *output = &draft->code->entry;
    const char type = draft->places[0].type;
    const sj_java_type result = java_type_of(type);
    put_call(draft, output, SJ_JAVA_DECIDE, what_of(type, 0, false));
    const size_t jump_at = output->size;
    sj_be_put8(output, IFEQ);
    sj_be_put16(output, 0);
    if (result == SJ_JAVA_REFERENCE) {
        sj_be_put8(output, ACONST_NULL);
    } else if (result != SJ_JAVA_VOID) {
        put_call(draft, output, SJ_JAVA_RESULT, 0);
        put_narrowing(draft, output, type);
    }
    sj_be_put8(output, return_opcode(type));
    sj_be_set16(output, jump_at + 1, (uint16_t)(output->size - jump_at));
    draft->code->label = (uint16_t)output->size;
}

/* Replaces the number on top of the stack by the value that a rule sets. */
static void put_setting(const code_draft *draft, sj_be_output *output, char type, uint32_t position)
{
    put_widening(draft, output, type);
    sj_be_put8(output, DUP2);
    put_call(draft, output, SJ_JAVA_SET, what_of(type, (uint8_t)position, false));
    sj_be_put8(output, LXOR);
    put_narrowing(draft, output, type);
}

static bool is_number(char type)
{
    const sj_java_type is = java_type_of(type);
    return type != '\0' && is != SJ_JAVA_REFERENCE && is != SJ_JAVA_VOID;
}

/* Records CPU time and allocated bytes. This code is nearest to the method's own code, so that the
 * cost includes little of the time for recording values. */
static void put_cost(const code_draft *draft, sj_be_output *output, uint32_t what)
{
    if (draft->values->costs) {
        put_call(draft, output, SJ_JAVA_COST, what);
    }
}

static void put_handler(const code_draft *draft)
{
    sj_be_output *output = &draft->code->handler;
    put_cost(draft, output, 0);
    if (draft->values->items[0].descriptor != 0 || draft->values->own != 0) {
        sj_be_put8(output, DUP);
        put_call(draft, output, SJ_JAVA_RECORD_THROWN,
                 sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_THROWN));
    }
}

static void put_entry(const code_draft *draft)
{
    sj_be_output *output = &draft->code->entry;
    for (size_t i = 0; i < SJ_VALUES_PER_FUNCTION; i++) {
        const sj_java_value *value = &draft->values->items[i];
        if (value->descriptor != 0 && value->parameter != PARAMETER_NONE) {
            put_argument(draft, value);
        }
    }
    if (output->size == 0) {
        put_own_arguments(draft);
        put_cost(draft, output, SJ_JAVA_AT_ENTRY);
        return; /* No value of an item is recorded, so no rule can decide. */
    }
    put_own_arguments(draft);
    if (draft->values->may_leave && !sj_class_text_is(draft->method->name, "<init>")) {
        put_decision(draft);
    }
    for (uint32_t number = 1; number <= SJ_VALUE_LAST_POSITION; number++) {
        const typed_place place = draft->places[number];
        if ((draft->values->sets >> number & 1) != 0 && is_number(place.type)) {
            sj_be_put8(output, load_opcode(place.type));
            sj_be_put8(output, place.slot);
            put_setting(draft, output, place.type, number);
            sj_be_put8(output, (uint8_t)(load_opcode(place.type) + LOAD_TO_STORE));
            sj_be_put8(output, place.slot);
        }
    }
    put_cost(draft, output, SJ_JAVA_AT_ENTRY);
}

static void put_exit(const code_draft *draft)
{
    sj_be_output *output = &draft->code->exit;
    const char type = draft->places[0].type;
    put_cost(draft, output, 0);
    const size_t cost_bytes = output->size;
    for (size_t i = 0; i < SJ_VALUES_PER_FUNCTION; i++) {
        const sj_java_value *value = &draft->values->items[i];
        if (value->descriptor != 0 && value->parameter == PARAMETER_NONE &&
            fits_kind(type, value->descriptor)) {
            const bool is_first = output->size == cost_bytes;
            sj_be_put8(output, is_wide(type) ? DUP2 : DUP);
            put_record(draft, output, type, value->descriptor, is_first);
        }
    }
    const bool is_judged = output->size > cost_bytes;
    put_own_result(draft, !is_judged);
    if (is_judged && (draft->values->sets & 1) != 0 && is_number(type)) {
        put_setting(draft, output, type, 0);
    }
}

sj_status sj_value_code_make(const sj_class_method *method, uint32_t function,
                             const sj_java_values *values, const sj_value_constants *constants,
                             sj_value_code *code)
{
    code_draft draft = {.method = method,
                        .values = values,
                        .constants = constants,
                        .function = function,
                        .code = code};
    *code = (sj_value_code){0};
    if (!sj_java_values_wanted(values)) {
        return SJ_OK;
    }
    SJ_TRY(read_places(&draft));
    put_entry(&draft);
    put_exit(&draft);
    put_handler(&draft);
    return code->entry.bad || code->exit.bad || code->handler.bad ? SJ_ENOMEM : SJ_OK;
}

void sj_value_code_deinit(sj_value_code *code)
{
    free(code->entry.data);
    free(code->exit.data);
    free(code->handler.data);
    *code = (sj_value_code){0};
}
