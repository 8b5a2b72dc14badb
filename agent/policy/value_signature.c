#include "agent/policy/value_signature.h"

#include "agent/policy/value_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that only a signature has. */
enum { KIND_STRUCT = SJ_VALUE_KINDS, KIND_BYTES, KIND_VOID, KIND_UNKNOWN };

/* A parameter by its name, of which brackets may say that it is a length. */
typedef struct named_parameter {
    const char *name;
    size_t bytes;
    uint8_t place; /* 0: it has none that can be recorded */
} named_parameter;

typedef struct signature_reader {
    const char *at;
    sj_calling_convention convention;
    uint32_t whole; /* general registers that are taken */
    uint32_t real;  /* vector registers that are taken */
    uint32_t stack; /* words of the stack that are taken */
    bool is_method;
    bool is_stack_lost; /* a structure of unknown size lies on the stack */
    uint32_t position;  /* of the parameter at hand, in source order */
    uint32_t result_kind;
    uint8_t limit; /* what brackets have said of it */
    const char *length_name;
    size_t length_bytes;
    size_t named_count;
    named_parameter named[SJ_VALUE_LAST_POSITION];
    named_parameter lengths[SJ_VALUE_LAST_POSITION + 1]; /* of each value: what its brackets name */
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
           : is_word(word, bytes, "bytes")  ? KIND_BYTES
           : is_word(word, bytes, "struct") ? KIND_STRUCT
           : is_word(word, bytes, "void")   ? KIND_VOID
                                            : KIND_UNKNOWN;
}

static sj_status fail_kind(signature_reader *reader, const char *word, size_t bytes)
{
    const int shown = bytes < 40 ? (int)bytes : 40;
    return sj_fail(reader->error, SJ_EINVAL,
                   "\"%.*s\" is not a type: int, uint, long, ulong, char, bool, hex, pointer, "
                   "float, double, str, bytes or struct is needed",
                   shown, word);
}

static uint32_t registers_of(sj_calling_convention convention, bool is_real)
{
    enum { VECTORS = 8, GENERAL_SYSTEM_V = 6, GENERAL_AAPCS64 = 8 };
    return is_real                                ? VECTORS
           : convention == SJ_CONVENTION_SYSTEM_V ? GENERAL_SYSTEM_V
                                                  : GENERAL_AAPCS64;
}

/* take_place returns the place of the next parameter; 0: none that can be recorded. */
static uint8_t take_place(signature_reader *reader, uint32_t kind)
{
    const bool is_real = sj_value_is_real(kind);
    const uint32_t registers = registers_of(reader->convention, is_real);
    uint32_t *taken = is_real ? &reader->real : &reader->whole;
    if (*taken < registers) {
        return sj_value_descriptor(++*taken, kind);
    }
    const uint32_t word = reader->stack++;
    return !reader->is_method && !reader->is_stack_lost && word < SJ_PLACE_STACK_WORDS
               ? sj_value_descriptor(SJ_PLACE_STACK + word, kind)
               : 0;
}

static void take_structure(signature_reader *reader)
{
    if (reader->convention == SJ_CONVENTION_AAPCS64) {
        (void)take_place(reader, SJ_VALUE_POINTER);
    } else {
        reader->is_stack_lost = true;
    }
}

/* place_parameter counts the register that the parameter takes, and notes its value. */
static sj_status place_parameter(signature_reader *reader, uint32_t kind, bool is_recorded,
                                 const named_parameter *named)
{
    if (kind == KIND_STRUCT) {
        take_structure(reader);
        return SJ_OK;
    }
    const uint8_t place = take_place(reader, kind);
    if (named->bytes != 0 && reader->named_count < SJ_VALUE_LAST_POSITION) {
        reader->named[reader->named_count] = *named;
        reader->named[reader->named_count++].place = place;
    }
    if (!is_recorded) {
        return SJ_OK;
    }
    if (place == 0) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "argument %u is passed on the stack where it cannot be recorded: name it "
                       "\"_\"",
                       reader->position);
    }
    if (reader->position > SJ_VALUE_LAST_POSITION) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "argument %u cannot be recorded, only the first %d can: name it \"_\"",
                       reader->position, SJ_VALUE_LAST_POSITION);
    }
    reader->lengths[reader->signature->count] =
        (named_parameter){.name = reader->length_name, .bytes = reader->length_bytes};
    reader->signature->values[reader->signature->count++] =
        (sj_signature_value){.place = place,
                             .source = sj_value_descriptor(reader->position, kind),
                             .limit = reader->limit};
    return SJ_OK;
}

static sj_status read_limit(signature_reader *reader)
{
    char *end = NULL;
    errno = 0;
    const unsigned long bytes = strtoul(reader->at, &end, 10);
    if (bytes == 0 || bytes > SJ_VALUE_TEXT_MOST || errno != 0) {
        return sj_fail(reader->error, SJ_EINVAL, "1 to %d bytes can be recorded, not \"%.40s\"",
                       SJ_VALUE_TEXT_MOST, reader->at);
    }
    reader->at = end;
    reader->limit = sj_place_limit((uint32_t)bytes);
    return SJ_OK;
}

