/* Design notes
 *
 * A recipe says how the values of a method are recorded. The first thread that records values of a
 * method creates it; it never changes afterwards. Two threads may create the same recipe twice. If
 * the runtime reuses the address for another method, that method has another function id, so it
 * gets another recipe. */
#include "agent/inproc/mono/internal.h"

enum { RECIPES_MAX = 16384 };

static sj_mono_recipe recipes[RECIPES_MAX];
static _Atomic uint32_t recipe_count;
/* Selected descriptors of the method at the same index of sj_mono_methods. */
static _Atomic uint64_t wanted_descriptors[SJ_MONO_METHODS_CAPACITY];
/* 1 + index of the recipe of the method at the same index of sj_mono_methods; 0 if it has none. */
static _Atomic uint32_t recipe_numbers[SJ_MONO_METHODS_CAPACITY];

void sj_mono_set_wanted_values(const sj_mono_method *entry, uint64_t descriptors)
{
    atomic_store(&wanted_descriptors[entry - sj_mono_methods], descriptors);
}

bool sj_mono_has_values(const sj_mono_method *entry)
{
    return atomic_load(&wanted_descriptors[entry - sj_mono_methods]) != 0;
}

/* True if the value is a number of the kind that the descriptor names. */
static bool is_plain(uint8_t descriptor, const sj_mono_value *value)
{
    const uint32_t kind = sj_value_kind_of(descriptor);
    const bool is_real = value->element == TYPE_R4 || value->element == TYPE_R8;
    return !value->is_byref && kind != SJ_VALUE_OBJECT && kind != SJ_VALUE_STRING &&
           ((value->element >= TYPE_BOOLEAN && value->element <= TYPE_R8) ||
            value->element == TYPE_I || value->element == TYPE_U) &&
           is_real == sj_value_is_real(kind) &&
           !(is_real && (value->element == TYPE_R4) != (kind == SJ_VALUE_FLOAT));
}

bool sj_mono_find_value(void *signature, uint8_t descriptor, sj_mono_ingredient *value)
{
    const uint32_t position = sj_value_position(descriptor);
    const bool is_result = position == SJ_VALUE_RESULT;
    const uint32_t first = sj_mono_runtime.signature_is_instance(signature) != 0 ? 1 : 0;
    sj_mono_value known = {.type = is_result ? sj_mono_runtime.signature_return(signature)
                                             : sj_mono_parameter_type(signature, position)};
    if (known.type == NULL) {
        return false;
    }
    sj_mono_find_type(&known);
    *value = (sj_mono_ingredient){.type = known.type,
                                  .descriptor = descriptor,
                                  .element = known.element,
                                  .argument = (uint8_t)(is_result ? 0 : position - 1 + first),
                                  .is_byref = known.is_byref,
                                  .is_result = is_result,
                                  .is_plain = is_plain(descriptor, &known),
                                  .is_text = !known.is_byref && known.element == TYPE_STRING &&
                                             sj_value_kind_of(descriptor) == SJ_VALUE_STRING};
    return true;
}

/* Returns the kind of a value that is recorded by its own type. Constants of an enum have names, so
 * they are recorded as texts, like all other structures. */
static uint32_t own_kind(void *type)
{
    switch (sj_mono_runtime.type_get_type(type)) {
    case TYPE_BOOLEAN:
        return SJ_VALUE_BOOL;
    case TYPE_I1:
    case TYPE_I2:
    case TYPE_I4:
        return SJ_VALUE_INT;
    case TYPE_U1:
    case TYPE_U2:
    case TYPE_U4:
        return SJ_VALUE_UINT;
    case TYPE_I8:
    case TYPE_I:
        return SJ_VALUE_LONG;
    case TYPE_U8:
    case TYPE_U:
        return SJ_VALUE_ULONG;
    case TYPE_R4:
        return SJ_VALUE_FLOAT;
    case TYPE_R8:
        return SJ_VALUE_DOUBLE;
    case TYPE_STRING:
        return SJ_VALUE_STRING;
    default:
        return SJ_VALUE_OBJECT;
    }
}

