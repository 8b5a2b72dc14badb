/* Design notes
 *
 * Values of methods that are hooked in place lie in the registers of the machine's calling
 * convention, in which Mono passes numbers and references. The signature says which. The
 * registers of a structure and of the parameters after it are not known. No register is known if
 * the result is a structure. Values without a known register are not recorded.
 *
 * The list `placed` holds all code with values. Probes know the index of their code in the list, so
 * the list is searched only when stubs are made. If all values of a method are plain numbers and no
 * rule concerns them, the probe itself records them. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/values.h"

enum { PLACED_MAX = 8192, WHOLE_REGISTERS = 6 };

/* A value and its place among saved registers. */
typedef struct placed_value {
    sj_mono_ingredient what;
    uint8_t word; /* index in sj_value_registers, counted in words */
} placed_value;

typedef struct placed_values {
    uint64_t address;
    void *method;
    uint32_t function;
    bool measures_cpu;
    uint32_t count;
    placed_value values[SJ_VALUES_PER_FUNCTION];
} placed_values;

static placed_values placed[PLACED_MAX];
static _Atomic uint32_t placed_count;

static bool has_values(const placed_values *code, bool at_exit)
{
    for (uint32_t i = 0; i < code->count; i++) {
        if (code->values[i].what.is_result == at_exit) {
            return true;
        }
    }
    return code->measures_cpu;
}

/* Returns 1 + the index in `placed` of the code at an address. Returns 0 if the code has no values
 * at its entry, or with `at_exit` at its exits. */
static uint32_t find_placed(uint64_t address, bool at_exit)
{
    for (uint32_t i = atomic_load(&placed_count); i-- > 0;) {
        if (placed[i].address == address) {
            return has_values(&placed[i], at_exit) ? i + 1 : 0;
        }
    }
    return 0;
}

typedef enum register_class { IN_WHOLE, IN_REAL, ELSEWHERE } register_class;

static register_class class_of(void *type)
{
    if (sj_mono_runtime.type_is_byref(type) != 0) {
        return IN_WHOLE;
    }
    void *underlying = sj_mono_runtime.type_underlying(type);
    switch (sj_mono_runtime.type_get_type(underlying)) {
    case TYPE_R4:
    case TYPE_R8:
        return IN_REAL;
    case TYPE_BOOLEAN:
    case TYPE_CHAR:
    case TYPE_I1:
    case TYPE_U1:
    case TYPE_I2:
    case TYPE_U2:
    case TYPE_I4:
    case TYPE_U4:
    case TYPE_I8:
    case TYPE_U8:
    case TYPE_I:
    case TYPE_U:
    case TYPE_STRING:
    case TYPE_POINTER:
    case TYPE_CLASS:
    case TYPE_ARRAY:
    case TYPE_OBJECT:
    case TYPE_VECTOR:
    case TYPE_PARAMETER:
    case TYPE_METHOD_PARAMETER:
        return IN_WHOLE;
    case TYPE_GENERIC:
        return sj_mono_runtime.class_is_structure(sj_mono_runtime.class_of_type(underlying)) != 0
                   ? ELSEWHERE
                   : IN_WHOLE;
    default:
        return ELSEWHERE;
    }
}

static void *find_result(void *type, sj_value_registers *registers)
{
    switch (class_of(type)) {
    case IN_WHOLE:
        return &registers->result;
    case IN_REAL:
        return &registers->real[0];
    default:
        return NULL;
    }
}

/* True if the result does not move the arguments: a structure may need a register before them. */
static bool returns_plainly(void *signature)
{
    void *type = sj_mono_runtime.signature_return(signature);
    return sj_mono_runtime.type_get_type(type) == TYPE_VOID || class_of(type) != ELSEWHERE;
}

/* Returns the address of a value in `registers`, and writes the value's type. Returns NULL if no
 * register is known to hold the value. */