/* read_size reads the brackets behind a kind, if there are any. */
static sj_status read_size(signature_reader *reader, uint32_t *kind)
{
    const bool is_text = *kind == SJ_VALUE_STRING || *kind == KIND_BYTES;
    reader->limit = 0;
    reader->length_name = NULL;
    reader->length_bytes = 0;
    if (is_text && take_sign(reader, "[")) {
        do {
            skip_spaces(reader);
            if (*reader->at >= '0' && *reader->at <= '9') {
                SJ_TRY(read_limit(reader));
            } else {
                reader->length_bytes = take_word(reader, &reader->length_name);
            }
        } while (take_sign(reader, ","));
        if (!take_sign(reader, "]")) {
            return sj_fail(reader->error, SJ_EINVAL, "\"]\" is needed before \"%.40s\"",
                           reader->at);
        }
    }
    if (*kind == KIND_BYTES && reader->length_bytes == 0) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "\"bytes\" needs the parameter that has their number: bytes[NAME]");
    }
    *kind = *kind == KIND_BYTES ? (uint32_t)SJ_VALUE_STRING : *kind;
    return SJ_OK;
}

/* fill_buffer makes a value what is behind its place at the exit, as long as the result says. */
static sj_status fill_buffer(const signature_reader *reader, sj_signature_value *value)
{
    const bool is_int = reader->result_kind == SJ_VALUE_INT || reader->result_kind == SJ_VALUE_UINT;
    if (!is_int && reader->result_kind != SJ_VALUE_LONG && reader->result_kind != SJ_VALUE_ULONG) {
        return sj_fail(reader->error, SJ_EINVAL,
                       "\"result\" is a length where the result is int, uint, long or ulong");
    }
    for (size_t i = 0; i < reader->signature->count; i++) {
        if (reader->signature->values[i].filled != 0) {
            return sj_fail(reader->error, SJ_EINVAL,
                           "one buffer of a function can have its result as length");
        }
    }
    value->filled = is_int ? SJ_PLACE_FILLED_INT : SJ_PLACE_FILLED;
    value->filled_place = value->place;
    value->place = sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_STRING);
    return SJ_OK;
}

/* find_lengths gives the values whose brackets name a parameter that one's place. */
static sj_status find_lengths(const signature_reader *reader)
{
    for (size_t i = 0; i < reader->signature->count; i++) {
        const named_parameter *length = &reader->lengths[i];
        uint8_t place = 0;
        for (size_t j = 0; length->bytes != 0 && j < reader->named_count; j++) {
            const named_parameter *named = &reader->named[j];
            const bool is_it = named->bytes == length->bytes &&
                               memcmp(named->name, length->name, length->bytes) == 0;
            place = is_it ? named->place : place;
        }
        const uint32_t kind = sj_value_kind_of(place);
        if (place == 0 &&
            is_word(length->name != NULL ? length->name : "", length->bytes, "result")) {
            SJ_TRY(fill_buffer(reader, &reader->signature->values[i]));
            continue;
        }
        if (length->bytes != 0 &&
            (place == 0 || sj_value_is_real(kind) || sj_value_is_text(kind))) {
            return sj_fail(reader->error, SJ_EINVAL,
                           "\"%.*s\" is no parameter that could be a length",
                           length->bytes < 40 ? (int)length->bytes : 40, length->name);
        }
        reader->signature->values[i].length = place;
    }
    return SJ_OK;
}

static sj_status read_parameter(signature_reader *reader)
{
    const char *word;
    size_t bytes = take_word(reader, &word);
    bool is_recorded = true;
    named_parameter named = {0};
    if (bytes != 0 && take_sign(reader, ":")) {
        is_recorded = !is_word(word, bytes, "_");
        named = (named_parameter){.name = word, .bytes = bytes};
        bytes = take_word(reader, &word);
    }
    uint32_t kind = find_kind(word, bytes);
    if (kind == KIND_UNKNOWN || kind == KIND_VOID) {
        return fail_kind(reader, word, bytes);
    }
    SJ_TRY(read_size(reader, &kind));
    reader->position++;
    return place_parameter(reader, kind, is_recorded, &named);
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
        SJ_TRY(read_size(reader, kind));
        if (reader->length_bytes != 0) {
            return sj_fail(reader->error, SJ_EINVAL,
                           "the length of a result is not known when it is there");
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
    signature_reader reader = {.convention = convention, .is_method = is_method, .error = error};
    const char *end = strrchr(text, ')');
    uint32_t kind = KIND_VOID;
    *signature = (sj_signature){0};
    reader.signature = signature;
    /* The result is read first: its address may take the first register. */
    reader.at = end != NULL ? end + 1 : text + strlen(text);
    SJ_TRY(read_result(&reader, &kind));
    reader.result_kind = kind;
    reader.whole = kind == KIND_STRUCT && convention == SJ_CONVENTION_SYSTEM_V && !is_method;
    reader.at = text;
    SJ_TRY(read_parameters(&reader));
    SJ_TRY(find_lengths(&reader));
    SJ_TRY(read_result(&reader, &kind));
    if (kind < SJ_VALUE_KINDS) {
        const uint8_t result = sj_value_descriptor(SJ_VALUE_RESULT, kind);
        signature->values[signature->count++] =
            (sj_signature_value){.place = result, .source = result, .limit = reader.limit};
    }
    return signature->count != 0
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "the signature has no value that can be recorded");
}
