#include "agent/objfile/type_layout.h"

#include <string.h>

enum {
    DEEPEST = 8,       /* levels of nested structures and arrays */
    MOST_MEMBERS = 64, /* per layout; types in registers have fewer */
    MOST_STRIPPED = 32,
    MOST_EXAMINED = 4096, /* DIEs examined for one layout */
    WORD_BYTES = 8,
    MOST_BYTES = SJ_LAYOUT_WORDS * WORD_BYTES,
    /* Older headers of libdw do not define these languages. */
    LANGUAGE_CXX_17 = 0x2a,
    LANGUAGE_CXX_20 = 0x2b
};

/* The state of a walk through a type's members. */
typedef struct layout_walk {
    sj_type_layout layout;
    bool is_unknown;
    bool is_unaligned;
    bool is_mixed;      /* members are not only floating-point numbers of one size */
    bool has_own_rules; /* has vectors or numbers such as long double or _Complex */
    bool is_cut;        /* the walk reached a limit: the layout is unknown */
    uint32_t visited;
    uint32_t examined;
} layout_walk;

/* Counts a DIE. Returns false if the walk has examined MOST_EXAMINED DIEs. Without this limit,
 * nested types that repeat their members would take exponential time. */
static bool may_visit(layout_walk *walk)
{
    walk->is_cut = walk->is_cut || ++walk->examined > MOST_EXAMINED;
    return !walk->is_cut;
}

uint64_t sj_type_number(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_attr_integrate(die, name, &attribute) != NULL &&
                   dwarf_formudata(&attribute, &value) == 0
               ? value
               : otherwise;
}

bool sj_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die whole;
    if (dwarf_attr_integrate(die, DW_AT_type, &attribute) == NULL ||
        dwarf_formref_die(&attribute, type) == NULL) {
        return false;
    }
    /* A user of a type in a type unit only declares the type, with the signature of the unit. */
    if (dwarf_attr(type, DW_AT_signature, &attribute) != NULL &&
        dwarf_formref_die(&attribute, &whole) != NULL) {
        *type = whole;
    }
    return true;
}

bool sj_type_strip(Dwarf_Die *type, Dwarf_Die *stripped)
{
    *stripped = *type;
    for (int i = 0; i < MOST_STRIPPED; i++) {
        switch (dwarf_tag(stripped)) {
        case DW_TAG_typedef:
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type:
            if (!sj_type_of(stripped, stripped)) {
                return false; /* void */
            }
            break;
        default:
            return true;
        }
    }
    return false;
}

bool sj_type_member_offset(Dwarf_Die *member, uint64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_hasattr(member, DW_AT_external) || dwarf_hasattr(member, DW_AT_bit_size)) {
        return false;
    }
    if (dwarf_attr(member, DW_AT_data_member_location, &attribute) != NULL &&
        dwarf_formudata(&attribute, &value) != 0) {
        return false;
    }
    *offset = value;
    return true;
}

static void add_word(layout_walk *walk, uint64_t offset, uint64_t bytes, uint64_t alignment,
                     sj_word_class class)
{
    sj_type_layout *layout = &walk->layout;
    if (bytes == 0 || offset > MOST_BYTES || bytes > MOST_BYTES - offset) {
        walk->is_unknown = walk->is_unknown || bytes == 0;
        return; /* passed in memory, except homogeneous aggregates on AArch64 */
    }
    walk->is_unaligned = walk->is_unaligned || alignment == 0 || offset % alignment != 0;
    for (uint64_t word = offset / WORD_BYTES; word <= (offset + bytes - 1) / WORD_BYTES; word++) {
        if (layout->words[word] < class) {
            layout->words[word] = class;
        }
    }
}

static void note_real(layout_walk *walk, uint64_t bytes)
{
    walk->is_mixed = walk->is_mixed ||
                     (walk->layout.real_bytes != 0 && walk->layout.real_bytes != (uint32_t)bytes);
    walk->layout.real_bytes = (uint32_t)bytes;
    walk->layout.real_count++;
}