static bool is_listed(uint8_t descriptor, const uint8_t *listed, uint32_t count)
{
    bool is = false;
    for (uint32_t i = 0; i < count; i++) {
        is = is || listed[i] == descriptor;
    }
    return is;
}

/* Appends descriptors of all arguments and the result, by their own types. */
static uint32_t add_own(void *signature, uint8_t descriptors[SJ_VALUES_PER_FUNCTION],
                        uint32_t count)
{
    void *iterator = NULL;
    void *type = sj_mono_runtime.signature_return(signature);
    for (uint32_t position = 0; type != NULL && position <= SJ_VALUE_LAST_POSITION; position++) {
        const uint8_t descriptor = sj_value_descriptor(position, own_kind(type));
        const bool is_void = sj_mono_runtime.type_get_type(type) == TYPE_VOID;
        if (!is_void && count < SJ_VALUES_PER_FUNCTION &&
            !is_listed(descriptor, descriptors, count)) {
            descriptors[count++] = descriptor;
        }
        type = sj_mono_runtime.signature_params(signature, &iterator);
    }
    return count;
}

uint32_t sj_mono_list_values(void *signature, uint64_t selected,
                             uint8_t descriptors[SJ_VALUES_PER_FUNCTION])
{
    uint32_t count = 0;
    bool has_own = false;
    for (; selected != 0; selected >>= 8) {
        const uint8_t descriptor = (uint8_t)selected;
        has_own = has_own || descriptor == SJ_PLACE_OWN_VALUES;
        if (sj_value_kind_of(descriptor) != 0) {
            descriptors[count++] = descriptor;
        }
    }
    return has_own ? add_own(signature, descriptors, count) : count;
}

bool sj_mono_measures_cpu(uint64_t selected)
{
    while (selected != 0 && (uint8_t)selected != SJ_PLACE_CPU_ENTRY) {
        selected >>= 8;
    }
    return selected != 0;
}

static const sj_mono_recipe *new_recipe(void *method, uint32_t method_index, uint32_t function,
                                        uint64_t descriptors)
{
    void *signature = sj_mono_runtime.method_signature(method);
    if (signature == NULL) {
        return NULL;
    }
    const uint32_t index = atomic_fetch_add(&recipe_count, 1);
    if (index >= RECIPES_MAX) {
        atomic_store(&recipe_count, RECIPES_MAX);
        atomic_fetch_add(&sj_mono_refused, 1);
        return NULL;
    }
    sj_mono_recipe *recipe = &recipes[index];
    recipe->function = function;
    recipe->descriptors = descriptors;
    recipe->measures_cpu = sj_mono_measures_cpu(descriptors);
    uint8_t listed[SJ_VALUES_PER_FUNCTION];
    const uint32_t count = sj_mono_list_values(signature, descriptors, listed);
    for (uint32_t i = 0; i < count; i++) {
        if (sj_mono_find_value(signature, listed[i], &recipe->values[recipe->count])) {
            recipe->count++;
        }
    }
    /* Pairs with the acquire load in sj_mono_find_recipe. */
    atomic_store_explicit(&recipe_numbers[method_index], index + 1, memory_order_release);
    return recipe;
}

const sj_mono_recipe *sj_mono_find_recipe(void *method, const sj_mono_method *entry)
{
    const uint32_t method_index = (uint32_t)(entry - sj_mono_methods);
    const uint64_t descriptors =
        atomic_load_explicit(&wanted_descriptors[method_index], memory_order_relaxed);
    const uint32_t function = atomic_load_explicit(&entry->function, memory_order_relaxed);
    if (descriptors == 0 || function == 0) {
        return NULL;
    }
    const uint32_t known =
        atomic_load_explicit(&recipe_numbers[method_index], memory_order_acquire);
    if (known != 0 && recipes[known - 1].function == function &&
        recipes[known - 1].descriptors == descriptors) {
        return &recipes[known - 1];
    }
    return new_recipe(method, method_index, function, descriptors);
}
