#include "agent/objfile/map_file.h"

#include <stdlib.h>

/* Design notes
 *
 * Each line is matched with these formats. gold writes that of GNU ld:
 *
 *   nm -S    0000000000001139 000000000000000b T name
 *   lld      1139  1139  b  1  name
 *   mold     0x1139  0  0  name
 *   GNU ld   <spaces> 0x0000000000001139  <spaces> name
 *   GNU ld   <space> .text.name  0x0000000000001139  0xb  file
 *
 * The columns of lld are VMA, LMA, size, alignment and name. Those of mold are VMA, size, alignment
 * and name. At least 16 spaces precede the name of a symbol. Fewer spaces precede the names of
 * input sections and output sections.
 *
 * A symbol line of GNU ld contains an indented address and a name. The lines of sections begin with
 * a name, or have a size after the address.
 *
 * GNU ld and gold list no static functions. With -ffunction-sections, the section of a static
 * function has its name, in the same line or, if the name is long, in the line before the address.
 * A section `.text.unlikely.name` may hold only the cold part of a function, so it gives no name.
 *
 * Lines of assignments contain "=": they are skipped, in maps of lld and of GNU ld.
 *
 * The planner drops symbols outside of executable sections. map_globals.c keeps those in sections
 * of data. */

enum { LINE_MAX_FIELDS = 5, LLD_SYMBOL_GAP = 16, LD_SYMBOL_INDENT = 8 };

typedef struct map_line {
    char *fields[LINE_MAX_FIELDS]; /* fields[4] contains the rest of the line */
    char *end;
    unsigned count;
    unsigned indent;   /* spaces before the first field */
    unsigned last_gap; /* spaces before the last field */
} map_line;

static map_line split_line(char *at, char *end)
{
    if (end > at && end[-1] == '\r') {
        *--end = 0;
    }
    map_line line = {.end = end};
    while (line.count < LINE_MAX_FIELDS) {
        char *start = at;
        while (at < end && (*at == ' ' || *at == '\t')) {
            at++;
        }
        if (at >= end) {
            break;
        }
        line.last_gap = (unsigned)(at - start) + (line.count > 0 ? 1 : 0);
        line.indent = line.count == 0 ? line.last_gap : line.indent;
        line.fields[line.count++] = at;
        if (line.count < LINE_MAX_FIELDS) {
            while (at < end && *at != ' ' && *at != '\t') {
                at++;
            }
            if (at < end) {
                *at++ = 0;
            }
        }
    }
    return line;
}

static bool parse_decimal(const char *text, uint64_t *value)
{
    const size_t digits = strspn(text, "0123456789");
    *value = digits > 0 && digits < 20 && text[digits] == 0 ? strtoull(text, NULL, 10) : 0;
    return digits > 0 && digits < 20 && text[digits] == 0;
}

static bool parse_hexadecimal(const char *text, bool with_prefix, uint64_t *value)
{
    if (with_prefix) {
        if (text[0] != '0' || text[1] != 'x') {
            return false;
        }
        text += 2;
    }
    uint64_t sum = 0;
    unsigned digits = 0;
    for (; *text != 0; text++, digits++) {
        unsigned digit;
        if (*text >= '0' && *text <= '9') {
            digit = (unsigned)(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            digit = (unsigned)(*text - 'a') + 10;
        } else {
            return false;
        }
        sum = sum << 4 | digit;
    }
    *value = sum;
    return digits > 0 && digits <= 16;
}

static bool read_listing_line(const map_line *line, sj_symbol *symbol)
{
    if (line->count != 4 || line->indent != 0 || line->fields[2][1] != 0 ||
        strchr("tTwWiVvdDbBrRgGsSu", line->fields[2][0]) == NULL) {
        return false;
    }
    symbol->name = line->fields[3];
    symbol->kind = line->fields[2][0] == 'i'                     ? SJ_SYMBOL_RESOLVER
                   : strchr("tTwWV", line->fields[2][0]) != NULL ? SJ_SYMBOL_FUNCTION
                                                                 : SJ_SYMBOL_LABEL;
    symbol->is_local = strchr("tdbrgs", line->fields[2][0]) != NULL;
    return parse_hexadecimal(line->fields[0], false, &symbol->address) &&
           parse_hexadecimal(line->fields[1], false, &symbol->size);
}

static bool read_lld_line(const map_line *line, sj_symbol *symbol)
{
    uint64_t load;
    uint64_t align;
    if (line->count != LINE_MAX_FIELDS || line->last_gap < LLD_SYMBOL_GAP ||
        strchr(line->fields[4], '=') != NULL) {
        return false;
    }
    symbol->name = line->fields[4];
    symbol->kind = SJ_SYMBOL_FUNCTION;
    return parse_hexadecimal(line->fields[0], false, &symbol->address) &&
           parse_hexadecimal(line->fields[1], false, &load) && load == symbol->address &&
           parse_hexadecimal(line->fields[2], false, &symbol->size) &&
           parse_hexadecimal(line->fields[3], false, &align);
}

/* Restores the spaces of a name in which split_line has replaced them by NUL. */
static void join_fields(char *name, const char *end)
{
    for (char *c = name; c < end; c++) {
        *c = *c == 0 ? ' ' : *c;
    }
}

static bool read_mold_line(const map_line *line, sj_symbol *symbol)
{
    uint64_t align;
    if (line->count < 4 || !parse_hexadecimal(line->fields[0], true, &symbol->address) ||
        !parse_decimal(line->fields[1], &symbol->size) || !parse_decimal(line->fields[2], &align) ||
        line->fields[3] - (line->fields[2] + strlen(line->fields[2])) < LLD_SYMBOL_GAP) {
        return false;
    }
    join_fields(line->fields[3], line->end);
    symbol->name = line->fields[3];
    symbol->kind = SJ_SYMBOL_FUNCTION;
    return true;
}

/* Returns the function that has a section of code for itself; NULL: the section has none. */
static const char *function_of_section(const char *section)
{
    static const char prefix[] = ".text.";
    static const char *const kinds[] = {"startup", "exit", "hot", "unlikely", "sorted"};
    if (strncmp(section, prefix, sizeof(prefix) - 1) != 0) {
        return NULL;
    }
    const char *name = section + sizeof(prefix) - 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t bytes = strlen(kinds[i]);
        if (strncmp(name, kinds[i], bytes) != 0 || (name[bytes] != 0 && name[bytes] != '.')) {
            continue;
        }
        if (name[bytes] == 0 || i >= 3) {
            return NULL;
        }
        name += bytes + 1;
        break;
    }
    return name[0] != 0 ? name : NULL;
}

