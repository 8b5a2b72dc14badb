/* Design notes
 *
 * Values of methods that are hooked in place lie in the registers of the machine's calling
 * convention, in which Mono passes numbers and references; which ones follows from the signature.
 * Behind a structure among the parameters, or a result that is one, it is not followed: such values
 * are not there. A list of all such code, searched only when stubs are made; probes have a number
 * of it. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/values.h"

enum { PLACED_MAX = 8192, WHOLE_REGISTERS = 6, TYPE_VOID = 1 };

typedef struct placed_values {
    uint64_t address;
    void *method;
    uint32_t function;
    uint32_t descriptors;
} placed_values;

static placed_values placed[PLACED_MAX];
static _Atomic uint32_t placed_count;

static bool has_values(uint32_t descriptors, bool at_exit)
{
    for (; descriptors != 0; descriptors >>= 8) {
        const uint8_t descriptor = (uint8_t)descriptors;
        if (descriptor != 0 && (sj_value_position(descriptor) == SJ_VALUE_RESULT) == at_exit) {
            return true;
        }
    }
    return false;
}

static uint32_t find_placed(uint64_t address, bool at_exit)
{
    for (uint32_t i = atomic_load(&placed_count); i-- > 0;) {
        if (placed[i].address == address) {
            return has_values(placed[i].descriptors, at_exit) ? i + 1 : 0;
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

/* A result that is a structure may take a register in front of the arguments. */
static bool returns_plainly(void *signature)
{
    void *type = sj_mono_runtime.signature_return(signature);
    return sj_mono_runtime.type_get_type(type) == TYPE_VOID || class_of(type) != ELSEWHERE;
}

/* Where a value lies, and its type; NULL: elsewhere, or there is none. */
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

bool sj_mono_can_place(void *method, const sj_mono_wish *wish)
{
    sj_value_registers none;
    void *signature = sj_mono_runtime.method_signature(method);
    bool is_there = signature != NULL;
    for (uint32_t left = wish->in_place ? wish->descriptors : 0; left != 0 && is_there;
         left >>= 8) {
        void *type = NULL;
        is_there = (uint8_t)left == 0 ||
                   find_place(signature, sj_value_position((uint8_t)left), &none, &type) != NULL;
    }
    return is_there;
}

static sj_values_outcome change(const sj_mono_value *value, void *signature,
                                const sj_due_change *due, sj_value_registers *registers)
{
    void *type = NULL;
    if (due->action == SJ_CHANGE_NOTHING) {
        sj_recorder_change(value->function, value->stack, due);
        return SJ_VALUES_KEPT;
    }
    void *place = find_place(signature, sj_value_position(due->target), registers, &type);
    const bool sets_nothing =
        due->action == SJ_CHANGE_RETURN && sj_mono_runtime.type_get_type(type) == TYPE_VOID;
    if (!sets_nothing && (place == NULL || !sj_mono_set_value(due, type, place))) {
        return SJ_VALUES_KEPT;
    }
    if (due->action == SJ_CHANGE_RETURN) {
        sj_recorder_skip(value->function, value->stack, due);
        return SJ_VALUES_RETURN;
    }
    sj_recorder_change(value->function, value->stack, due);
    return SJ_VALUES_CHANGED;
}

static sj_values_outcome record_placed(uint32_t number, bool at_exit, uint64_t stack,
                                       sj_value_registers *registers)
{
    const placed_values *code = &placed[number - 1];
    void *signature = sj_mono_runtime.method_signature(code->method);
    sj_values_outcome outcome = SJ_VALUES_KEPT;
    uint32_t descriptors = signature != NULL && sj_recorder_is_armed() ? code->descriptors : 0;
    for (; descriptors != 0 && outcome != SJ_VALUES_RETURN; descriptors >>= 8) {
        sj_mono_value value = {
            .function = code->function, .stack = stack, .descriptor = (uint8_t)descriptors};
        const uint32_t position = sj_value_position(value.descriptor);
        sj_due_change due;
        if (value.descriptor == 0 || (position == SJ_VALUE_RESULT) != at_exit) {
            continue;
        }
        value.place = find_place(signature, position, registers, &value.type);
        if (value.place != NULL) {
            sj_mono_learn_type(&value);
        }
        if (value.place != NULL && sj_mono_record_value(&value, &due)) {
            const sj_values_outcome changed = change(&value, signature, &due, registers);
            outcome = changed > outcome ? changed : outcome;
        }
    }
    return outcome;
}

static const sj_generated_values generated_values = {.find = find_placed, .record = record_placed};

void sj_mono_place_values(void *method, const sj_mono_wish *wish, uint64_t address)
{
    if (wish->descriptors == 0 || !sj_owner_lock_take(&sj_mono_lock)) {
        return;
    }
    const uint32_t count = atomic_load(&placed_count);
    if (count < PLACED_MAX) {
        placed[count] = (placed_values){.address = address,
                                        .method = method,
                                        .function = wish->function,
                                        .descriptors = wish->descriptors};
        sj_recorder_generated_values = &generated_values;
        atomic_store(&placed_count, count + 1);
    } else {
        atomic_fetch_add(&sj_mono_refused, 1);
    }
    sj_owner_lock_free(&sj_mono_lock);
}
