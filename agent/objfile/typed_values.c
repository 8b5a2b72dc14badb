#include "agent/objfile/typed_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 128,
    TYPE_BYTES = 192,
    MOST_ENUMERATORS = 4096,
    MOST_FIELDS = 64, /* fields of one structure */
    /* most fields visited for one parameter, or DIEs visited in one search for a child */
    MOST_EXAMINED = 4096,
    DEEPEST = 4,
    WORD_BYTES = 8,
    MOST_BEHIND = 128 /* bytes recorded at the address in a parameter */
};

/* The parameter that is being described. */
typedef struct value_maker {
    sj_typed_function *function;
    const sj_parameter_place *place;
    bool is_result;
    /* the result whose registers hold the value; NULL: a parameter, or a result in memory */
    const sj_typed_result *result;
    int examined;
} value_maker;

/* Where one value is recorded, and in which form. All zero: the type is not supported. */
typedef struct value_shape {
    uint32_t kind;       /* kind of the stored value; 0: the value is not recorded */
    uint32_t place_kind; /* kind of the value's place; 0: the kind of the word there */
    uint8_t bytes;
} value_shape;

static const char *name_of(Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    return name != NULL ? name : "";
}

static void append(char text[TYPE_BYTES], const char *part)
{
    const size_t used = strlen(text);
    snprintf(text + used, TYPE_BYTES - used, "%s", part);
}

/* Appends the name of a type, as in C. Differs from C: an array of any length ends in "[]", and the
 * type of a function is "function". */
static void write_type(Dwarf_Die *type, char text[TYPE_BYTES], int depth)
{
    static const struct {
        int tag;
        const char *before;
        const char *behind;
    } wrappers[] = {
        {DW_TAG_const_type, "const ", ""},         {DW_TAG_volatile_type, "volatile ", ""},
        {DW_TAG_pointer_type, "", " *"},           {DW_TAG_reference_type, "", " &"},
        {DW_TAG_rvalue_reference_type, "", " &&"}, {DW_TAG_restrict_type, "", ""},
        {DW_TAG_atomic_type, "_Atomic ", ""},      {DW_TAG_array_type, "", "[]"}};
    const int tag = dwarf_tag(type);
    const char *name = name_of(type);
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        Dwarf_Die inner;
        if (wrappers[i].tag != tag) {
            continue;
        }
        const bool has_name = name[0] != '\0'; /* Rust's references have names */
        append(text, has_name ? name : wrappers[i].before);
        if (!has_name && depth < DEEPEST * 4 && sj_type_of(type, &inner)) {
            write_type(&inner, text, depth + 1);
        } else if (!has_name) {
            append(text, "void");
        }
        append(text, has_name ? "" : wrappers[i].behind);
        return;
    }
    append(text, tag == DW_TAG_subroutine_type ? "function" : name[0] != '\0' ? name : "unnamed");
}

static value_shape shape_of_base(Dwarf_Die *type)
{
    const uint64_t bytes = sj_type_number(type, DW_AT_byte_size, 0);
    value_shape shape = {.bytes = (uint8_t)bytes};
    if (bytes == 0 || bytes > WORD_BYTES) {
        return (value_shape){0};
    }
    const bool is_wide = bytes > 4;
    switch (sj_type_number(type, DW_AT_encoding, 0)) {
    case DW_ATE_boolean:
        shape.kind = SJ_VALUE_BOOL;
        break;
    case DW_ATE_float:
        shape.kind = bytes == 4 ? SJ_VALUE_FLOAT : bytes == 8 ? SJ_VALUE_DOUBLE : 0;
        break;
    case DW_ATE_signed_char:
    case DW_ATE_signed:
        shape.kind = bytes == 1 ? SJ_VALUE_CHAR : is_wide ? SJ_VALUE_LONG : SJ_VALUE_INT;
        break;
    case DW_ATE_unsigned_char:
    case DW_ATE_unsigned:
    case DW_ATE_UTF:
        shape.kind = is_wide ? SJ_VALUE_ULONG : SJ_VALUE_UINT;
        break;
    default:
        break;
    }
    return shape;
}