static void add_base(layout_walk *walk, Dwarf_Die *type, uint64_t offset)
{
    const uint64_t bytes = sj_type_number(type, DW_AT_byte_size, 0);
    const uint64_t encoding = sj_type_number(type, DW_AT_encoding, 0);
    const bool is_real = encoding == DW_ATE_float;
    const bool is_whole = encoding == DW_ATE_boolean || encoding == DW_ATE_signed ||
                          encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned ||
                          encoding == DW_ATE_unsigned_char || encoding == DW_ATE_UTF;
    if (is_real && (bytes == 4 || bytes == 8)) {
        note_real(walk, bytes);
        add_word(walk, offset, bytes, bytes, SJ_WORD_REAL);
    } else if (is_whole && bytes <= MOST_BYTES && bytes != 0) {
        walk->is_mixed = true;
        add_word(walk, offset, bytes, bytes, SJ_WORD_WHOLE);
    } else {
        walk->has_own_rules = walk->is_unknown = true; /* for example long double or _Complex */
    }
}

static void add_type(layout_walk *walk, Dwarf_Die *of, uint64_t offset, int depth);

static void add_array(layout_walk *walk, Dwarf_Die *type, uint64_t offset, int depth)
{
    Dwarf_Die element;
    Dwarf_Word whole = 0;
    Dwarf_Word part = 0;
    walk->has_own_rules = walk->has_own_rules || dwarf_hasattr(type, DW_AT_GNU_vector);
    if (walk->has_own_rules || !sj_type_of(type, &element) ||
        dwarf_aggregate_size(type, &whole) != 0 || dwarf_aggregate_size(&element, &part) != 0 ||
        part == 0) {
        walk->is_unknown = true;
        return;
    }
    for (uint64_t at = 0; at + part <= whole && at < 4 * WORD_BYTES; at += part) {
        add_type(walk, &element, offset + at, depth + 1);
    }
    walk->is_mixed = walk->is_mixed || whole > 4 * (uint64_t)WORD_BYTES;
}

/* Adds a bit field. A word with a bit field is never passed as a floating-point number. */
static void add_bits(layout_walk *walk, Dwarf_Die *member, uint64_t offset)
{
    const uint64_t bits = sj_type_number(member, DW_AT_bit_size, 0);
    const uint64_t first = sj_type_number(member, DW_AT_data_bit_offset, UINT64_MAX);
    walk->is_mixed = true;
    if (first == UINT64_MAX || bits == 0) {
        walk->is_unknown = true; /* DWARF before version 4 has another kind of bit offset */
        return;
    }
    add_word(walk, offset + first / 8, 1, 1, SJ_WORD_WHOLE);
    add_word(walk, offset + (first + bits - 1) / 8, 1, 1, SJ_WORD_WHOLE);
}

static void add_members(layout_walk *walk, Dwarf_Die *type, uint64_t offset, int depth)
{
    Dwarf_Die member;
    if (dwarf_hasattr(type, DW_AT_declaration)) {
        walk->is_unknown = true;
        return;
    }
    if (dwarf_child(type, &member) != 0) {
        return;
    }
    do {
        const int tag = dwarf_tag(&member);
        uint64_t at = 0;
        Dwarf_Die of;
        if (tag == DW_TAG_variant_part) {
            walk->is_unknown = true;
        }
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
            dwarf_hasattr(&member, DW_AT_external)) {
            continue;
        }
        if (dwarf_hasattr(&member, DW_AT_bit_size)) {
            add_bits(walk, &member, offset);
        } else if (++walk->visited > MOST_MEMBERS || !sj_type_member_offset(&member, &at) ||
                   !sj_type_of(&member, &of) || at > UINT32_MAX) {
            walk->is_unknown = true;
        } else {
            add_type(walk, &of, offset + at, depth + 1);
        }
    } while (!walk->is_unknown && may_visit(walk) && dwarf_siblingof(&member, &member) == 0);
}

