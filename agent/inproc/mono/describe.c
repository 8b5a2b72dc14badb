/* Design notes
 *
 * Writes values as text according to their types. Calls no code of the program. The garbage
 * collector does not move the values: the stack of the calling thread points to them. Uses no
 * floating-point instruction, because the program's floating-point registers are not saved. */
#include "agent/inproc/mono/internal.h"

#include <string.h>

enum {
    FIELD_STATIC = 0x10,
    FIELD_LITERAL = 0x40,
    HEADER_BYTES = 16, /* Size of an object's header. Offsets of fields include it. */
    HEADER_MAX = 64,   /* Maximum offset of a string's characters. */
    DEPTH_MAX = 2,
    ELEMENTS_SHOWN = 4
};

/* Returns the size of a number in bytes, from its MonoTypeEnum. */
static uint32_t size_of(int32_t type)
{
    switch (type) {
    case TYPE_BOOLEAN:
    case TYPE_I1:
    case TYPE_U1:
        return 1;
    case TYPE_CHAR:
    case TYPE_I2:
    case TYPE_U2:
        return 2;
    case TYPE_I4:
    case TYPE_U4:
    case TYPE_R4:
        return 4;
    default:
        return 8;
    }
}

/* Offset of a string's characters in the object; 0 if not known yet. */
static _Atomic uint32_t characters_offset;

bool sj_mono_reads_strings_directly(void)
{
    return atomic_load_explicit(&characters_offset, memory_order_relaxed) != 0;
}

/* Returns the characters of a string. Asks the runtime until it has seen that the length is stored
 * directly before the characters; then reads both directly. */
static const uint16_t *characters_of(const uint8_t *string, int32_t *length)
{
    const uint32_t place = atomic_load_explicit(&characters_offset, memory_order_relaxed);
    if (place != 0) {
        memcpy(length, string + place - sizeof(*length), sizeof(*length));
        return (const uint16_t *)(const void *)(string + place);
    }
    const uint16_t *characters = sj_mono_runtime.string_chars((void *)(uintptr_t)string);
    const uint64_t distance = (uint64_t)(uintptr_t)characters - (uint64_t)(uintptr_t)string;
    int32_t before = 0;
    *length = sj_mono_runtime.string_length((void *)(uintptr_t)string);
    memcpy(&before, (const uint8_t *)characters - sizeof(before), sizeof(before));
    if (before == *length && *length > 0 && distance > sizeof(before) && distance <= HEADER_MAX) {
        atomic_store_explicit(&characters_offset, (uint32_t)distance, memory_order_relaxed);
    }
    return characters;
}

void sj_mono_describe_string(sj_value_text *text, void *string)
{
    if (string == NULL) {
        text->note = SJ_VALUE_NULL;
        return;
    }
    int32_t length = 0;
    const uint16_t *units = characters_of(string, &length);
    sj_value_text_add_units(text, units, length);
}

