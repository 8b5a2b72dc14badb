#include "agent/runtimes/mono/type_names.h"

#include "proto/base/bisect.h"

#include <stdio.h>
#include <stdlib.h>

enum { NESTING_MAX = 32, PARAMETERS_MAX = 256, HAS_GENERIC = 0x10 };

enum { TYPE_NAME = 1, TYPE_NAMESPACE = 2, TYPE_EXTENDS = 3, REFERENCE_SCOPE = 0 };

/* Element types (ECMA-335, II.23.1.16). */
enum {
    ELEMENT_NAMED = 0x0f, /* Number of element types in element_names. */
    ELEMENT_POINTER = 0x0f,
    ELEMENT_BY_REFERENCE = 0x10,
    ELEMENT_VALUE_TYPE = 0x11,
    ELEMENT_CLASS = 0x12,
    ELEMENT_TYPE_VARIABLE = 0x13,
    ELEMENT_ARRAY = 0x14,
    ELEMENT_GENERIC = 0x15,
    ELEMENT_TYPED_REFERENCE = 0x16,
    ELEMENT_INT = 0x18,
    ELEMENT_UINT = 0x19,
    ELEMENT_FUNCTION = 0x1b,
    ELEMENT_OBJECT = 0x1c,
    ELEMENT_VECTOR = 0x1d,
    ELEMENT_METHOD_VARIABLE = 0x1e,
    ELEMENT_REQUIRED = 0x1f,
    ELEMENT_OPTIONAL = 0x20,
    ELEMENT_SENTINEL = 0x41,
    ELEMENT_PINNED = 0x45
};

static const char *const element_names[ELEMENT_NAMED] = {
    "?",   "void", "bool", "char",  "sbyte",  "byte",   "int16", "uint16",
    "int", "uint", "long", "ulong", "single", "double", "string"};

void sj_name_add(sj_name_text *text, const char *part)
{
    for (; *part != '\0'; part++) {
        if (text->used + 1 >= text->capacity) {
            text->is_cut = true;
            return;
        }
        const unsigned char byte = (unsigned char)*part;
        text->bytes[text->used++] = byte < 0x20 || byte == 0x7f ? '?' : *part;
    }
}

const char *sj_name_finish(sj_name_text *text)
{
    static const char dots[] = "...";
    if (text->is_cut) {
        /* Does not cut within a UTF-8 character. */
        text->used = text->capacity - sizeof(dots);
        while (text->used > 0 && (text->bytes[text->used] & 0xc0) == 0x80) {
            text->used--;
        }
        memcpy(text->bytes + text->used, dots, sizeof(dots));
    } else {
        text->bytes[text->used] = '\0';
    }
    return text->bytes;
}

sj_status sj_type_names_open(const sj_assembly *assembly, sj_type_names *names)
{
    const uint32_t types = assembly->tables[SJ_TABLE_TYPE_DEF].rows;
    const uint32_t nested = assembly->tables[SJ_TABLE_NESTED_CLASS].rows;
    *names = (sj_type_names){.assembly = assembly};
    names->enclosing = calloc((size_t)types + 1, sizeof(*names->enclosing));
    if (names->enclosing == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 1; i <= nested; i++) {
        const uint32_t inner = sj_assembly_cell(assembly, SJ_TABLE_NESTED_CLASS, i, 0);
        const uint32_t outer = sj_assembly_cell(assembly, SJ_TABLE_NESTED_CLASS, i, 1);
        if (inner <= types && outer <= types) {
            names->enclosing[inner] = outer;
        }
    }
    return SJ_OK;
}

void sj_type_names_close(sj_type_names *names)
{
    free(names->enclosing);
    names->enclosing = NULL;
}

static void add_cell(const sj_type_names *names, uint32_t table, uint32_t row, uint32_t column,
                     sj_name_text *text)
{
    sj_name_add(text, sj_assembly_string(names->assembly,
                                         sj_assembly_cell(names->assembly, table, row, column)));
}

static void add_namespace(const sj_type_names *names, uint32_t table, uint32_t row,
                          sj_name_text *text)
{
    const size_t before = text->used;
    add_cell(names, table, row, TYPE_NAMESPACE, text);
    if (text->used != before) {
        sj_name_add(text, ".");
    }
}

/* Appends the names of nested types, the outermost type first. In `chain`, the innermost is first.
 */
static void add_chain(const sj_type_names *names, uint32_t table, const uint32_t *chain,
                      uint32_t count, sj_name_text *text)
{
    if (count == 0) {
        return;
    }
    add_namespace(names, table, chain[count - 1], text);
    while (count-- > 0) {
        add_cell(names, table, chain[count], TYPE_NAME, text);
        sj_name_add(text, count > 0 ? "/" : "");
    }
}