static void add_type(layout_walk *walk, Dwarf_Die *of, uint64_t offset, int depth)
{
    Dwarf_Die type;
    if (depth > DEEPEST || !sj_type_strip(of, &type)) {
        walk->is_unknown = true;
        return;
    }
    const int tag = dwarf_tag(&type);
    const uint64_t bytes = sj_type_number(&type, DW_AT_byte_size, WORD_BYTES);
    switch (tag) {
    case DW_TAG_base_type:
        add_base(walk, &type, offset);
        break;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
    case DW_TAG_enumeration_type:
        walk->is_mixed = true;
        walk->is_unknown = walk->is_unknown || bytes > WORD_BYTES;
        add_word(walk, offset, bytes, bytes, SJ_WORD_WHOLE);
        break;
    case DW_TAG_array_type:
        add_array(walk, &type, offset, depth);
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        add_members(walk, &type, offset, depth);
        break;
    default:
        walk->is_unknown = true; /* for example pointers to members */
    }
}

static uint64_t alignment_of(layout_walk *walk, Dwarf_Die *of, int depth);

static uint64_t alignment_of_structure(layout_walk *walk, Dwarf_Die *type, int depth)
{
    Dwarf_Die inner;
    Dwarf_Die of;
    uint64_t alignment = sj_type_number(type, DW_AT_alignment, 1);
    if (dwarf_child(type, &inner) != 0) {
        return alignment;
    }
    do {
        const int tag = dwarf_tag(&inner);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
            dwarf_hasattr(&inner, DW_AT_external) || !sj_type_of(&inner, &of)) {
            continue;
        }
        const uint64_t of_its = alignment_of(walk, &of, depth + 1);
        alignment = of_its > alignment ? of_its : alignment;
    } while (may_visit(walk) && dwarf_siblingof(&inner, &inner) == 0);
    return alignment < MOST_BYTES ? alignment : MOST_BYTES;
}

/* Returns the alignment of a type. A scalar is aligned to its size. A structure is aligned to 16
 * bytes at most, the strictest alignment on the stack. Sets `is_cut` if the type is a vector or is
 * nested too deeply. */
static uint64_t alignment_of(layout_walk *walk, Dwarf_Die *of, int depth)
{
    Dwarf_Die type;
    Dwarf_Die inner;
    if (depth > DEEPEST || !sj_type_strip(of, &type)) {
        walk->is_cut = true;
        return 1;
    }
    const int tag = dwarf_tag(&type);
    if (tag == DW_TAG_array_type) {
        walk->is_cut =
            walk->is_cut || dwarf_hasattr(&type, DW_AT_GNU_vector) || !sj_type_of(&type, &inner);
        return walk->is_cut ? 1 : alignment_of(walk, &inner, depth + 1);
    }
    return sj_type_is_structure(tag) ? alignment_of_structure(walk, &type, depth)
                                     : sj_type_number(&type, DW_AT_byte_size, WORD_BYTES);
}

static bool is_cxx(int language)
{
    return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
           language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14 ||
           language == LANGUAGE_CXX_17 || language == LANGUAGE_CXX_20;
}

/* True for a copy or move constructor: its only parameter besides the object is a reference to its
 * class. */
static bool is_copy(layout_walk *walk, Dwarf_Die *constructor, Dwarf_Die *class)
{
    Dwarf_Die parameter;
    Dwarf_Die type;
    Dwarf_Die stripped;
    uint32_t count = 0;
    bool is_to_class = false;
    if (dwarf_child(constructor, &parameter) != 0) {
        return false;
    }
    do {
        if (dwarf_tag(&parameter) != DW_TAG_formal_parameter ||
            dwarf_hasattr(&parameter, DW_AT_artificial)) {
            continue;
        }
        const bool is_reference =
            sj_type_of(&parameter, &type) && (dwarf_tag(&type) == DW_TAG_reference_type ||
                                              dwarf_tag(&type) == DW_TAG_rvalue_reference_type);
        is_to_class = is_reference && sj_type_of(&type, &type) && sj_type_strip(&type, &stripped) &&
                      stripped.addr == class->addr;
        count++;
    } while (may_visit(walk) && dwarf_siblingof(&parameter, &parameter) == 0);
    return count == 1 && is_to_class;
}