static void add_signed(sj_value_text *text, int64_t number)
{
    sj_value_text_add(text, number < 0 ? "-" : "");
    sj_value_text_add_number(text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
}

static void add_class(sj_value_text *text, void *class)
{
    const char *space = sj_mono_runtime.class_namespace(class);
    if (space != NULL && space[0] != '\0') {
        sj_value_text_add(text, space);
        sj_value_text_add(text, ".");
    }
    sj_value_text_add(text, sj_mono_runtime.class_name(class));
}

static void add_number(sj_value_text *text, int32_t type, const void *place)
{
    const uint64_t number = sj_mono_read_number(type, place);
    switch (type) {
    case TYPE_BOOLEAN:
        sj_value_text_add(text, number != 0 ? "true" : "false");
        break;
    case TYPE_CHAR:
        sj_value_text_add(text, "'");
        sj_value_text_add_code(text, (uint32_t)number);
        sj_value_text_add(text, "'");
        break;
    case TYPE_R4:
        sj_value_text_add_real(text, number, true);
        break;
    case TYPE_R8:
        sj_value_text_add_real(text, number, false);
        break;
    case TYPE_I1:
    case TYPE_I2:
    case TYPE_I4:
    case TYPE_I8:
    case TYPE_I:
        add_signed(text, (int64_t)number);
        break;
    case TYPE_POINTER:
        sj_value_text_add(text, "0x");
        sj_value_text_add_number(text, number, 16);
        break;
    default:
        sj_value_text_add_number(text, number, 10);
    }
}

/* True if the field is a constant with this value. A constant is stored as one byte of length, then
 * its bytes. */
static bool is_constant(void *field, int32_t type, uint64_t number)
{
    const char *data = (sj_mono_runtime.field_flags(field) & FIELD_LITERAL) != 0
                           ? sj_mono_runtime.field_data(field)
                           : NULL;
    return data != NULL && (uint8_t)data[0] == size_of(type) &&
           sj_mono_read_number(type, data + 1) == number;
}

/* Appends the name of an enum constant, or the number if it is not a single constant. Asks the
 * class for the number's type, because a reference to an enum has another underlying type. */
static void add_enum(sj_value_text *text, void *class, const void *place)
{
    void *type = sj_mono_runtime.type_of_class(class);
    const int32_t element = sj_mono_runtime.type_get_type(sj_mono_runtime.type_underlying(type));
    const uint64_t number = sj_mono_read_number(element, place);
    void *iterator = NULL;
    for (void *field = sj_mono_runtime.class_fields(class, &iterator); field != NULL;
         field = sj_mono_runtime.class_fields(class, &iterator)) {
        if (is_constant(field, element, number)) {
            sj_value_text_add(text, sj_mono_runtime.field_name(field));
            return;
        }
    }
    add_number(text, element, place);
}

static void add_value(sj_value_text *text, void *type, const void *place, uint32_t depth);

/* Appends the first elements of an array in braces. */
static void add_elements(sj_value_text *text, void *array, uintptr_t length, uint32_t depth)
{
    void *class = sj_mono_runtime.class_of_object(array);
    void *type = sj_mono_runtime.type_of_class(sj_mono_runtime.element_class(class));
    const int32_t bytes = sj_mono_runtime.element_bytes(class);
    const uintptr_t shown = length < ELEMENTS_SHOWN ? length : ELEMENTS_SHOWN;
    for (uintptr_t i = 0; i < shown && text->note != SJ_VALUE_CUT; i++) {
        sj_value_text_add(text, i == 0 ? "{" : ",");
        add_value(text, type, sj_mono_runtime.element_place(array, bytes, i), depth + 1);
    }
    sj_value_text_add(text, shown == 0 ? "{}" : shown < length ? ",...}" : "}");
}

/* Appends the class of an array, its number of elements and the first of them, for example
 * "System.Int32[3]{1,2,3}". Leaves out the elements of an array that is inside another value. */
static void add_array(sj_value_text *text, void *array, uint32_t depth)
{
    const uintptr_t length = sj_mono_runtime.array_length(array);
    add_class(text, sj_mono_runtime.class_of_object(array));
    while (text->used != 0 && text->note != SJ_VALUE_CUT &&
           (text->bytes[text->used - 1] == ']' || text->bytes[text->used - 1] == ',')) {
        text->used--;
    }
    sj_value_text_add_number(text, length, 10);
    sj_value_text_add(text, "]");
    if (depth == 0) {
        add_elements(text, array, length, depth);
    }
}

static void add_quoted(sj_value_text *text, void *string)
{
    sj_value_text_add(text, "\"");
    sj_mono_describe_string(text, string);
    sj_value_text_add(text, "\"");
}

/* Appends a string's characters in quotes, an array, a boxed value, or the object's actual class
 * and hash. */
static void add_object(sj_value_text *text, void *object, uint32_t depth)
{
    void *class = object != NULL ? sj_mono_runtime.class_of_object(object) : NULL;
    if (class == NULL) {
        sj_value_text_add(text, "null");
    } else if (class == sj_mono_runtime.string_class()) {
        add_quoted(text, object);
    } else if (sj_mono_runtime.class_rank(class) != 0) {
        add_array(text, object, depth);
    } else if (sj_mono_runtime.class_is_structure(class) != 0) {
        add_value(text, sj_mono_runtime.type_of_class(class), (const char *)object + HEADER_BYTES,
                  depth);
    } else {
        add_class(text, class);
        sj_value_text_add(text, "@");
        sj_value_text_add_number(text, (uint32_t)sj_mono_runtime.object_hash(object), 16);
    }
}

static void add_fields(sj_value_text *text, void *class, const void *place, uint32_t depth)
{
    void *iterator = NULL;
    const char *before = "{";
    for (void *field = sj_mono_runtime.class_fields(class, &iterator);
         field != NULL && text->note != SJ_VALUE_CUT;
         field = sj_mono_runtime.class_fields(class, &iterator)) {
        const uint32_t offset = sj_mono_runtime.field_offset(field);
        if ((sj_mono_runtime.field_flags(field) & FIELD_STATIC) == 0 && offset >= HEADER_BYTES) {
            sj_value_text_add(text, before);
            sj_value_text_add(text, sj_mono_runtime.field_name(field));
            sj_value_text_add(text, "=");
            add_value(text, sj_mono_runtime.field_type(field),
                      (const char *)place + (offset - HEADER_BYTES), depth + 1);
            before = ",";
        }
    }
    sj_value_text_add(text, before[0] == '{' ? "{}" : "}");
}

static bool is_nullable(void *class)
{
    const char *space = sj_mono_runtime.class_namespace(class);
    return space != NULL && strcmp(space, "System") == 0 &&
           strcmp(sj_mono_runtime.class_name(class), "Nullable`1") == 0;
}

/* Appends the value of a Nullable, or null. */
static void add_nullable(sj_value_text *text, void *class, const void *place, uint32_t depth)
{
    const sj_mono_field value = sj_mono_find_field(class, "value");
    const sj_mono_field has_value = sj_mono_find_field(class, "hasValue");
    if (value.type == NULL || has_value.type == NULL) {
        add_fields(text, class, place, depth);
    } else if (((const uint8_t *)place)[has_value.offset] == 0) {
        sj_value_text_add(text, "null");
    } else {
        add_value(text, value.type, (const char *)place + value.offset, depth);
    }
}

static void add_structure(sj_value_text *text, void *type, const void *place, uint32_t depth)
{
    void *class = sj_mono_runtime.class_of_type(type);
    if (class == NULL) {
        sj_value_text_add(text, "?");
    } else if (sj_mono_runtime.class_is_structure(class) == 0) {
        add_object(text, *(void *const *)place, depth);
    } else if (sj_mono_runtime.class_is_enum(class) != 0) {
        add_enum(text, class, place);
    } else if (sj_mono_describe_known(text, class, place)) {
        return;
    } else if (is_nullable(class)) {
        add_nullable(text, class, place, depth);
    } else if (depth >= DEPTH_MAX) {
        sj_value_text_add(text, "{...}");
    } else {
        add_fields(text, class, place, depth);
    }
}

static void add_value(sj_value_text *text, void *type, const void *place, uint32_t depth)
{
    const int32_t element = sj_mono_runtime.type_get_type(type);
    switch (element) {
    case TYPE_STRING:
    case TYPE_VECTOR:
    case TYPE_ARRAY:
    case TYPE_CLASS:
    case TYPE_OBJECT:
    case TYPE_PARAMETER:
    case TYPE_METHOD_PARAMETER:
        add_object(text, *(void *const *)place, depth);
        break;
    case TYPE_VALUE:
    case TYPE_GENERIC:
        add_structure(text, type, place, depth);
        break;
    default:
        if ((element >= TYPE_BOOLEAN && element <= TYPE_R8) || element == TYPE_POINTER ||
            element == TYPE_I || element == TYPE_U) {
            add_number(text, element, place);
        } else {
            sj_value_text_add(text, "?"); /* Pointers to functions. */
        }
    }
}

void sj_mono_describe(sj_value_text *text, void *type, const void *place)
{
    add_value(text, type, place, 0);
}

void sj_mono_describe_class(sj_value_text *text, void *class)
{
    add_class(text, class);
}
