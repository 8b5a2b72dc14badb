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
    DECIMALS = 6
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

/* Appends a decimal point and at most six digits of remainder / 2^shift, which is less than 1. */
static void add_decimals(sj_value_text *text, unsigned __int128 remainder, uint32_t shift)
{
    char digits[DECIMALS + 1] = {0};
    uint32_t used = 1;
    for (uint32_t i = 0; i < DECIMALS; i++) {
        remainder *= 10;
        digits[i] = (char)('0' + (uint32_t)(remainder >> shift));
        remainder &= ((unsigned __int128)1 << shift) - 1;
        used = digits[i] != '0' ? i + 1 : used;
    }
    digits[used] = '\0';
    sj_value_text_add(text, ".");
    sj_value_text_add(text, digits);
}

/* Appends a double. If its integer part needs more than 64 bits, or if it is too small, appends its
 * bits in hexadecimal. */
static void add_real(sj_value_text *text, uint64_t bits)
{
    enum { MANTISSA = 52, BIAS = 1075, SHIFT_MAX = 96 };
    const int32_t exponent = (int32_t)(bits >> MANTISSA & 0x7ff) - BIAS;
    const uint64_t fraction = bits & ((UINT64_C(1) << MANTISSA) - 1);
    const uint64_t mantissa = fraction | UINT64_C(1) << MANTISSA;
    const uint32_t shift = exponent < 0 ? (uint32_t)-exponent : 0;
    if (bits << 1 == 0) {
        sj_value_text_add(text, "0.0");
    } else if (exponent > 10 || shift > SHIFT_MAX) {
        sj_value_text_add(text, "0x");
        sj_value_text_add_number(text, bits, 16);
    } else {
        const unsigned __int128 whole = exponent >= 0 ? (unsigned __int128)mantissa << exponent
                                                      : (unsigned __int128)mantissa >> shift;
        sj_value_text_add(text, bits >> 63 != 0 ? "-" : "");
        sj_value_text_add_number(text, (uint64_t)whole, 10);
        add_decimals(text, (unsigned __int128)mantissa - (whole << shift), shift);
    }
}

/* Returns the bits of a double of the same value as a float. */
static uint64_t widen_real(uint32_t bits)
{
    const uint64_t sign = (uint64_t)(bits >> 31) << 63;
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint64_t fraction = (uint64_t)(bits & 0x7fffff) << 29;
    if (exponent == 0) {
        return sign; /* A subnormal float is 0 in six decimals. */
    }
    return sign | (uint64_t)(exponent == 0xff ? 0x7ff : exponent + 896) << 52 | fraction;
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
        add_real(text, widen_real((uint32_t)number));
        break;
    case TYPE_R8:
        add_real(text, number);
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

/* Appends the name of an enum constant, or the number if it is not a single constant. */
static void add_enum(sj_value_text *text, void *class, void *type, const void *place)
{
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

/* Appends the class of an array and its number of elements, for example "System.Int32[3]". */
static void add_array(sj_value_text *text, void *array)
{
    add_class(text, sj_mono_runtime.class_of_object(array));
    while (text->used != 0 && text->note != SJ_VALUE_CUT &&
           (text->bytes[text->used - 1] == ']' || text->bytes[text->used - 1] == ',')) {
        text->used--;
    }
    sj_value_text_add_number(text, sj_mono_runtime.array_length(array), 10);
    sj_value_text_add(text, "]");
}

static void add_quoted(sj_value_text *text, void *string)
{
    sj_value_text_add(text, "\"");
    sj_mono_describe_string(text, string);
    sj_value_text_add(text, "\"");
}

/* Appends a string's characters in quotes, an array, or the object's actual class and hash. */
static void add_object(sj_value_text *text, void *object)
{
    void *class = object != NULL ? sj_mono_runtime.class_of_object(object) : NULL;
    if (class == NULL) {
        sj_value_text_add(text, "null");
    } else if (class == sj_mono_runtime.string_class()) {
        add_quoted(text, object);
    } else if (sj_mono_runtime.class_rank(class) != 0) {
        add_array(text, object);
    } else {
        add_class(text, class);
        sj_value_text_add(text, "@");
        sj_value_text_add_number(text, (uint32_t)sj_mono_runtime.object_hash(object), 16);
    }
}

static void add_value(sj_value_text *text, void *type, const void *place, uint32_t depth);

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

static void add_structure(sj_value_text *text, void *type, const void *place, uint32_t depth)
{
    void *class = sj_mono_runtime.class_of_type(type);
    if (class == NULL) {
        sj_value_text_add(text, "?");
    } else if (sj_mono_runtime.class_is_structure(class) == 0) {
        add_object(text, *(void *const *)place);
    } else if (sj_mono_runtime.class_is_enum(class) != 0) {
        add_enum(text, class, type, place);
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
        add_object(text, *(void *const *)place);
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
            /* Parameters of generic methods, pointers to functions. */
            sj_value_text_add(text, "?");
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
