#include "agent/policy/value_signature.h"

#include "agent/policy/value_rules.h"

#include <string.h>

/* Kinds that only a signature has. */
enum { KIND_STRUCT = SJ_VALUE_KINDS, KIND_VOID, KIND_UNKNOWN };

typedef struct signature_reader {
    const char *at;
    sj_calling_convention convention;
    uint32_t whole;    /* general registers that are taken */
    uint32_t real;     /* vector registers that are taken */
    uint32_t position; /* of the parameter at hand, in source order */
    sj_signature *signature;
    sj_error *error;
} signature_reader;

static void skip_spaces(signature_reader *reader)
{
    reader->at += strspn(reader->at, " \t");
}

/* take_sign moves behind `sign` and the spaces around it, when it comes next. */
static bool take_sign(signature_reader *reader, const char *sign)
{
    skip_spaces(reader);
    if (strncmp(reader->at, sign, strlen(sign)) != 0) {
        return false;
    }
    reader->at += strlen(sign);
    skip_spaces(reader);
    return true;
}

/* take_word returns the length of the name or kind that comes next, and moves behind it. */
static size_t take_word(signature_reader *reader, const char **word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    skip_spaces(reader);
    *word = reader->at;
    const size_t bytes = strspn(reader->at, letters);
    reader->at += bytes;
    return bytes;
}

static bool is_word(const char *word, size_t bytes, const char *expected)
{
    return strlen(expected) == bytes && memcmp(word, expected, bytes) == 0;
}

static uint32_t find_kind(const char *word, size_t bytes)
{
    for (uint32_t i = 1; i < SJ_VALUE_RULE_KINDS; i++) {
        if (is_word(word, bytes, sj_value_kind_words[i])) {
            return i;
        }
    }
    return is_word(word, bytes, "str")      ? SJ_VALUE_STRING
           : is_word(word, bytes, "struct") ? KIND_STRUCT
           : is_word(word, bytes, "void")   ? KIND_VOID
                                            : KIND_UNKNOWN;
}

static sj_status fail_kind(signature_reader *reader, const char *word, size_t bytes)
{
    const int shown = bytes < 40 ? (int)bytes : 40;
    return sj_fail(reader->error, SJ_EINVAL,
                   "\"%.*s\" is not a type: int, uint, long, ulong, char, bool, hex, pointer, "
                   "float, double, str or struct is needed",
                   shown, word);
}

static uint32_t registers_of(sj_calling_convention convention, bool is_real)
{
    enum { VECTORS = 8, GENERAL_SYSTEM_V = 6, GENERAL_AAPCS64 = 8 };
    return is_real                                ? VECTORS
           : convention == SJ_CONVENTION_SYSTEM_V ? GENERAL_SYSTEM_V
                                                  : GENERAL_AAPCS64;
}

/* place_parameter counts the register that the parameter takes, and notes its value. */
static sj_status place_parameter(signature_reader *reader, uint32_t kind, bool is_recorded)
{
    const bool is_real = kind != KIND_STRUCT && sj_value_is_real(kind);
    if (kind == KIND_STRUCT) {
        reader->whole += reader->convention == SJ_CONVENTION_AAPCS64 ? 1 : 0;
        return SJ_OK;
    }
    const uint32_t place = is_real ? ++reader->real : ++reader->whole;
    if (!is_recorded) {
        return SJ_OK;
    }
    if (place > registers_of(reader->convention, is_real)) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "argument %u is passed on the stack and cannot be recorded: name it \"_\"",
                       reader->position);
    }
    if (reader->position > SJ_VALUE_LAST_POSITION) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "argument %u cannot be recorded, only the first %d can: name it \"_\"",
                       reader->position, SJ_VALUE_LAST_POSITION);
    }
    reader->signature->values[reader->signature->count++] =
        (sj_signature_value){.place = sj_value_descriptor(place, kind),
                             .source = sj_value_descriptor(reader->position, kind)};
    return SJ_OK;
}

static sj_status read_parameter(signature_reader *reader)
{
    const char *word;
    size_t bytes = take_word(reader, &word);
    bool is_recorded = true;
    if (bytes != 0 && take_sign(reader, ":")) {
        is_recorded = !is_word(word, bytes, "_");
        bytes = take_word(reader, &word);
    }
    const uint32_t kind = find_kind(word, bytes);
    if (kind == KIND_UNKNOWN || kind == KIND_VOID) {
        return fail_kind(reader, word, bytes);
    }
    reader->position++;
    return place_parameter(reader, kind, is_recorded);
}

static sj_status read_parameters(signature_reader *reader)
{
    if (!take_sign(reader, "(")) {
        return sj_fail(reader->error, SJ_EINVAL, "a signature begins with \"(\"");
    }
    if (take_sign(reader, ")")) {
        return SJ_OK;
    }
    do {
        if (take_sign(reader, "...")) {
            break;
        }
        SJ_TRY(read_parameter(reader));
    } while (take_sign(reader, ","));
    return take_sign(reader, ")")
               ? SJ_OK
               : sj_fail(reader->error, SJ_EINVAL, "\",\" or \")\" is needed before \"%.40s\"",
                         reader->at);
}

/* read_result: `*kind` is KIND_VOID when nothing is said of it. */
static sj_status read_result(signature_reader *reader, uint32_t *kind)
{
    const char *word;
    *kind = KIND_VOID;
    if (take_sign(reader, "->")) {
        const size_t bytes = take_word(reader, &word);
        *kind = find_kind(word, bytes);
        if (*kind == KIND_UNKNOWN) {
            return fail_kind(reader, word, bytes);
        }
    }
    skip_spaces(reader);
    return *reader->at == '\0' ? SJ_OK
                               : sj_fail(reader->error, SJ_EINVAL,
                                         "\"%.40s\" is too much behind the signature", reader->at);
}

sj_status sj_signature_parse(const char *text, sj_calling_convention convention, bool is_method,
                             sj_signature *signature, sj_error *error)
{
    signature_reader reader = {.convention = convention, .error = error};
    const char *end = strrchr(text, ')');
    uint32_t kind = KIND_VOID;
    *signature = (sj_signature){0};
    reader.signature = signature;
    /* The result is read first: its address may take the first register. */
    reader.at = end != NULL ? end + 1 : text + strlen(text);
    SJ_TRY(read_result(&reader, &kind));
    reader.whole = kind == KIND_STRUCT && convention == SJ_CONVENTION_SYSTEM_V && !is_method;
    reader.at = text;
    SJ_TRY(read_parameters(&reader));
    SJ_TRY(read_result(&reader, &kind));
    if (kind < SJ_VALUE_KINDS) {
        const uint8_t result = sj_value_descriptor(SJ_VALUE_RESULT, kind);
        signature->values[signature->count++] = (sj_signature_value){result, result};
    }
    return signature->count != 0
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "the signature has no value that can be recorded");
}
