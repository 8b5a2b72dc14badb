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
    for (; descriptors != 0; descriptors >>= 8) {
        if ((uint8_t)descriptors == SJ_PLACE_CPU_ENTRY) {
            recipe->measures_cpu = true;
        } else if ((uint8_t)descriptors != 0 &&
                   sj_mono_find_value(signature, (uint8_t)descriptors,
                                      &recipe->values[recipe->count])) {
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
