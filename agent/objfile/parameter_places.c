#include "agent/objfile/parameter_places.h"

enum {
    REAL_REGISTERS = 8,
    WHOLE_REGISTERS_SYSTEM_V = 6,
    WHOLE_REGISTERS_AAPCS = 8,
    WORD_BYTES = 8,
    HOMOGENEOUS_MOST = 4,
    EXTENDED_BYTES_X87 = 10,
    EXTENDED_BYTES_BINARY128 = 16
};

uint8_t sj_extended_bytes(const sj_type_layout *layout, bool is_aapcs)
{
    return !layout->is_extended ? 0 : is_aapcs ? EXTENDED_BYTES_BINARY128 : EXTENDED_BYTES_X87;
}

/* True for a structure of one to four floating-point numbers of one size (AAPCS64). */
static bool is_homogeneous(const sj_type_layout *layout)
{
    return layout->is_aggregate && layout->real_count != 0 &&
           layout->real_count <= HOMOGENEOUS_MOST;
}

bool sj_result_is_in_memory(const sj_type_layout *layout, bool is_aapcs)
{
    if (layout->passing != SJ_PASSED_MEMORY || layout->is_extended) {
        return layout->passing == SJ_PASSED_ADDRESS;
    }
    return !is_aapcs || (layout->bytes > 2 * (uint64_t)WORD_BYTES && !is_homogeneous(layout));
}

static uint32_t whole_registers(const sj_register_use *use)
{
    return use->is_aapcs ? WHOLE_REGISTERS_AAPCS : WHOLE_REGISTERS_SYSTEM_V;
}

static uint8_t assign_whole(sj_register_use *use)
{
    return sj_value_descriptor(++use->whole, SJ_VALUE_LONG);
}

static uint8_t assign_real(sj_register_use *use)
{
    return sj_value_descriptor(++use->real, SJ_VALUE_DOUBLE);
}

/* Assigns words of the stack to a parameter. */
static sj_parameter_place assign_stack(sj_register_use *use, const sj_type_layout *layout)
{
    const uint64_t words = (layout->bytes + WORD_BYTES - 1) / WORD_BYTES;
    if (layout->alignment > WORD_BYTES) {
        use->stack += use->stack % 2;
    }
    const sj_parameter_place place = {.is_known = true,
                                      .is_on_stack = true,
                                      .stack_word = use->stack,
                                      .extended_bytes = sj_extended_bytes(layout, use->is_aapcs)};
    use->is_unknown = words > UINT16_MAX;
    use->stack += (uint32_t)words;
    return place;
}

/* Assigns a general register, or a word of the stack, to the address of a parameter. */
static sj_parameter_place assign_address(sj_register_use *use)
{
    static const sj_type_layout address = {.bytes = WORD_BYTES, .alignment = WORD_BYTES};
    sj_parameter_place place = {.is_known = true};
    if (use->whole < whole_registers(use)) {
        place.words[0] = assign_whole(use);
    } else {
        place = assign_stack(use, &address);
    }
    place.is_address = true;
    return place;
}

static uint32_t count_words(const sj_type_layout *layout, sj_word_class class)
{
    return (layout->words[0] == class) + (layout->words[1] == class);
}

/* Assigns a register to each word of a parameter, or the stack if there are too few registers. */
static sj_parameter_place assign_words(sj_register_use *use, const sj_type_layout *layout)
{
    sj_parameter_place place = {.is_known = true};
    if (use->whole + count_words(layout, SJ_WORD_WHOLE) > whole_registers(use) ||
        use->real + count_words(layout, SJ_WORD_REAL) > REAL_REGISTERS) {
        return assign_stack(use, layout);
    }
    for (int i = 0; i < SJ_LAYOUT_WORDS; i++) {
        place.words[i] = layout->words[i] == SJ_WORD_WHOLE  ? assign_whole(use)
                         : layout->words[i] == SJ_WORD_REAL ? assign_real(use)
                                                            : 0;
    }
    return place;
}

/* Assigns a vector register to each member of a homogeneous aggregate. */
static sj_parameter_place assign_homogeneous(sj_register_use *use, const sj_type_layout *layout)
{
    sj_parameter_place place = {.is_known = true};
    if (use->real + layout->real_count > REAL_REGISTERS) {
        use->real = REAL_REGISTERS;
        return assign_stack(use, layout);
    }
    place.words[0] = sj_value_descriptor(use->real + 1, SJ_VALUE_DOUBLE);
    place.members = layout->real_count;
    place.member_bytes = layout->real_bytes;
    use->real += layout->real_count;
    return place;
}