static bool is_character(Dwarf_Die *type)
{
    Dwarf_Die stripped;
    return sj_type_strip(type, &stripped) && dwarf_tag(&stripped) == DW_TAG_base_type &&
           strcmp(name_of(&stripped), "char") == 0 &&
           sj_type_number(&stripped, DW_AT_byte_size, 0) == 1;
}

static bool has_member_at(Dwarf_Die *type, const char *name, uint64_t wanted)
{
    Dwarf_Die member;
    uint64_t offset = 0;
    int examined = 0;
    if (dwarf_child(type, &member) != 0) {
        return false;
    }
    do {
        if (dwarf_tag(&member) == DW_TAG_member && strcmp(name_of(&member), name) == 0) {
            return sj_type_member_offset(&member, &offset) && offset == wanted;
        }
    } while (++examined < MOST_EXAMINED && dwarf_siblingof(&member, &member) == 0);
    return false;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Returns the place kind for std::string, std::string_view and &str; 0 for any other type. */
static uint32_t text_place(Dwarf_Die *type)
{
    const char *name = name_of(type);
    if (begins_with(name, "basic_string<char,") && has_member_at(type, "_M_dataplus", 0) &&
        has_member_at(type, "_M_string_length", WORD_BYTES)) {
        return SJ_PLACE_TEXT_AT;
    }
    if (begins_with(name, "basic_string_view<char,") && has_member_at(type, "_M_len", 0) &&
        has_member_at(type, "_M_str", WORD_BYTES)) {
        return SJ_PLACE_LENGTH_TEXT;
    }
    if (strcmp(name, "&str") == 0 && has_member_at(type, "data_ptr", 0) &&
        has_member_at(type, "length", WORD_BYTES)) {
        return SJ_PLACE_TEXT_LENGTH;
    }
    return 0;
}

/* Returns the shape of a pointer to `to`, or of an object of type `to` that is passed by address.
 * If `is_known` is false, ignores `to`. */
static value_shape shape_of_address(Dwarf_Die *to, bool is_known)
{
    Dwarf_Die stripped;
    value_shape shape = {.kind = SJ_VALUE_POINTER, .bytes = WORD_BYTES};
    if (!is_known) {
        return shape;
    }
    if (is_character(to)) {
        shape.kind = shape.place_kind = SJ_VALUE_STRING;
    } else if (sj_type_strip(to, &stripped) && text_place(&stripped) == SJ_PLACE_TEXT_AT) {
        shape.kind = SJ_VALUE_STRING;
        shape.place_kind = SJ_PLACE_TEXT_AT;
    }
    return shape;
}

/* Returns the shape of a stripped type; all zero for structures and other unsupported types. */
static value_shape shape_of(Dwarf_Die *type)
{
    Dwarf_Die to;
    const uint64_t bytes = sj_type_number(type, DW_AT_byte_size, WORD_BYTES);
    switch (dwarf_tag(type)) {
    case DW_TAG_base_type:
        return shape_of_base(type);
    case DW_TAG_enumeration_type:
        return bytes <= WORD_BYTES ? (value_shape){.kind = SJ_VALUE_OBJECT, .bytes = (uint8_t)bytes}
                                   : (value_shape){0};
    case DW_TAG_pointer_type:
        return shape_of_address(&to, sj_type_of(type, &to));
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: /* a reference to char refers to one char, not to text */
        return shape_of_address(&to, sj_type_of(type, &to) && !is_character(&to));
    default:
        return (value_shape){0};
    }
}

static sj_status read_enumerators(Dwarf_Die *type, sj_typed_value *value)
{
    Dwarf_Die child;
    Dwarf_Attribute attribute;
    Dwarf_Sword number = 0;
    size_t capacity = 0;
    if (dwarf_tag(type) != DW_TAG_enumeration_type || dwarf_child(type, &child) != 0) {
        return SJ_OK;
    }
    do {
        if (dwarf_tag(&child) != DW_TAG_enumerator ||
            dwarf_attr(&child, DW_AT_const_value, &attribute) == NULL ||
            dwarf_formsdata(&attribute, &number) != 0) {
            continue;
        }
        if (value->enumerator_count == capacity) {
            capacity = capacity != 0 ? 2 * capacity : 8;
            sj_enumerator *grown = realloc(value->enumerators, capacity * sizeof(*grown));
            if (grown == NULL) {
                return SJ_ENOMEM;
            }
            value->enumerators = grown;
        }
        char *name = strdup(name_of(&child));
        if (name == NULL) {
            return SJ_ENOMEM;
        }
        value->enumerators[value->enumerator_count++] = (sj_enumerator){number, name};
    } while (value->enumerator_count < MOST_ENUMERATORS && dwarf_siblingof(&child, &child) == 0);
    return SJ_OK;
}

/* Counts the values that have a position of their own. Values at SJ_VALUE_RESULT do not. */
static uint32_t count_arguments(const sj_typed_function *function)
{
    uint32_t count = 0;
    for (size_t i = 0; i < function->count; i++) {
        count += sj_value_position(function->values[i].descriptor) != SJ_VALUE_RESULT;
    }
    return count;
}

static bool has_space(const value_maker *maker)
{
    return maker->is_result || count_arguments(maker->function) < SJ_VALUE_LAST_POSITION;
}

static sj_status add_value(value_maker *maker, const char *name, Dwarf_Die *of,
                           const sj_typed_value *made, Dwarf_Die *enumeration)
{
    char type[TYPE_BYTES] = "";
    sj_typed_function *function = maker->function;
    sj_typed_value *value = &function->values[function->count];
    const uint32_t position =
        maker->is_result ? (uint32_t)SJ_VALUE_RESULT : count_arguments(function) + 1;
    write_type(of, type, 0);
    *value = *made;
    value->descriptor = sj_value_descriptor(position, sj_value_kind_of(made->descriptor));
    value->name = strdup(name);
    value->type = strdup(type);
    function->count++;
    SJ_TRY(enumeration != NULL ? read_enumerators(enumeration, value) : SJ_OK);
    return value->name != NULL && value->type != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Adds one value that is not split further. `offset` is its offset in the parameter. */
static sj_status add_leaf(value_maker *maker, const char *name, Dwarf_Die *of, Dwarf_Die *stripped,
                          uint64_t offset)
{
    const sj_parameter_place *place = maker->place;
    const value_shape shape =
        place->is_address ? shape_of_address(stripped, true) : shape_of(stripped);
    uint32_t from_byte = 0;
    const uint8_t word = sj_parameter_piece(place, offset, &from_byte);
    const bool is_inside = from_byte + shape.bytes <= WORD_BYTES;
    /* An object passed by address is added here only if it is text. Its fields are added by
     * sj_typed_values_add_behind. */
    const bool is_held =
        shape.kind != 0 && is_inside && (!place->is_address || shape.kind == SJ_VALUE_STRING);
    sj_typed_value value = {.descriptor = sj_value_descriptor(0, is_held ? shape.kind : 0)};
    if (!is_held || !place->is_known || word == 0) {
        value.state =
            place->is_known && (!is_held || word == 0) ? SJ_TYPED_UNSUPPORTED : SJ_TYPED_UNKNOWN;
        return add_value(maker, name, of, &value, NULL);
    }
    value.place = shape.place_kind != 0
                      ? sj_value_descriptor(sj_value_position(word), shape.place_kind)
                      : word;
    value.is_given = place->is_given;
    value.from_byte = (uint8_t)from_byte;
    value.bytes = shape.bytes;
    return add_value(maker, name, of, &value, stripped);
}

/* Adds a long double. Its bytes are in the place of a parameter or in the registers of a result. */
static sj_status add_extended(value_maker *maker, const char *name, Dwarf_Die *of, Dwarf_Die *type)
{
    const uint8_t word = sj_parameter_word(maker->place, 0);
    const uint32_t from = maker->is_result ? SJ_RESULT_EXTENDED * WORD_BYTES : 0;
    const bool is_held = word != 0 || maker->is_result;
    const uint32_t kind =
        sj_value_is_real(sj_value_kind_of(word)) ? SJ_PLACE_VECTOR : SJ_VALUE_STRING;
    const sj_typed_value value = {
        .place = is_held ? sj_value_descriptor(sj_value_position(word), kind) : 0,
        .descriptor = sj_value_descriptor(0, is_held ? SJ_VALUE_OBJECT : 0),
        .from_byte = (uint16_t)from,
        .bytes = maker->place->extended_bytes,
        .is_behind = is_held,
        .is_own = is_held,
        .is_extended = is_held,
        .state = is_held ? SJ_TYPED_RECORDED : SJ_TYPED_UNSUPPORTED};
    return add_value(maker, name, of, &value, type);
}

static bool is_wide(Dwarf_Die *type)
{
    const uint64_t encoding = sj_type_number(type, DW_AT_encoding, 0);
    return dwarf_tag(type) == DW_TAG_base_type &&
           sj_type_number(type, DW_AT_byte_size, 0) == 2 * (uint64_t)WORD_BYTES &&
           (encoding == DW_ATE_signed || encoding == DW_ATE_unsigned);
}

/* Adds the two halves of a 128-bit integer parameter as two values. */
static sj_status add_halves(value_maker *maker, const char *name, Dwarf_Die *of, Dwarf_Die *type,
                            uint64_t offset)
{
    const bool is_signed = sj_type_number(type, DW_AT_encoding, 0) == DW_ATE_signed;
    for (uint32_t i = 0; i < 2 && has_space(maker); i++) {
        char half[NAME_BYTES];
        uint32_t from_byte = 0;
        const uint8_t word =
            sj_parameter_piece(maker->place, offset + (uint64_t)i * WORD_BYTES, &from_byte);
        const uint32_t kind = i == 1 && is_signed ? SJ_VALUE_LONG : SJ_VALUE_ULONG;
        const sj_typed_value value = {.place = word,
                                      .descriptor = sj_value_descriptor(0, word != 0 ? kind : 0),
                                      .bytes = WORD_BYTES,
                                      .state =
                                          word != 0 ? SJ_TYPED_RECORDED : SJ_TYPED_UNSUPPORTED};
        snprintf(half, sizeof(half), "%.*s.%s", NAME_BYTES - 8, name, i == 0 ? "low" : "high");
        SJ_TRY(add_value(maker, half, of, &value, NULL));
    }
    return SJ_OK;
}

/* Adds a std::string_view or a &str: its address and its length are two consecutive words. */
static sj_status add_text(value_maker *maker, const char *name, Dwarf_Die *of, uint32_t place_kind)
{
    const uint8_t first = sj_parameter_word(maker->place, 0);
    const uint8_t second = sj_parameter_word(maker->place, 1);
    const bool is_pair =
        maker->is_result ? first != 0
                         : first != 0 && second == sj_value_descriptor(sj_value_position(first) + 1,
                                                                       sj_value_kind_of(first));
    const sj_typed_value value = {
        .place = is_pair ? sj_value_descriptor(sj_value_position(first), place_kind) : 0,
        .descriptor = sj_value_descriptor(0, is_pair ? SJ_VALUE_STRING : 0),
        .bytes = WORD_BYTES,
        .state = is_pair                  ? SJ_TYPED_RECORDED
                 : maker->place->is_known ? SJ_TYPED_UNSUPPORTED
                                          : SJ_TYPED_UNKNOWN};
    return add_value(maker, name, of, &value, NULL);
}

static sj_status add_any(value_maker *maker, const char *name, Dwarf_Die *of, uint64_t offset,
                         int depth);

static sj_status add_fields(value_maker *maker, const char *name, Dwarf_Die *type, uint64_t offset,
                            int depth)
{
    Dwarf_Die member;
    Dwarf_Die of;
    uint64_t at = 0;
    int visited = 0;
    if (dwarf_child(type, &member) != 0) {
        return SJ_OK;
    }
    do {
        char full[NAME_BYTES];
        if (dwarf_tag(&member) != DW_TAG_member || !sj_type_member_offset(&member, &at) ||
            !sj_type_of(&member, &of) || at > UINT16_MAX) {
            continue;
        }
        snprintf(full, sizeof(full), "%s.%s", name, name_of(&member));
        SJ_TRY(add_any(maker, full, &of, offset + at, depth + 1));
    } while (has_space(maker) && ++visited < MOST_FIELDS && ++maker->examined < MOST_EXAMINED &&
             dwarf_siblingof(&member, &member) == 0);
    return SJ_OK;
}

/* Adds a value of any type. Splits a structure into its fields only if it is a parameter whose
 * words have places. */
static sj_status add_any(value_maker *maker, const char *name, Dwarf_Die *of, uint64_t offset,
                         int depth)
{
    Dwarf_Die type;
    const sj_parameter_place *place = maker->place;
    const sj_typed_value unheld = {.state =
                                       place->is_known ? SJ_TYPED_UNSUPPORTED : SJ_TYPED_UNKNOWN};
    if (!has_space(maker)) {
        return SJ_OK;
    }
    if (!sj_type_strip(of, &type)) {
        return add_value(maker, name, of, &unheld, NULL);
    }
    const int tag = dwarf_tag(&type);
    const uint32_t text = sj_type_is_structure(tag) ? text_place(&type) : 0;
    if (depth == 0 && place->extended_bytes != 0 && place->is_known) {
        return add_extended(maker, name, of, &type);
    }
    if (depth == 0 && text != 0 && text != SJ_PLACE_TEXT_AT && !place->is_address) {
        return add_text(maker, name, of, text);
    }
    const bool has_fields = sj_type_is_structure(tag) && tag != DW_TAG_union_type &&
                            !place->is_address && place->is_known && !maker->is_result &&
                            sj_parameter_word(place, 0) != 0;
    if (has_fields && depth < DEEPEST) {
        return add_fields(maker, name, &type, offset, depth);
    }
    if (is_wide(&type) && !place->is_address && place->is_known && !maker->is_result) {
        return add_halves(maker, name, of, &type, offset);
    }
    return add_leaf(maker, name, of, &type, offset);
}

sj_status sj_typed_values_add(sj_typed_function *function, const char *name, Dwarf_Die *type,
                              const sj_parameter_place *place, bool is_result)
{
    value_maker maker = {.function = function, .place = place, .is_result = is_result};
    return add_any(&maker, name, type, 0, 0);
}

/* Adds a value at `offset` in the memory that a parameter points to, or in a structure that is the
 * result. Adds nothing for types that are not numbers, enumerations or addresses. */
static sj_status add_behind(value_maker *maker, const char *name, Dwarf_Die *of,
                            Dwarf_Die *stripped, uint64_t offset)
{
    value_shape shape = shape_of(stripped);
    const sj_typed_result *result = maker->result;
    const uint32_t position = sj_value_position(sj_parameter_word(maker->place, 0));
    if (shape.kind == SJ_VALUE_STRING) { /* record the pointer, not the text it points to */
        shape.kind = SJ_VALUE_POINTER;
    }
    if (shape.kind == 0 || offset + shape.bytes > MOST_BEHIND || !has_space(maker) ||
        (result != NULL && !sj_result_piece(result->layout, result->is_aapcs, offset, &offset))) {
        return SJ_OK;
    }
    const sj_typed_value value = {.place = sj_value_descriptor(position, SJ_VALUE_STRING),
                                  .descriptor = sj_value_descriptor(0, shape.kind),
                                  .from_byte = (uint16_t)offset,
                                  .bytes = shape.bytes,
                                  .is_behind = true,
                                  .is_own = result != NULL,
                                  .is_given = maker->place->is_given};
    return add_value(maker, name, of, &value, stripped);
}

/* Returns the size of the elements of a std::vector in bytes; 0 for any other type. */
static uint64_t vector_element(Dwarf_Die *type)
{
    enum { VECTOR_BYTES = 3 * WORD_BYTES };
    Dwarf_Die child;
    Dwarf_Die of;
    Dwarf_Die stripped;
    int examined = 0;
    if (!begins_with(name_of(type), "vector<") || dwarf_child(type, &child) != 0 ||
        sj_type_number(type, DW_AT_byte_size, 0) != VECTOR_BYTES) {
        return 0;
    }
    do {
        if (dwarf_tag(&child) == DW_TAG_template_type_parameter) {
            return sj_type_of(&child, &of) && sj_type_strip(&of, &stripped)
                       ? sj_type_number(&stripped, DW_AT_byte_size, WORD_BYTES)
                       : 0;
        }
    } while (++examined < MOST_EXAMINED && dwarf_siblingof(&child, &child) == 0);
    return 0;
}

static sj_status add_vector(value_maker *maker, const char *name, Dwarf_Die *type, uint64_t element)
{
    char full[NAME_BYTES];
    const uint32_t position = sj_value_position(sj_parameter_word(maker->place, 0));
    const sj_typed_value value = {.place = sj_value_descriptor(position, SJ_VALUE_STRING),
                                  .descriptor = sj_value_descriptor(0, SJ_VALUE_ULONG),
                                  .bytes = WORD_BYTES,
                                  .is_behind = true,
                                  .is_given = maker->place->is_given,
                                  .divided_by = (uint32_t)element};
    snprintf(full, sizeof(full), "%s.size()", name);
    return has_space(maker) ? add_value(maker, full, type, &value, NULL) : SJ_OK;
}

static sj_status add_members_behind(value_maker *maker, const char *name, Dwarf_Die *type,
                                    uint64_t offset, int depth);

static sj_status add_member_behind(value_maker *maker, const char *name, Dwarf_Die *member,
                                   uint64_t offset, int depth)
{
    Dwarf_Die of;
    Dwarf_Die stripped;
    uint64_t at = 0;
    char full[NAME_BYTES];
    const bool is_base = dwarf_tag(member) == DW_TAG_inheritance;
    if ((dwarf_tag(member) != DW_TAG_member && !is_base) || !sj_type_member_offset(member, &at) ||
        !sj_type_of(member, &of) || !sj_type_strip(&of, &stripped) || offset + at >= MOST_BEHIND) {
        return SJ_OK;
    }
    if (is_base) {
        snprintf(full, sizeof(full), "%.100s", name);
    } else {
        const char *behind = strchr(".>", name[strlen(name) - 1]) != NULL ? "" : ".";
        snprintf(full, sizeof(full), "%.60s%s%.60s", name, behind, name_of(member));
    }
    if (sj_type_is_structure(dwarf_tag(&stripped))) {
        return dwarf_tag(&stripped) != DW_TAG_union_type && depth < DEEPEST
                   ? add_members_behind(maker, full, &stripped, offset + at, depth + 1)
                   : SJ_OK;
    }
    return add_behind(maker, full, &of, &stripped, offset + at);
}

static sj_status add_members_behind(value_maker *maker, const char *name, Dwarf_Die *type,
                                    uint64_t offset, int depth)
{
    Dwarf_Die member;
    int visited = 0;
    if (dwarf_child(type, &member) != 0) {
        return SJ_OK;
    }
    do {
        SJ_TRY(add_member_behind(maker, name, &member, offset, depth));
    } while (has_space(maker) && ++visited < MOST_FIELDS && ++maker->examined < MOST_EXAMINED &&
             dwarf_siblingof(&member, &member) == 0);
    return SJ_OK;
}

/* Adds the size() of a std::vector, or the members of any other structure. */
static sj_status add_members_of(value_maker *maker, const char *name, Dwarf_Die *structure,
                                bool is_pointer)
{
    char full[NAME_BYTES];
    const uint64_t element = vector_element(structure);
    if (element != 0) {
        return add_vector(maker, name, structure, element);
    }
    snprintf(full, sizeof(full), "%.100s%s", name, is_pointer ? "->" : ".");
    return add_members_behind(maker, full, structure, 0, 0);
}

static bool has_fields(Dwarf_Die *type, Dwarf_Die *structure)
{
    return sj_type_strip(type, structure) && sj_type_is_structure(dwarf_tag(structure)) &&
           dwarf_tag(structure) != DW_TAG_union_type && text_place(structure) == 0;
}

sj_status sj_typed_values_add_behind(sj_typed_function *function, const char *name, Dwarf_Die *type,
                                     const sj_parameter_place *place)
{
    value_maker maker = {.function = function, .place = place};
    Dwarf_Die stripped;
    Dwarf_Die to;
    Dwarf_Die structure;
    const uint8_t word = sj_parameter_word(place, 0);
    if (!place->is_known || word == 0 || sj_value_is_real(sj_value_kind_of(word)) ||
        !sj_type_strip(type, &stripped)) {
        return SJ_OK;
    }
    const int tag = dwarf_tag(&stripped);
    const bool is_pointer = tag == DW_TAG_pointer_type;
    to = stripped;
    if (is_pointer || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) {
        if (!sj_type_of(&stripped, &to)) {
            return SJ_OK;
        }
    } else if (!place->is_address) {
        return SJ_OK;
    }
    return has_fields(&to, &structure) ? add_members_of(&maker, name, &structure, is_pointer)
                                       : SJ_OK;
}

/* Adds the two halves of a 128-bit integer result, which is in two general registers. */
static sj_status add_halves_of_result(value_maker *maker, Dwarf_Die *of, Dwarf_Die *type)
{
    static const char *const names[] = {SJ_TYPED_RESULT ".low", SJ_TYPED_RESULT ".high"};
    const bool is_signed = sj_type_number(type, DW_AT_encoding, 0) == DW_ATE_signed;
    for (uint32_t i = 0; i < 2 && has_space(maker); i++) {
        const uint32_t kind = i == 1 && is_signed ? SJ_VALUE_LONG : SJ_VALUE_ULONG;
        const sj_typed_value value = {.place =
                                          sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_STRING),
                                      .descriptor = sj_value_descriptor(0, kind),
                                      .from_byte = (uint16_t)(i * WORD_BYTES),
                                      .bytes = WORD_BYTES,
                                      .is_behind = true,
                                      .is_own = true};
        SJ_TRY(add_value(maker, names[i], of, &value, type));
    }
    return SJ_OK;
}

sj_status sj_typed_values_add_result(sj_typed_function *function, Dwarf_Die *type,
                                     const sj_typed_result *result)
{
    const size_t before = function->count;
    value_maker maker = {.function = function, .place = result->place};
    Dwarf_Die structure;
    if (result->place->is_known && has_fields(type, &structure)) {
        maker.result = result->place->is_address ? NULL : result;
        if (maker.result != NULL || sj_parameter_word(result->place, 0) != 0) {
            SJ_TRY(add_members_of(&maker, SJ_TYPED_RESULT, &structure, false));
        }
    } else if (result->place->is_known && sj_type_strip(type, &structure) && is_wide(&structure)) {
        SJ_TRY(add_halves_of_result(&maker, type, &structure));
    }
    return function->count != before ? SJ_OK
                                     : sj_typed_values_add(function, "", type, result->place, true);
}