/* Returns how a class is passed, judged by one member function. A virtual function requires an
 * address. So does a user-defined destructor, copy constructor or move constructor. If one of these
 * three is deleted, the result is SJ_PASSED_UNKNOWN. */
static sj_passing passing_by_function(layout_walk *walk, Dwarf_Die *function, Dwarf_Die *class)
{
    const char *name = dwarf_diename(function);
    const char *of_class = dwarf_diename(class);
    if (sj_type_number(function, DW_AT_virtuality, DW_VIRTUALITY_none) != DW_VIRTUALITY_none) {
        return SJ_PASSED_ADDRESS;
    }
    if (name == NULL || of_class == NULL || dwarf_hasattr(function, DW_AT_artificial)) {
        return SJ_PASSED_WORDS;
    }
    const size_t bytes = strcspn(of_class, "<");
    const bool is_constructor = strncmp(name, of_class, bytes) == 0 && name[bytes] == '\0' &&
                                is_copy(walk, function, class);
    if (!is_constructor && name[0] != '~') {
        return SJ_PASSED_WORDS;
    }
    if (dwarf_hasattr(function, DW_AT_deleted)) {
        return SJ_PASSED_UNKNOWN;
    }
    const bool is_default =
        sj_type_number(function, DW_AT_defaulted, DW_DEFAULTED_no) == DW_DEFAULTED_in_class;
    return is_default ? SJ_PASSED_WORDS : SJ_PASSED_ADDRESS;
}

static sj_passing passing_of_class(layout_walk *walk, Dwarf_Die *type, int language, int depth);

/* Returns how a class is passed, judged by one data member, base class or member function. */
static sj_passing passing_by_member(layout_walk *walk, Dwarf_Die *member, Dwarf_Die *class,
                                    int language, int depth)
{
    Dwarf_Die type;
    Dwarf_Die stripped;
    const int tag = dwarf_tag(member);
    if (tag == DW_TAG_subprogram) {
        return passing_by_function(walk, member, class);
    }
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_hasattr(member, DW_AT_external)) {
        return SJ_PASSED_WORDS;
    }
    if (sj_type_number(member, DW_AT_virtuality, DW_VIRTUALITY_none) != DW_VIRTUALITY_none) {
        return SJ_PASSED_ADDRESS;
    }
    if (!sj_type_of(member, &type) || !sj_type_strip(&type, &stripped)) {
        return SJ_PASSED_UNKNOWN;
    }
    for (int i = 0; i < DEEPEST && dwarf_tag(&stripped) == DW_TAG_array_type; i++) {
        if (!sj_type_of(&stripped, &type) || !sj_type_strip(&type, &stripped)) {
            return SJ_PASSED_UNKNOWN;
        }
    }
    return sj_type_is_structure(dwarf_tag(&stripped))
               ? passing_of_class(walk, &stripped, language, depth + 1)
               : SJ_PASSED_WORDS;
}

/* Returns how a class is passed. C++ passes a class with its own copy constructor, move constructor
 * or destructor by the address of a copy. clang writes DW_AT_calling_convention. gcc does not, so
 * the function examines all members. */
static sj_passing passing_of_class(layout_walk *walk, Dwarf_Die *type, int language, int depth)
{
    Dwarf_Die member;
    const uint64_t convention = sj_type_number(type, DW_AT_calling_convention, 0);
    if (!is_cxx(language) || convention == DW_CC_pass_by_value) {
        return SJ_PASSED_WORDS;
    }
    if (convention == DW_CC_pass_by_reference) {
        return SJ_PASSED_ADDRESS;
    }
    if (depth > DEEPEST || dwarf_hasattr(type, DW_AT_declaration)) {
        return SJ_PASSED_UNKNOWN;
    }
    sj_passing passing = SJ_PASSED_WORDS;
    if (dwarf_child(type, &member) != 0) {
        return passing;
    }
    do {
        const sj_passing by_member = passing_by_member(walk, &member, type, language, depth);
        if (by_member == SJ_PASSED_ADDRESS) {
            return by_member;
        }
        passing = by_member == SJ_PASSED_UNKNOWN ? by_member : passing;
    } while (may_visit(walk) && dwarf_siblingof(&member, &member) == 0);
    return walk->is_cut ? SJ_PASSED_UNKNOWN : passing;
}

