#include "agent/policy/value_signature.h"

#include "agent/policy/value_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that exist only in signatures. */
enum { KIND_STRUCT = SJ_VALUE_KINDS, KIND_BYTES, KIND_VOID, KIND_UNKNOWN };

/* A parameter with a name, which brackets can name as a length. */
typedef struct named_parameter {
    const char *name;
    size_t bytes;
    uint8_t place; /* 0: it cannot be recorded */
} named_parameter;

typedef struct signature_reader {
    const char *at;
    sj_calling_convention convention;
    uint32_t whole; /* general registers used so far */
    uint32_t real;  /* vector registers used so far */
    uint32_t stack; /* stack words used so far */
    bool is_method;
    bool is_stack_lost; /* a structure of unknown size is on the stack */
    uint32_t position;  /* position of the current parameter, in source order */
    uint32_t result_kind;
    uint8_t limit; /* from the brackets of the current value */
    const char *length_name;
    size_t length_bytes;
    size_t named_count;
    named_parameter named[SJ_VALUE_LAST_POSITION];
    named_parameter
        lengths[SJ_VALUE_LAST_POSITION + 1]; /* per value: the parameter that its brackets name */
    sj_signature *signature;
    sj_error *error;
} signature_reader;

static void skip_spaces(signature_reader *reader)
{
    reader->at += strspn(reader->at, " \t");
}

/* Moves past `sign` and the spaces around it, if it comes next. */
static bool skip_sign(signature_reader *reader, const char *sign)
{
    skip_spaces(reader);
    if (strncmp(reader->at, sign, strlen(sign)) != 0) {
        return false;
    }
    reader->at += strlen(sign);
    skip_spaces(reader);
    return true;
}

/* Moves past the next name or kind; returns its length. */
static size_t read_word(signature_reader *reader, const char **word)
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

/* Counts the register or stack word of the next parameter. Returns its place; 0: it cannot be
 * recorded. */
static uint8_t next_place(signature_reader *reader, uint32_t kind)
{
    const bool is_real = sj_value_is_real(kind);
    const uint32_t registers = registers_of(reader->convention, is_real);
    uint32_t *used_registers = is_real ? &reader->real : &reader->whole;
    if (*used_registers < registers) {
        return sj_value_descriptor(++*used_registers, kind);
    }
    const uint32_t word = reader->stack++;
    return !reader->is_method && !reader->is_stack_lost && word < SJ_PLACE_STACK_WORDS
               ? sj_value_descriptor(SJ_PLACE_STACK + word, kind)
               : 0;
}

static void place_structure(signature_reader *reader)
{
    if (reader->convention == SJ_CONVENTION_AAPCS64) {
        (void)next_place(reader, SJ_VALUE_POINTER);
    } else {
        reader->is_stack_lost = true;
    }
}

/* Counts the place of a parameter, and adds it to the signature if it is recorded. */
static sj_status place_parameter(signature_reader *reader, uint32_t kind, bool is_recorded,
                                 const named_parameter *named)
{
    if (kind == KIND_STRUCT) {
        place_structure(reader);
        return SJ_OK;
    }
    const uint8_t place = next_place(reader, kind);
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

/* Parses the brackets after a kind, if there are any. */
static sj_status read_size(signature_reader *reader, uint32_t *kind)
{
    const bool is_text = *kind == SJ_VALUE_STRING || *kind == KIND_BYTES;
    reader->limit = 0;
    reader->length_name = NULL;
    reader->length_bytes = 0;
    if (is_text && skip_sign(reader, "[")) {
        do {
            skip_spaces(reader);
            if (*reader->at >= '0' && *reader->at <= '9') {
                SJ_TRY(read_limit(reader));
            } else {
                reader->length_bytes = read_word(reader, &reader->length_name);
            }
        } while (skip_sign(reader, ","));
        if (!skip_sign(reader, "]")) {
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

/* Makes a value the content of its buffer at the exit. The function's result is its length. */
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

/* Finds the parameters that the brackets of values name. */
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
                           "\"%.*s\" is not a parameter that can be a length",
                           length->bytes < 40 ? (int)length->bytes : 40, length->name);
        }
        reader->signature->values[i].length = place;
    }
    return SJ_OK;
}

static sj_status read_parameter(signature_reader *reader)
{
    const char *word;
    size_t bytes = read_word(reader, &word);
    bool is_recorded = true;
    named_parameter named = {0};
    if (bytes != 0 && skip_sign(reader, ":")) {
        is_recorded = !is_word(word, bytes, "_");
        named = (named_parameter){.name = word, .bytes = bytes};
        bytes = read_word(reader, &word);
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
    if (!skip_sign(reader, "(")) {
        return sj_fail(reader->error, SJ_EINVAL, "a signature begins with \"(\"");
    }
    if (skip_sign(reader, ")")) {
        return SJ_OK;
    }
    do {
        if (skip_sign(reader, "...")) {
            break;
        }
        SJ_TRY(read_parameter(reader));
    } while (skip_sign(reader, ","));
    return skip_sign(reader, ")")
               ? SJ_OK
               : sj_fail(reader->error, SJ_EINVAL, "\",\" or \")\" is needed before \"%.40s\"",
                         reader->at);
}

/* Parses the result. `*kind`: KIND_VOID if the signature has no result. */
static sj_status read_result(signature_reader *reader, uint32_t *kind)
{
    const char *word;
    *kind = KIND_VOID;
    if (skip_sign(reader, "->")) {
        const size_t bytes = read_word(reader, &word);
        *kind = find_kind(word, bytes);
        if (*kind == KIND_UNKNOWN) {
            return fail_kind(reader, word, bytes);
        }
        SJ_TRY(read_size(reader, kind));
        if (reader->length_bytes != 0) {
            return sj_fail(reader->error, SJ_EINVAL,
                           "the length of a result is not known at the exit");
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
    /* Parse the result first: if the caller passes an address for it, the address uses a register.
     * */
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
