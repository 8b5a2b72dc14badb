#include "proto/block/call_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void sj_cut_text_add_bytes(sj_cut_text *to, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && to->used + 1 < to->capacity; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        to->text[to->used++] = byte < 0x20 || byte == 0x7f ? ' ' : bytes[i];
    }
    to->text[to->used] = '\0';
}

void sj_cut_text_add(sj_cut_text *to, const char *text)
{
    sj_cut_text_add_bytes(to, text, strlen(text));
}

void sj_cut_text_quote(sj_cut_text *to, const char *text, size_t bytes, bool is_cut)
{
    to->capacity--; /* keeps space for the closing quote */
    sj_cut_text_add(to, "\"");
    for (size_t i = 0; i < bytes; i++) {
        sj_cut_text_add(to, text[i] == '"' || text[i] == '\\' ? "\\" : "");
        sj_cut_text_add_bytes(to, &text[i], 1);
    }
    sj_cut_text_add(to, is_cut ? "..." : "");
    to->capacity++;
    sj_cut_text_add(to, "\"");
}

/* Writes a number as SQL does: 15 digits, always with a fraction. */
static void add_real(sj_cut_text *to, double real)
{
    char digits[40];
    if (isnan(real)) {
        sj_cut_text_add(to, "nan");
        return;
    }
    if (isinf(real)) {
        sj_cut_text_add(to, real < 0 ? "-Inf" : "Inf");
        return;
    }
    snprintf(digits, sizeof(digits), "%.15g", real);
    const size_t mantissa = strcspn(digits, "e");
    sj_cut_text_add_bytes(to, digits, mantissa);
    sj_cut_text_add(to, memchr(digits, '.', mantissa) == NULL ? ".0" : "");
    sj_cut_text_add(to, digits + mantissa);
}

static double real_of(const sj_block_value *value)
{
    double real;
    float single;
    memcpy(&real, &value->bits, sizeof(real));
    memcpy(&single, &value->bits, sizeof(single));
    return sj_value_kind_of(value->descriptor) == SJ_VALUE_FLOAT ? (double)single : real;
}

static void add_text(sj_cut_text *to, const sj_block_value *value)
{
    const bool is_cut = value->note == SJ_VALUE_CUT;
    if (value->note == SJ_VALUE_NULL || value->note == SJ_VALUE_UNREADABLE) {
        sj_cut_text_add(to, value->note == SJ_VALUE_NULL ? "null" : "unreadable");
    } else if (sj_value_kind_of(value->descriptor) == SJ_VALUE_STRING) {
        sj_cut_text_quote(to, value->text, value->text_bytes, is_cut);
    } else {
        sj_cut_text_add_bytes(to, value->text, value->text_bytes);
        sj_cut_text_add(to, is_cut ? "..." : "");
    }
}

void sj_call_text_value(const sj_block_value *value, sj_cut_text *to)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    char digits[32];
    if (sj_value_is_text(kind)) {
        add_text(to, value);
        return;
    }
    if (sj_value_is_real(kind)) {
        add_real(to, real_of(value));
        return;
    }
    if (kind == SJ_VALUE_HEX || kind == SJ_VALUE_POINTER) {
        snprintf(digits, sizeof(digits), "0x%llx", (unsigned long long)value->bits);
    } else if (sj_value_is_signed(kind)) {
        snprintf(digits, sizeof(digits), "%lld", (long long)value->bits);
    } else {
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value->bits);
    }
    sj_cut_text_add(to, digits);
}

/* Returns the length of the type at the start of a list. It ends at a comma outside brackets, or
 * with the list. */
static size_t type_bytes(const char *types)
{
    int depth = 0;
    size_t bytes = 0;
    for (; types[bytes] != '\0'; bytes++) {
        const char sign = types[bytes];
        if (depth == 0 && (sign == ',' || sign == ')')) {
            break;
        }
        depth += sign == '<' || sign == '[' || sign == '(' ? 1 : 0;
        depth -= sign == '>' || sign == ']' || sign == ')' ? 1 : 0;
    }
    return bytes;
}

uint32_t sj_call_text_parameters(const char *name)
{
    const char *types = strchr(name, '(');
    uint32_t count = 0;
    if (types == NULL || strchr(types + 1, '(') != NULL) {
        return SJ_VALUE_LAST_POSITION;
    }
    for (types++; *types != ')' && *types != '\0'; count++) {
        types += type_bytes(types);
        types += *types == ',' ? 1 : 0;
    }
    return count;
}

void sj_call_text_name(const char *name, const sj_call_arguments *arguments, sj_cut_text *to)
{
    const char *open = strrchr(name, '(');
    const char *types = open != NULL ? open + 1 : "";
    sj_cut_text_add_bytes(to, name, open != NULL ? (size_t)(open - name) : strlen(name));
    sj_cut_text_add(to, "(");
    for (int i = 1; *types != ')' && *types != '\0' ? true : i <= arguments->last; i++) {
        const size_t bytes = type_bytes(types);
        sj_cut_text_add(to, i > 1 ? "," : "");
        if (i < SJ_CALL_TEXT_ARGUMENTS && arguments->is_known[i]) {
            sj_cut_text_add(to, arguments->values[i]);
        } else {
            sj_cut_text_add_bytes(to, bytes != 0 ? types : "?", bytes != 0 ? bytes : 1);
        }
        types += bytes;
        types += *types == ',' ? 1 : 0;
    }
    sj_cut_text_add(to, ")");
}

void sj_call_text_result(sj_ending ending, const char *recorded, sj_cut_text *to)
{
    if (ending == SJ_ENDING_UNWOUND) {
        sj_cut_text_add(to, "!");
        sj_cut_text_add(to, recorded != NULL ? recorded : "");
    } else if (ending == SJ_ENDING_TRUNCATED) {
        sj_cut_text_add(to, "?");
    } else {
        sj_cut_text_add(to, recorded != NULL ? recorded : SJ_CALL_TEXT_UNRECORDED);
    }
}

void sj_call_text_thread(int64_t tid, sj_cut_text *to)
{
    char text[40];
    if (tid != 0) {
        snprintf(text, sizeof(text), " tid:%lld", (long long)tid);
        sj_cut_text_add(to, text);
    }
}

void sj_call_text_errno(int64_t number, sj_cut_text *to)
{
    char text[40];
    snprintf(text, sizeof(text), " errno:%lld", (long long)number);
    sj_cut_text_add(to, text);
}