static void *find_place(void *signature, uint32_t position, sj_value_registers *registers,
                        void **type)
{
    uint32_t whole = sj_mono_runtime.signature_is_instance(signature) != 0 ? 1 : 0;
    uint32_t real = 0;
    void *iterator = NULL;
    if (position == SJ_VALUE_RESULT) {
        *type = sj_mono_runtime.signature_return(signature);
        return find_result(*type, registers);
    }
    for (uint32_t i = 1; returns_plainly(signature); i++) {
        *type = sj_mono_runtime.signature_params(signature, &iterator);
        const register_class in = *type != NULL ? class_of(*type) : ELSEWHERE;
        if (in == ELSEWHERE) {
            return NULL;
        }
        if (i == position) {
            const bool fits = in == IN_REAL ? real < SJ_VALUE_REGISTERS : whole < WHOLE_REGISTERS;
            return !fits           ? NULL
                   : in == IN_REAL ? (void *)&registers->real[real]
                                   : (void *)&registers->whole[whole];
        }
        whole += in == IN_WHOLE ? 1 : 0;
        real += in == IN_REAL ? 1 : 0;
    }
    return NULL;
}

bool sj_mono_are_values_in_registers(void *method, const sj_mono_selection *selection)
{
    sj_value_registers none;
    void *signature = sj_mono_runtime.method_signature(method);
    bool is_there = signature != NULL;
    uint8_t listed[SJ_VALUES_PER_FUNCTION];
    const uint32_t count = is_there && selection->in_place
                               ? sj_mono_list_values(signature, selection->descriptors, listed)
                               : 0;
    for (uint32_t i = 0; i < count && is_there; i++) {
        void *type = NULL;
        is_there = find_place(signature, sj_value_position(listed[i]), &none, &type) != NULL;
    }
    return is_there;
}

/* Extends a number of less than 32 bits to 32 bits, as compiled code expects it in a register. */
static void extend(void *type, uint64_t *word)
{
    void *underlying = sj_mono_runtime.type_underlying(type);
    const int32_t element = sj_mono_runtime.type_get_type(underlying);
    if (sj_mono_runtime.type_is_byref(type) == 0 && element >= TYPE_BOOLEAN && element <= TYPE_U2) {
        *word = (uint32_t)sj_mono_read_number(element, word);
    }
}

static sj_values_outcome change(const placed_values *code, uint64_t stack, const sj_due_change *due,
                                sj_value_registers *registers)
{
    void *type = NULL;
    if (due->action == SJ_CHANGE_NOTHING) {
        sj_recorder_change(code->function, stack, due);
        return SJ_VALUES_KEPT;
    }
    void *signature = sj_mono_runtime.method_signature(code->method);
    void *place = signature != NULL
                      ? find_place(signature, sj_value_position(due->target), registers, &type)
                      : NULL;
    const bool sets_nothing = due->action == SJ_CHANGE_RETURN && type != NULL &&
                              sj_mono_runtime.type_get_type(type) == TYPE_VOID;
    if (!sets_nothing && (place == NULL || !sj_mono_set_value(due, type, place))) {
        return SJ_VALUES_KEPT;
    }
    if (!sets_nothing) {
        extend(type, place);
    }
    if (due->action == SJ_CHANGE_RETURN) {
        sj_recorder_skip(code->function, stack, due);
        return SJ_VALUES_RETURN;
    }
    sj_recorder_change(code->function, stack, due);
    return SJ_VALUES_CHANGED;
}

/* Describes a plain number for a probe. */
static sj_plain_value describe_plain(const placed_value *value)
{
    sj_plain_value plain = {.descriptor = value->what.descriptor, .word = value->word, .bytes = 8};
    switch (value->what.element) {
    case TYPE_I1:
        plain.is_signed = 1;
        plain.bytes = 1;
        break;
    case TYPE_BOOLEAN:
    case TYPE_U1:
        plain.bytes = 1;
        break;
    case TYPE_I2:
        plain.is_signed = 1;
        plain.bytes = 2;
        break;
    case TYPE_CHAR:
    case TYPE_U2:
        plain.bytes = 2;
        break;
    case TYPE_I4:
        plain.is_signed = 1;
        plain.bytes = 4;
        break;
    case TYPE_U4:
    case TYPE_R4:
        plain.bytes = 4;
        break;
    default:
        break;
    }
    return plain;
}