void sj_type_names_add_definition(const sj_type_names *names, uint32_t type, sj_name_text *text)
{
    uint32_t chain[NESTING_MAX];
    uint32_t count = 0;
    const uint32_t types = names->assembly->tables[SJ_TABLE_TYPE_DEF].rows;
    while (type != 0 && type <= types && count < NESTING_MAX) {
        chain[count++] = type;
        type = names->enclosing[type];
    }
    add_chain(names, SJ_TABLE_TYPE_DEF, chain, count, text);
}

/* Appends the name of a type reference. If its scope is a type reference, it is nested in that
 * type. */
static void add_reference(const sj_type_names *names, uint32_t row, sj_name_text *text)
{
    enum { SCOPE_BITS = 2, SCOPE_TYPE_REF = 3 };
    uint32_t chain[NESTING_MAX];
    uint32_t count = 0;
    while (row != 0 && count < NESTING_MAX) {
        chain[count++] = row;
        const uint32_t scope =
            sj_assembly_cell(names->assembly, SJ_TABLE_TYPE_REF, row, REFERENCE_SCOPE);
        row = (scope & 3) == SCOPE_TYPE_REF ? scope >> SCOPE_BITS : 0;
    }
    add_chain(names, SJ_TABLE_TYPE_REF, chain, count, text);
}

static void add_type(const sj_type_names *names, const sj_type_scope *scope, sj_reader *reader,
                     unsigned nesting, sj_name_text *text);

/* Appends the name of a TypeDefOrRefOrSpecEncoded (ECMA-335, II.23.2.8). */
static void add_named_type(const sj_type_names *names, const sj_type_scope *scope, uint32_t encoded,
                           unsigned nesting, sj_name_text *text)
{
    enum { DEFINITION = 0, REFERENCE = 1, SPECIFICATION = 2 };
    switch (encoded & 3) {
    case DEFINITION:
        sj_type_names_add_definition(names, encoded >> 2, text);
        break;
    case REFERENCE:
        add_reference(names, encoded >> 2, text);
        break;
    default: {
        const sj_slice blob =
            sj_assembly_blob(names->assembly, sj_assembly_cell(names->assembly, SJ_TABLE_TYPE_SPEC,
                                                               encoded >> 2, 0));
        sj_reader reader = sj_reader_of(blob.data, blob.size);
        add_type(names, scope, &reader, nesting + 1, text);
    }
    }
}

void sj_type_names_add_super(const sj_type_names *names, uint32_t type, sj_name_text *text)
{
    const sj_type_scope scope = {.type = type};
    const uint32_t super = sj_assembly_cell(names->assembly, SJ_TABLE_TYPE_DEF, type, TYPE_EXTENDS);
    if (super >> 2 != 0) {
        add_named_type(names, &scope, super, 0, text);
    }
}

/* Appends the name of a generic parameter, or `sign` and its number if it has none. The table is
 * sorted by owner (ECMA-335, II.22.20). */
static void add_variable(const sj_type_names *names, uint32_t owner, uint32_t number,
                         const char *sign, sj_name_text *text)
{
    enum { NUMBER = 0, OWNER = 2, NAME = 3 };
    const sj_assembly *assembly = names->assembly;
    char plain[16];
    uint32_t low = SJ_BISECT(1, assembly->tables[SJ_TABLE_GENERIC_PARAM].rows + 1, i,
                             sj_assembly_cell(assembly, SJ_TABLE_GENERIC_PARAM, i, OWNER) < owner);
    for (; sj_assembly_cell(assembly, SJ_TABLE_GENERIC_PARAM, low, OWNER) == owner; low++) {
        if (sj_assembly_cell(assembly, SJ_TABLE_GENERIC_PARAM, low, NUMBER) == number) {
            add_cell(names, SJ_TABLE_GENERIC_PARAM, low, NAME, text);
            return;
        }
    }
    snprintf(plain, sizeof(plain), "%s%u", sign, number);
    sj_name_add(text, plain);
}

/* Appends an instance of a generic type: Type<A, B>. */
static void add_instance(const sj_type_names *names, const sj_type_scope *scope, sj_reader *reader,
                         unsigned nesting, sj_name_text *text)
{
    (void)sj_read_u8(reader); /* Class or value type. */
    add_named_type(names, scope, sj_assembly_compressed(reader), nesting, text);
    const uint32_t count = sj_assembly_compressed(reader);
    sj_name_add(text, "<");
    for (uint32_t i = 0; i < count && i < PARAMETERS_MAX && !reader->bad; i++) {
        sj_name_add(text, i > 0 ? ", " : "");
        add_type(names, scope, reader, nesting + 1, text);
    }
    sj_name_add(text, ">");
}