/* True for a wide Rust reference, such as &str or &dyn Trait. It is passed as two words: an
 * address, and a length or the address of a vtable. Rust does not promise how other structures are
 * passed. */
static bool is_slice(Dwarf_Die *type)
{
    const char *name = dwarf_diename(type);
    return name != NULL && name[0] == '&' &&
           sj_type_number(type, DW_AT_byte_size, 0) == 2 * (uint64_t)WORD_BYTES;
}

/* True for a long double of 16 bytes. Other floating-point types of that size are passed
 * differently. */
static bool is_extended(Dwarf_Die *type, uint64_t bytes)
{
    const char *name = dwarf_diename(type);
    return dwarf_tag(type) == DW_TAG_base_type && bytes == 2 * (uint64_t)WORD_BYTES &&
           name != NULL && strcmp(name, "long double") == 0 &&
           sj_type_number(type, DW_AT_encoding, 0) == DW_ATE_float;
}

sj_type_layout sj_type_layout_of(Dwarf_Die *type, int language)
{
    layout_walk walk = {.layout = {.passing = SJ_PASSED_UNKNOWN}};
    sj_type_layout *layout = &walk.layout;
    Dwarf_Die stripped;
    Dwarf_Word bytes = 0;
    if (!sj_type_strip(type, &stripped)) {
        return *layout;
    }
    layout->is_aggregate = sj_type_is_structure(dwarf_tag(&stripped));
    if (language == DW_LANG_Rust && layout->is_aggregate && !is_slice(&stripped)) {
        layout->passing = sj_type_number(&stripped, DW_AT_byte_size, 1) == 0 ? SJ_PASSED_NOWHERE
                                                                             : SJ_PASSED_UNKNOWN;
        return *layout;
    }
    if (layout->is_aggregate) {
        layout->passing = passing_of_class(&walk, &stripped, language, 0);
        if (layout->passing != SJ_PASSED_WORDS) {
            return *layout;
        }
    }
    layout->passing = SJ_PASSED_UNKNOWN;
    if (dwarf_aggregate_size(&stripped, &bytes) != 0) {
        const int tag = dwarf_tag(&stripped);
        if (tag != DW_TAG_pointer_type && tag != DW_TAG_reference_type &&
            tag != DW_TAG_rvalue_reference_type) {
            return *layout;
        }
        bytes = WORD_BYTES;
    }
    layout->bytes = bytes;
    layout->alignment = alignment_of(&walk, &stripped, 0);
    if (walk.is_cut) {
        return *layout;
    }
    if (bytes == 0) {
        layout->passing = is_cxx(language) ? SJ_PASSED_UNKNOWN : SJ_PASSED_NOWHERE;
        return *layout;
    }
    if (is_extended(&stripped, bytes)) {
        layout->is_extended = true;
        layout->passing = SJ_PASSED_MEMORY;
        return *layout;
    }
    add_type(&walk, &stripped, 0, 0);
    if (walk.is_cut) {
        layout->real_count = 0;
        return *layout;
    }
    const bool is_large = bytes > MOST_BYTES;
    layout->real_count = walk.is_mixed || walk.is_unknown ? 0 : layout->real_count;
    if (layout->is_aggregate && is_large && !walk.has_own_rules) {
        layout->passing = SJ_PASSED_MEMORY;
    } else if (!walk.is_unknown && !is_large) {
        const bool has_gap = layout->words[0] == SJ_WORD_NONE ||
                             (bytes > WORD_BYTES && layout->words[1] == SJ_WORD_NONE);
        layout->passing = has_gap             ? SJ_PASSED_UNKNOWN
                          : walk.is_unaligned ? SJ_PASSED_MEMORY
                                              : SJ_PASSED_WORDS;
    }
    return *layout;
}