static uint32_t list_plain(uint32_t number, bool at_exit,
                           sj_plain_value values[SJ_VALUES_PER_FUNCTION])
{
    const placed_values *code = &placed[number - 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->count && !code->measures_cpu; i++) {
        const placed_value *value = &code->values[i];
        if (value->what.is_result != at_exit) {
            continue;
        }
        if (!value->what.is_plain || sj_recorder_changes != NULL) {
            return 0;
        }
        values[count++] = describe_plain(value);
    }
    return count;
}

/* True if recording the value calls no function of the runtime, which may use vector registers. */
static bool keeps_vector_registers(const sj_mono_ingredient *value)
{
    return value->is_plain || (value->is_text && sj_mono_reads_strings_directly());
}

static sj_values_outcome record_placed(uint32_t number, bool at_exit, uint64_t stack,
                                       sj_value_registers *registers)
{
    const placed_values *code = &placed[number - 1];
    sj_values_outcome outcome = SJ_VALUES_KEPT;
    const uint32_t count = sj_recorder_is_armed() ? code->count : 0;
    if (code->measures_cpu && sj_recorder_is_armed()) {
        sj_recorder_cpu(code->function, stack, !at_exit);
    }
    for (uint32_t i = 0; i < count && outcome != SJ_VALUES_RETURN; i++) {
        const placed_value *value = &code->values[i];
        sj_due_change due;
        if (value->what.is_result != at_exit) {
            continue;
        }
        sj_values_outcome changed =
            keeps_vector_registers(&value->what) ? SJ_VALUES_KEPT : SJ_VALUES_CHANGED;
        if (sj_mono_record_ingredient(&value->what, code->function, stack,
                                      (uint64_t *)registers + value->word, &due)) {
            const sj_values_outcome done = change(code, stack, &due, registers);
            changed = done > SJ_VALUES_CHANGED ? done : SJ_VALUES_CHANGED;
        }
        outcome = changed > outcome ? changed : outcome;
    }
    return outcome;
}

static const sj_generated_values generated_values = {
    .find = find_placed, .list_plain = list_plain, .record = record_placed};

/* Adds the values of a method that lie in registers to `code`. Notes there if the CPU time of calls
 * is measured. */
static void place_each(void *method, uint64_t descriptors, placed_values *code)
{
    sj_value_registers none;
    void *signature = sj_mono_runtime.method_signature(method);
    uint8_t listed[SJ_VALUES_PER_FUNCTION];
    const uint32_t count =
        signature != NULL ? sj_mono_list_values(signature, descriptors, listed) : 0;
    code->measures_cpu = sj_mono_measures_cpu(descriptors);
    for (uint32_t i = 0; i < count; i++) {
        void *type = NULL;
        placed_value *value = &code->values[code->count];
        const uint64_t *place = find_place(signature, sj_value_position(listed[i]), &none, &type);
        if (place != NULL && sj_mono_find_value(signature, listed[i], &value->what)) {
            value->word = (uint8_t)(place - (uint64_t *)&none);
            code->count++;
        }
    }
}

void sj_mono_place_values(void *method, const sj_mono_selection *selection, uint64_t address)
{
    placed_values code = {.address = address, .method = method, .function = selection->function};
    if (selection->descriptors == 0) {
        return;
    }
    place_each(method, selection->descriptors, &code);
    if (!sj_owner_lock_acquire(&sj_mono_lock)) {
        return;
    }
    const uint32_t count = atomic_load(&placed_count);
    if (count < PLACED_MAX) {
        placed[count] = code;
        sj_recorder_generated_values = &generated_values;
        atomic_store(&placed_count, count + 1);
    } else {
        atomic_fetch_add(&sj_mono_refused, 1);
    }
    sj_owner_lock_free(&sj_mono_lock);
}
