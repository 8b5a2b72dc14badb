/* Design notes
 *
 * Mono's call context is a structure of its own: a machine context that the compiled code leaves
 * zeroed, then the method, the address of the result and the list of addresses of the arguments.
 * The method is searched for, and the others are the words behind it. Values are read where they
 * lie: the argument's variable, or a copy of the result. Nothing of the program is called, a
 * string's characters are read in place: this thread stands in its own call, so that a collection
 * moves nothing that its stack leads to. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/values.h"

#include <string.h>

enum { CONTEXT_WORDS = 256 };

/* MonoTypeEnum (ECMA-335, II.23.1.16). */
enum {
    TYPE_BOOLEAN = 2,
    TYPE_CHAR = 3,
    TYPE_I1 = 4,
    TYPE_U1 = 5,
    TYPE_I2 = 6,
    TYPE_U2 = 7,
    TYPE_I4 = 8,
    TYPE_U4 = 9,
    TYPE_I8 = 10,
    TYPE_U8 = 11,
    TYPE_R4 = 12,
    TYPE_R8 = 13,
    TYPE_STRING = 14,
    TYPE_VALUE = 17
};

/* The words behind the method in a context; NULL: it is laid out in another way. */
static const uint64_t *find_words(const uint64_t *context, const void *method)
{
    for (uint32_t i = 0; i < CONTEXT_WORDS; i++) {
        if (context[i] == (uint64_t)(uintptr_t)method) {
            return context + i + 1;
        }
    }
    return NULL;
}

static uint64_t widen(int32_t type, uint64_t raw)
{
    switch (type) {
    case TYPE_BOOLEAN:
    case TYPE_U1:
        return (uint8_t)raw;
    case TYPE_I1:
        return (uint64_t)(int64_t)(int8_t)raw;
    case TYPE_CHAR:
    case TYPE_U2:
        return (uint16_t)raw;
    case TYPE_I2:
        return (uint64_t)(int64_t)(int16_t)raw;
    case TYPE_I4:
        return (uint64_t)(int64_t)(int32_t)raw;
    case TYPE_U4:
    case TYPE_R4:
        return (uint32_t)raw;
    default:
        return raw;
    }
}

/* How many bytes of a value may be read. */
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

static uint32_t put_character(char *text, uint32_t code)
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        text[0] = (char)(0xc0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        text[0] = (char)(0xe0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 0x3f));
        text[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | code >> 18);
    text[1] = (char)(0x80 | (code >> 12 & 0x3f));
    text[2] = (char)(0x80 | (code >> 6 & 0x3f));
    text[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* UTF-16 to UTF-8; half a pair becomes U+FFFD. */
static void record_string(uint32_t function, uint8_t descriptor, void *string)
{
    enum { LONGEST = 4, REPLACEMENT = 0xfffd };
    char text[SJ_VALUE_TEXT_BYTES + LONGEST];
    uint32_t used = 0;
    int32_t at = 0;
    if (string == NULL) {
        sj_recorder_text(function, descriptor, text, 0, SJ_VALUE_NULL);
        return;
    }
    const uint16_t *units = sj_mono_runtime.string_chars(string);
    const int32_t length = sj_mono_runtime.string_length(string);
    while (at < length) {
        uint32_t code = units[at++];
        if (code >= 0xd800 && code < 0xe000) {
            const bool is_pair =
                code < 0xdc00 && at < length && units[at] >= 0xdc00 && units[at] < 0xe000;
            code = is_pair ? 0x10000 + ((code - 0xd800) << 10) + (units[at++] - 0xdc00U)
                           : (uint32_t)REPLACEMENT;
        }
        const uint32_t bytes = put_character(text + used, code != 0 ? code : ' ');
        if (used + bytes > SJ_VALUE_TEXT_BYTES) {
            sj_recorder_text(function, descriptor, text, used, SJ_VALUE_CUT);
            return;
        }
        used += bytes;
    }
    sj_recorder_text(function, descriptor, text, used, SJ_VALUE_WHOLE);
}

static void record_one(uint32_t function, uint8_t descriptor, void *type, const void *place)
{
    const uint32_t kind = sj_value_kind_of(descriptor);
    /* Of an enum, its integer; a structure has no value here. */
    const int32_t element = sj_mono_runtime.type_get_type(sj_mono_runtime.type_underlying(type));
    const bool is_real = element == TYPE_R4 || element == TYPE_R8;
    uint64_t raw = 0;
    if (sj_mono_runtime.type_is_byref(type) != 0) {
        place = *(const void *const *)place; /* of the caller's variable */
    }
    if (place == NULL || element == TYPE_VALUE) {
        return;
    }
    if (element == TYPE_STRING) {
        if (kind == SJ_VALUE_STRING) {
            record_string(function, descriptor, *(void *const *)place);
        }
        return;
    }
    if (kind == SJ_VALUE_STRING || is_real != sj_value_is_real(kind) ||
        (is_real && (element == TYPE_R4) != (kind == SJ_VALUE_FLOAT))) {
        return; /* the rule names another type: there is no such value */
    }
    memcpy(&raw, place, size_of(element));
    sj_recorder_value(function, descriptor, sj_value_narrow(kind, widen(element, raw)));
}

/* The type of a declared parameter, from 1; NULL: there are fewer. */
static void *parameter_type(void *signature, uint32_t number)
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

void sj_mono_record_values(void *method, uint32_t function, uint32_t descriptors,
                           const uint64_t *context, bool at_entry)
{
    const uint64_t *words = find_words(context, method);
    void *signature = sj_mono_runtime.method_signature(method);
    if (words == NULL || signature == NULL) {
        return;
    }
    const uint64_t *arguments = (const uint64_t *)(uintptr_t)words[1];
    const uint32_t first = sj_mono_runtime.signature_is_instance(signature) != 0 ? 1 : 0;
    for (; descriptors != 0; descriptors >>= 8) {
        const uint8_t descriptor = (uint8_t)descriptors;
        const uint32_t position = sj_value_position(descriptor);
        if (descriptor == 0 || (position == SJ_VALUE_RESULT) == at_entry) {
            continue;
        }
        void *type = position == SJ_VALUE_RESULT ? sj_mono_runtime.signature_return(signature)
                                                 : parameter_type(signature, position);
        const uint64_t place = position == SJ_VALUE_RESULT ? words[0]
                               : arguments != NULL         ? arguments[position - 1 + first]
                                                           : 0;
        if (type != NULL && place != 0) {
            record_one(function, descriptor, type, (const void *)(uintptr_t)place);
        }
    }
}