/* Assigns a vector register to a long double (AAPCS64). */
static sj_parameter_place assign_extended(sj_register_use *use, const sj_type_layout *layout)
{
    sj_parameter_place place = {.is_known = true,
                                .extended_bytes = sj_extended_bytes(layout, use->is_aapcs)};
    if (use->real == REAL_REGISTERS) {
        return assign_stack(use, layout);
    }
    place.words[0] = assign_real(use);
    return place;
}

/* Assigns places to a parameter as AAPCS64 does. */
static sj_parameter_place assign_aapcs(sj_register_use *use, const sj_type_layout *layout)
{
    if (layout->is_extended) {
        return assign_extended(use, layout);
    }
    if (is_homogeneous(layout)) {
        return assign_homogeneous(use, layout);
    }
    if (layout->passing == SJ_PASSED_MEMORY && layout->bytes > 2 * (uint64_t)WORD_BYTES) {
        return assign_address(use);
    }
    sj_type_layout words = *layout;
    /* Other aggregates are in general registers, whatever their members are. */
    if (layout->is_aggregate) {
        words.words[0] = SJ_WORD_WHOLE;
        words.words[1] = layout->bytes > WORD_BYTES ? SJ_WORD_WHOLE : SJ_WORD_NONE;
    }
    const uint32_t whole = count_words(&words, SJ_WORD_WHOLE);
    use->whole += whole == 2 && layout->alignment > WORD_BYTES ? use->whole % 2 : 0;
    const bool is_full = use->whole + whole > WHOLE_REGISTERS_AAPCS;
    const sj_parameter_place place = assign_words(use, &words);
    use->whole = is_full ? WHOLE_REGISTERS_AAPCS : use->whole;
    return place;
}

sj_parameter_place sj_parameter_place_next(sj_register_use *use, const sj_type_layout *layout)
{
    if (use->is_unknown || layout->passing == SJ_PASSED_UNKNOWN) {
        use->is_unknown = true;
        return (sj_parameter_place){0};
    }
    switch (layout->passing) {
    case SJ_PASSED_NOWHERE:
        return (sj_parameter_place){.is_known = true};
    case SJ_PASSED_ADDRESS:
        return assign_address(use);
    case SJ_PASSED_MEMORY:
        return use->is_aapcs ? assign_aapcs(use, layout) : assign_stack(use, layout);
    default:
        return use->is_aapcs ? assign_aapcs(use, layout) : assign_words(use, layout);
    }
}

void sj_register_use_whole(sj_register_use *use, const sj_type_layout *layout)
{
    use->is_unknown =
        use->is_unknown || use->whole + count_words(layout, SJ_WORD_WHOLE) > whole_registers(use);
}

uint8_t sj_parameter_word(const sj_parameter_place *place, uint64_t word)
{
    if (place->is_on_stack) {
        const uint64_t at = place->stack_word + word;
        return word < UINT16_MAX && at < SJ_PLACE_STACK_WORDS
                   ? sj_value_descriptor(SJ_PLACE_STACK + (uint32_t)at, SJ_VALUE_LONG)
                   : 0;
    }
    return word < SJ_LAYOUT_WORDS ? place->words[word] : 0;
}

uint8_t sj_parameter_piece(const sj_parameter_place *place, uint64_t offset, uint32_t *from_byte)
{
    if (place->members == 0) {
        *from_byte = (uint32_t)(offset % WORD_BYTES);
        return sj_parameter_word(place, offset / WORD_BYTES);
    }
    const uint64_t member = offset / place->member_bytes;
    *from_byte = (uint32_t)(offset % place->member_bytes);
    return member < place->members
               ? sj_value_descriptor(sj_value_position(place->words[0]) + (uint32_t)member,
                                     SJ_VALUE_DOUBLE)
               : 0;
}

/* Returns the System V register of word `word` of a result: the first or the second register of its
 * class. */
static uint32_t result_word(const sj_type_layout *layout, uint64_t word)
{
    const bool is_second = word == 1 && layout->words[0] == layout->words[1];
    return (layout->words[word] == SJ_WORD_REAL ? SJ_RESULT_REAL : SJ_RESULT_WHOLE) + is_second;
}

bool sj_result_piece(const sj_type_layout *layout, bool is_aapcs, uint64_t offset,
                     uint64_t *from_byte)
{
    const uint64_t word = offset / WORD_BYTES;
    if (is_aapcs && layout->real_count != 0 && layout->real_count <= HOMOGENEOUS_MOST) {
        const uint64_t member = offset / layout->real_bytes;
        *from_byte = (SJ_RESULT_REAL + member) * WORD_BYTES + offset % layout->real_bytes;
        return member < layout->real_count;
    }
    if (layout->passing != SJ_PASSED_WORDS || word >= SJ_LAYOUT_WORDS ||
        layout->words[word] == SJ_WORD_NONE) {
        return false;
    }
    *from_byte = (is_aapcs ? word : result_word(layout, word)) * WORD_BYTES + offset % WORD_BYTES;
    return true;
}