/* Reads an input section of GNU ld, which may take two lines. `*function` is the function of a
 * section whose address has not been read yet; NULL: none. A section without an address, or
 * without bytes, was left out by the linker. The size stays unknown: hand-written code may have
 * several functions in a section. */
static bool read_section_line(const map_line *line, const char **function, sj_symbol *symbol)
{
    uint64_t size = 0;
    const char *named =
        line->count > 0 && line->indent == 1 ? function_of_section(line->fields[0]) : NULL;
    const unsigned first = named != NULL ? 1 : 0;
    symbol->name = named != NULL ? named : *function;
    symbol->kind = SJ_SYMBOL_FUNCTION;
    symbol->is_local = true;
    *function = line->count == 1 ? named : NULL;
    return symbol->name != NULL && line->count >= first + 3 &&
           parse_hexadecimal(line->fields[first], true, &symbol->address) &&
           parse_hexadecimal(line->fields[first + 1], true, &size) && symbol->address != 0 &&
           size != 0;
}

static bool read_ld_line(const map_line *line, sj_symbol *symbol)
{
    if (line->count < 2 || line->indent < LD_SYMBOL_INDENT ||
        !parse_hexadecimal(line->fields[0], true, &symbol->address)) {
        return false;
    }
    const char first = line->fields[1][0];
    if (!((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_')) {
        return false;
    }
    /* GNU ld demangles C++ names, which may contain spaces */
    join_fields(line->fields[1], line->end);
    symbol->name = line->fields[1];
    symbol->kind = SJ_SYMBOL_FUNCTION;
    return strstr(symbol->name, " = ") == NULL;
}

static bool read_line(const map_line *line, const char **function, sj_symbol *symbol)
{
    const sj_symbol empty = *symbol;
    if (read_section_line(line, function, symbol)) {
        return true;
    }
    static bool (*const formats[])(const map_line *, sj_symbol *) = {
        read_listing_line, read_lld_line, read_mold_line, read_ld_line};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        *symbol = empty;
        if (formats[i](line, symbol)) {
            return true;
        }
    }
    return false;
}

sj_status sj_map_parse(sj_slice bytes, char **names, sj_symbols *symbols)
{
    *names = malloc(bytes.size + 1);
    if (*names == NULL) {
        return SJ_ENOMEM;
    }
    if (bytes.size > 0) {
        memcpy(*names, bytes.data, bytes.size);
    }
    (*names)[bytes.size] = 0;
    const size_t before = symbols->count;
    char *const end = *names + bytes.size;
    const char *function = NULL;
    for (char *at = *names; at < end;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *const line_end = newline != NULL ? newline : end;
        *line_end = 0;
        const map_line line = split_line(at, line_end);
        sj_symbol symbol = {.source = SJ_SYMBOL_MAP_FILE};
        if (read_line(&line, &function, &symbol)) {
            SJ_TRY(sj_symbols_add(symbols, symbol));
        }
        at = line_end + 1;
    }
    return symbols->count > before ? SJ_OK : SJ_ECORRUPT;
}
