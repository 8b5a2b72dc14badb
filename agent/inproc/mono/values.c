/* Design notes
 *
 * Mono's call context begins with a machine context of unknown size, which compiled code leaves
 * zeroed. Then follow the MonoMethod*, the address of the result, and the address of the list of
 * the arguments' addresses. So the agent searches for the MonoMethod*. It reads values in the
 * argument's variable, or in Mono's copy of the result. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/record.h"
#include "agent/inproc/recorder/values.h"
#include "agent/inproc/recorder/write.h"

#include <string.h>

enum { CONTEXT_WORDS = 256 };

/* Returns the words after the MonoMethod* in a context, or NULL if it is not found. Their offset is
 * the same in all contexts of a runtime. */
static const uint64_t *find_words(const uint64_t *context, const void *method)
{
    static _Atomic uint32_t known_index;
    const uint32_t known = atomic_load_explicit(&known_index, memory_order_relaxed);
    if (context[known] == (uint64_t)(uintptr_t)method) {
        return context + known + 1;
    }
    for (uint32_t i = 0; i < CONTEXT_WORDS; i++) {
        if (context[i] == (uint64_t)(uintptr_t)method) {
            atomic_store_explicit(&known_index, i, memory_order_relaxed);
            return context + i + 1;
        }
    }
    return NULL;
}

static void record_text(const sj_mono_value *value, const sj_value_text *text)
{
    sj_recorder_text(value->function, value->stack, value->descriptor, text->bytes, text->used,
                     text->note);
}

void sj_mono_find_type(sj_mono_value *value)
{
    value->element =
        (uint8_t)sj_mono_runtime.type_get_type(sj_mono_runtime.type_underlying(value->type));
    value->is_byref = sj_mono_runtime.type_is_byref(value->type) != 0;
}

/* Records the text of a string. Does not clear the buffer, because most of it is not used. */
static void record_string(uint32_t function, uint64_t stack, uint8_t descriptor, void *string)
{
    sj_value_text text;
    text.used = 0;
    text.note = SJ_VALUE_WHOLE;
    sj_mono_describe_string(&text, string);
    sj_recorder_text(function, stack, descriptor, text.bytes, text.used, text.note);
}

bool sj_mono_record_value(const sj_mono_value *value, sj_due_change *due)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    const void *place = value->place;
    const int32_t element = value->element;
    const bool is_real = element == TYPE_R4 || element == TYPE_R8;
    if (value->is_byref) {
        place = *(const void *const *)place; /* Address of the caller's variable. */
    }
    if (place != NULL && kind == SJ_VALUE_OBJECT) {
        sj_value_text text = {0};
        sj_mono_describe(&text, value->type, place);
        record_text(value, &text);
        return false;
    }
    if (place == NULL || element == TYPE_VALUE) {
        return false;
    }
    if (element == TYPE_STRING) {
        if (kind == SJ_VALUE_STRING) {
            record_string(value->function, value->stack, value->descriptor, *(void *const *)place);
        }
        return false;
    }
    if (kind == SJ_VALUE_STRING || is_real != sj_value_is_real(kind) ||
        (is_real && (element == TYPE_R4) != (kind == SJ_VALUE_FLOAT))) {
        return false; /* The descriptor names another type than the value has. */
    }
    const uint64_t bits = sj_value_narrow(kind, sj_mono_read_number(element, place));
    sj_recorder_value(value->function, value->stack, value->descriptor, bits);
    return sj_recorder_changes != NULL &&
           sj_recorder_judge(value->function, value->descriptor, bits, NULL, due);
}

bool sj_mono_record_ingredient(const sj_mono_ingredient *wanted, uint32_t function, uint64_t stack,
                               void *place, sj_due_change *due)
{
    if (wanted->is_text) {
        record_string(function, stack, wanted->descriptor, *(void *const *)place);
        return false;
    }
    if (!wanted->is_plain) {
        const sj_mono_value value = {.function = function,
                                     .stack = stack,
                                     .descriptor = wanted->descriptor,
                                     .element = wanted->element,
                                     .is_byref = wanted->is_byref,
                                     .type = wanted->type,
                                     .place = place};
        return sj_mono_record_value(&value, due);
    }
    const uint64_t bits = sj_mono_record_plain(wanted, function, stack, place);
    return sj_recorder_changes != NULL &&
           sj_recorder_judge(function, wanted->descriptor, bits, NULL, due);
}