/* Returns the place of the argument register with a DWARF number, or 0 for other registers. */
static uint8_t place_of_register(uint64_t number, bool is_aapcs)
{
    enum { XMM0 = 17, V0 = 64 };
    static const uint8_t whole_system_v[WHOLE_REGISTERS_SYSTEM_V] = {5, 4, 1, 2, 8, 9};
    const uint64_t first_real = is_aapcs ? V0 : XMM0;
    if (number >= first_real && number < first_real + REAL_REGISTERS) {
        return sj_value_descriptor((uint32_t)(number - first_real) + 1, SJ_VALUE_DOUBLE);
    }
    if (is_aapcs) {
        return number < WHOLE_REGISTERS_AAPCS
                   ? sj_value_descriptor((uint32_t)number + 1, SJ_VALUE_LONG)
                   : 0;
    }
    for (uint32_t i = 0; i < WHOLE_REGISTERS_SYSTEM_V; i++) {
        if (whole_system_v[i] == number) {
            return sj_value_descriptor(i + 1, SJ_VALUE_LONG);
        }
    }
    return 0;
}

/* Sets `*place` if the operation names a register. Returns false if it does not. */
static bool read_register(const Dwarf_Op *operation, bool is_aapcs, uint8_t *place)
{
    if (operation->atom >= DW_OP_reg0 && operation->atom <= DW_OP_reg31) {
        *place = place_of_register(operation->atom - DW_OP_reg0, is_aapcs);
        return true;
    }
    if (operation->atom == DW_OP_regx) {
        *place = place_of_register(operation->number, is_aapcs);
        return true;
    }
    return false;
}

/* Reads a location that is one register, or two registers as pieces of eight bytes each. The last
 * piece may be shorter. Returns false for other locations. */
static bool read_registers(const Dwarf_Op *operations, size_t count, bool is_aapcs,
                           sj_parameter_place *place)
{
    const size_t pieces = count == 1 ? 1 : count / 2;
    bool is_known = (count == 1 || count == 2 || count == 4);
    for (size_t i = 0; is_known && i < pieces; i++) {
        is_known =
            read_register(&operations[2 * i], is_aapcs, &place->words[i]) && place->words[i] != 0;
        if (is_known && count > 1) {
            const Dwarf_Op *piece = &operations[2 * i + 1];
            is_known =
                piece->atom == DW_OP_piece &&
                (i + 1 == pieces ? piece->number <= WORD_BYTES : piece->number == WORD_BYTES);
        }
    }
    return is_known;
}

/* True if the location does not name a place, because the value is computed, constant or
 * missing. */
static bool is_computed(const Dwarf_Op *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        switch (operations[i].atom) {
        case DW_OP_stack_value:
        case DW_OP_implicit_value:
        case DW_OP_implicit_pointer:
        case DW_OP_GNU_implicit_pointer:
        case DW_OP_entry_value:
        case DW_OP_GNU_entry_value:
            return true;
        default:
            break;
        }
    }
    return count == 0;
}

/* True if a part of the value is in a register. Then callers pass the value. */
static bool is_in_parts(const Dwarf_Op *operations, size_t count)
{
    uint8_t place = 0;
    bool has_register = false;
    bool has_pieces = false;
    for (size_t i = 0; i < count; i++) {
        has_pieces = has_pieces || operations[i].atom == DW_OP_piece;
        has_register = has_register || read_register(&operations[i], false, &place);
    }
    return has_pieces && has_register;
}

sj_entry_state sj_parameter_entry(Dwarf_Die *parameter, uint64_t entry, bool is_aapcs,
                                  sj_parameter_place *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *operations = NULL;
    size_t count = 0;
    *place = (sj_parameter_place){0};
    if (dwarf_attr(parameter, DW_AT_location, &attribute) == NULL) {
        return SJ_ENTRY_REMOVED;
    }
    const int found = dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1);
    if (found <= 0) {
        return found == 0 ? SJ_ENTRY_LATER : SJ_ENTRY_REMOVED;
    }
    if (count != 0 && read_registers(operations, count, is_aapcs, place)) {
        place->is_known = true;
        return SJ_ENTRY_REGISTERS;
    }
    uint8_t other = 0;
    if (!is_computed(operations, count) && is_in_parts(operations, count)) {
        *place = (sj_parameter_place){0};
        return SJ_ENTRY_LATER;
    }
    if (is_computed(operations, count) || read_register(&operations[0], is_aapcs, &other)) {
        return SJ_ENTRY_REMOVED;
    }
    return SJ_ENTRY_MEMORY;
}