static void add_array(const sj_type_names *names, const sj_type_scope *scope, sj_reader *reader,
                      unsigned nesting, sj_name_text *text)
{
    add_type(names, scope, reader, nesting + 1, text);
    const uint32_t rank = sj_assembly_compressed(reader);
    sj_name_add(text, "[");
    for (uint32_t i = 1; i < rank && i < NESTING_MAX; i++) {
        sj_name_add(text, ",");
    }
    sj_name_add(text, "]");
    for (uint32_t lists = 0; lists < 2; lists++) { /* Sizes, then lower bounds. */
        const uint32_t count = sj_assembly_compressed(reader);
        for (uint32_t i = 0; i < count && !reader->bad; i++) {
            (void)sj_assembly_compressed(reader);
        }
    }
}

/* Appends the next type and then `mark`. */
static void add_wrapped(const sj_type_names *names, const sj_type_scope *scope, sj_reader *reader,
                        unsigned nesting, const char *mark, sj_name_text *text)
{
    add_type(names, scope, reader, nesting + 1, text);
    sj_name_add(text, mark);
}

static void add_type(const sj_type_names *names, const sj_type_scope *scope, sj_reader *reader,
                     unsigned nesting, sj_name_text *text)
{
    const uint8_t element = sj_read_u8(reader);
    if (reader->bad || nesting > NESTING_MAX || text->is_cut) {
        reader->bad = true;
        return;
    }
    if (element < ELEMENT_NAMED) {
        sj_name_add(text, element_names[element]);
        return;
    }
    switch (element) {
    case ELEMENT_POINTER:
        add_wrapped(names, scope, reader, nesting, "*", text);
        break;
    case ELEMENT_BY_REFERENCE:
        add_wrapped(names, scope, reader, nesting, "&", text);
        break;
    case ELEMENT_VECTOR:
        add_wrapped(names, scope, reader, nesting, "[]", text);
        break;
    case ELEMENT_VALUE_TYPE:
    case ELEMENT_CLASS:
        add_named_type(names, scope, sj_assembly_compressed(reader), nesting, text);
        break;
    case ELEMENT_TYPE_VARIABLE:
        add_variable(names, scope->type << 1, sj_assembly_compressed(reader), "!", text);
        break;
    case ELEMENT_METHOD_VARIABLE:
        add_variable(names, scope->method << 1 | 1, sj_assembly_compressed(reader), "!!", text);
        break;
    case ELEMENT_ARRAY:
        add_array(names, scope, reader, nesting, text);
        break;
    case ELEMENT_GENERIC:
        add_instance(names, scope, reader, nesting, text);
        break;
    case ELEMENT_REQUIRED:
    case ELEMENT_OPTIONAL:
        (void)sj_assembly_compressed(reader);
        add_type(names, scope, reader, nesting + 1, text);
        break;
    case ELEMENT_SENTINEL:
    case ELEMENT_PINNED:
        add_type(names, scope, reader, nesting + 1, text);
        break;
    default:
        sj_name_add(text, element == ELEMENT_OBJECT            ? "object"
                          : element == ELEMENT_INT             ? "intptr"
                          : element == ELEMENT_UINT            ? "uintptr"
                          : element == ELEMENT_TYPED_REFERENCE ? "typedbyref"
                          : element == ELEMENT_FUNCTION        ? "fnptr"
                                                               : "?");
        reader->bad = element == ELEMENT_FUNCTION; /* Its signature follows, which is not parsed. */
    }
}

void sj_type_names_add_parameters(const sj_type_names *names, const sj_type_scope *scope,
                                  sj_slice signature, sj_name_text *text)
{
    sj_reader reader = sj_reader_of(signature.data, signature.size);
    sj_name_text result = {.capacity = sizeof(result.bytes)};
    const uint8_t convention = sj_read_u8(&reader);
    if ((convention & HAS_GENERIC) != 0) {
        (void)sj_assembly_compressed(&reader);
    }
    const uint32_t count = sj_assembly_compressed(&reader);
    add_type(names, scope, &reader, 0, &result);
    for (uint32_t i = 0; i < count && i < PARAMETERS_MAX && !reader.bad; i++) {
        sj_name_add(text, i > 0 ? "," : "");
        add_type(names, scope, &reader, 0, text);
    }
}