void *sj_mono_parameter_type(void *signature, uint32_t number)
{
    void *iterator = NULL;
    void *type = NULL;
    for (uint32_t i = 0; i < number; i++) {
        type = sj_mono_runtime.signature_params(signature, &iterator);
        if (type == NULL) {
            return NULL;
        }
    }
    return type;
}

/* Returns which numbers a variable of an element type can hold. `bytes` is 0 if it cannot hold
 * numbers. */
static sj_changed_number number_range_of(int32_t element)
{
    switch (element) {
    case TYPE_BOOLEAN:
        return (sj_changed_number){.bytes = 1, .most = 1};
    case TYPE_I1:
    case TYPE_U1:
        return (sj_changed_number){.bytes = 1, .most = UINT8_MAX};
    case TYPE_CHAR:
    case TYPE_I2:
    case TYPE_U2:
        return (sj_changed_number){.bytes = 2, .most = UINT16_MAX};
    case TYPE_I4:
    case TYPE_U4:
        return (sj_changed_number){.bytes = 4, .most = UINT32_MAX};
    case TYPE_R4:
        return (sj_changed_number){.is_real = true, .bytes = 4};
    case TYPE_R8:
        return (sj_changed_number){.is_real = true, .bytes = 8};
    case TYPE_I8:
    case TYPE_U8:
    case TYPE_I:
    case TYPE_U:
        return (sj_changed_number){.bytes = 8, .most = UINT64_MAX};
    default:
        return (sj_changed_number){0};
    }
}

bool sj_mono_set_value(const sj_due_change *due, void *type, void *place)
{
    if (sj_mono_runtime.type_is_byref(type) != 0) {
        place = *(void *const *)place;
    }
    const int32_t element = sj_mono_runtime.type_get_type(sj_mono_runtime.type_underlying(type));
    const sj_changed_number number = number_range_of(element);
    if (number.bytes == 0 || !sj_recorder_change_fits(due, number)) {
        sj_recorder_change_is_unfit(due);
        return false;
    }
    if (place != NULL) {
        memcpy(place, &due->bits, number.bytes);
    }
    return place != NULL;
}

/* Applies a rule's change and records it. A callback of Mono can set arguments only: does nothing
 * if the rule changes a result, ends the call or writes memory. */
static void apply_change(uint32_t function, void *signature, const uint64_t *arguments,
                         uint32_t first, const sj_due_change *due)
{
    const uint32_t position = sj_value_position(due->target);
    void *type = sj_mono_parameter_type(signature, position);
    if (due->action == SJ_CHANGE_NOTHING) {
        sj_recorder_change(function, SJ_MANAGED_CALL, due);
        return;
    }
    if (due->action == SJ_CHANGE_SET && position != SJ_VALUE_RESULT && arguments != NULL &&
        type != NULL &&
        sj_mono_set_value(due, type, (void *)(uintptr_t)arguments[position - 1 + first])) {
        sj_recorder_change(function, SJ_MANAGED_CALL, due);
    }
}

void sj_mono_record_values(void *method, const sj_mono_recipe *recipe, const uint64_t *context,
                           bool at_entry)
{
    const uint64_t *words = find_words(context, method);
    if (recipe->measures_cpu) {
        sj_recorder_cpu(recipe->function, SJ_MANAGED_CALL, at_entry);
    }
    if (words == NULL) {
        return;
    }
    const uint64_t *arguments = (const uint64_t *)(uintptr_t)words[1];
    for (uint32_t i = 0; i < recipe->count; i++) {
        const sj_mono_ingredient *wanted = &recipe->values[i];
        if (wanted->is_result == at_entry) {
            continue;
        }
        const uint64_t place = wanted->is_result   ? words[0]
                               : arguments != NULL ? arguments[wanted->argument]
                                                   : 0;
        sj_due_change due;
        if (place != 0 && sj_mono_record_ingredient(wanted, recipe->function, SJ_MANAGED_CALL,
                                                    (void *)(uintptr_t)place, &due)) {
            void *signature = sj_mono_runtime.method_signature(method);
            const uint32_t first = sj_mono_runtime.signature_is_instance(signature) != 0 ? 1 : 0;
            apply_change(recipe->function, signature, arguments, first, &due);
        }
    }
}
