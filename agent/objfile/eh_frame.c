#include "agent/objfile/eh_frame.h"

#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>

enum {
    ENCODING_OMIT = 0xff,
    ENCODING_FORMAT_MASK = 0x0f,
    ENCODING_BASE_MASK = 0x70,
    ENCODING_PC_RELATIVE = 0x10,
    ENCODING_INDIRECT = 0x80,
    REGISTER_RSP = 7, /* x86-64 */
    REGISTER_SP = 31, /* AArch64 */
    REGISTER_UNKNOWN = -1
};

/* The fields of a common information entry (CIE), which several descriptions share. */
typedef struct common_entry {
    sj_slice initial;
    uint32_t code_factor;
    int32_t data_factor;
    uint8_t address_encoding;
    uint8_t landing_encoding;
    bool has_augmentation;
    bool is_usable;
} common_entry;

static int64_t read_sleb(sj_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = sj_read_u8(reader);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (shift + 7 < 64 && (byte & 0x40) != 0) {
                value |= UINT64_MAX << (shift + 7);
            }
            return (int64_t)value;
        }
    }
    reader->bad = true;
    return 0;
}

/* Reads a pointer in a DW_EH_PE_* encoding. The byte at `start` is loaded at `address`. */
static uint64_t read_encoded(sj_reader *reader, uint8_t encoding, const uint8_t *start,
                             uint64_t address)
{
    if (encoding == ENCODING_OMIT) {
        return 0;
    }
    const uint64_t here = address + (uint64_t)(reader->at - start);
    uint64_t value = 0;
    switch (encoding & ENCODING_FORMAT_MASK) {
    case 0x0:
    case 0x4:
    case 0xc:
        value = sj_read_u64(reader);
        break;
    case 0x1:
        value = sj_read_varint(reader);
        break;
    case 0x2:
        value = sj_read_u16(reader);
        break;
    case 0x3:
        value = sj_read_u32(reader);
        break;
    case 0x9:
        value = (uint64_t)read_sleb(reader);
        break;
    case 0xa:
        value = (uint64_t)(int16_t)sj_read_u16(reader);
        break;
    case 0xb:
        value = (uint64_t)(int32_t)sj_read_u32(reader);
        break;
    default:
        reader->bad = true;
    }
    const uint8_t base = encoding & ENCODING_BASE_MASK;
    if (base == ENCODING_PC_RELATIVE && value != 0) {
        value += here;
    } else if (base != 0 && base != ENCODING_PC_RELATIVE) {
        reader->bad = true;
    }
    return reader->bad ? 0 : value;
}

/* Reads the common information entry at `offset`. Clears is_usable if its format is unknown. */
static common_entry read_common(sj_slice section, uint64_t offset, uint64_t address)
{
    common_entry entry = {.landing_encoding = ENCODING_OMIT};
    if (offset > section.size) {
        return entry;
    }
    sj_reader reader = sj_reader_of(section.data + offset, section.size - offset);
    const uint32_t length = sj_read_u32(&reader);
    const uint8_t *body = sj_read_bytes(&reader, length);
    if (body == NULL) {
        return entry;
    }
    reader = sj_reader_of(body, length);
    const uint32_t id = sj_read_u32(&reader);
    const uint8_t version = sj_read_u8(&reader);
    char augmentation[8] = {0};
    size_t used = 0;
    for (char c; (c = (char)sj_read_u8(&reader)) != 0;) {
        if (used + 1 < sizeof(augmentation)) {
            augmentation[used] = c;
        }
        used++;
    }
    entry.code_factor = (uint32_t)sj_read_varint(&reader);
    entry.data_factor = (int32_t)read_sleb(&reader);
    (void)sj_read_varint(&reader);
    bool is_known = id == 0 && (version == 1 || version == 3) && used < sizeof(augmentation);
    if (augmentation[0] == 'z') {
        entry.has_augmentation = true;
        const uint64_t bytes = sj_read_varint(&reader);
        const uint8_t *data = sj_read_bytes(&reader, bytes);
        sj_reader values = sj_reader_of(data, data != NULL ? (size_t)bytes : 0);
        for (const char *a = augmentation + 1; *a != 0; a++) {
            if (*a == 'R') {
                entry.address_encoding = sj_read_u8(&values);
            } else if (*a == 'L') {
                entry.landing_encoding = sj_read_u8(&values);
            } else if (*a == 'P') {
                const uint8_t encoding = sj_read_u8(&values);
                (void)read_encoded(&values, encoding & ENCODING_FORMAT_MASK, section.data, address);
            } else {
                /* 'B' and 'G' say how return addresses and the stack are protected. 'S' marks
                 * signal frames, which are not ordinary calls, so it makes the entry unusable. */
                is_known = is_known && (*a == 'B' || *a == 'G');
            }
        }
        is_known = is_known && !values.bad;
    } else if (augmentation[0] != 0) {
        is_known = false;
    }
    entry.initial = (sj_slice){.data = reader.at, .size = sj_reader_left(&reader)};
    entry.is_usable = is_known && !reader.bad;
    return entry;
}

static bool has_indirect(const common_entry *common)
{
    return common->landing_encoding != ENCODING_OMIT &&
           (common->landing_encoding & ENCODING_INDIRECT) != 0;
}

/* Reads a description up to its instructions. Returns false if it is damaged or its range is
 * empty. */
static bool read_range(const common_entry *common, sj_reader *reader, sj_slice section,
                       uint64_t address, sj_fde *range)
{
    range->start = read_encoded(reader, common->address_encoding, section.data, address);
    const uint64_t bytes = read_encoded(reader, common->address_encoding & ENCODING_FORMAT_MASK,
                                        section.data, address);
    if (common->has_augmentation) {
        const uint64_t augmentation_bytes = sj_read_varint(reader);
        const uint8_t *augmentation = sj_read_bytes(reader, augmentation_bytes);
        if (augmentation != NULL && augmentation_bytes > 0) {
            sj_reader values = sj_reader_of(augmentation, (size_t)augmentation_bytes);
            range->landing = read_encoded(&values, common->landing_encoding, section.data, address);
            range->is_landing_unknown = values.bad;
            range->is_landing_indirect = range->landing != 0 && has_indirect(common);
        }
    }
    range->end = range->start + bytes;
    return !reader->bad && bytes > 0 && range->end > range->start;
}

/* State while the rows of one description are computed. */
typedef struct frame_walk {
    sj_reader reader;
    const common_entry *common;
    uint64_t location;
    bool is_broken;
    int32_t reg;
    int64_t offset;
    struct {
        int32_t reg;
        int64_t offset;
    } saved[32];
    uint32_t saved_count;
} frame_walk;

static void skip_block(sj_reader *reader)
{
    (void)sj_read_bytes(reader, (size_t)sj_read_varint(reader));
}

static void advance_location(frame_walk *walk, uint64_t delta)
{
    walk->location += delta * walk->common->code_factor;
}

/* Reads a signed offset in units of the data factor. Real offsets fit in 32 bits; a larger one
 * marks the description as broken. */
static int64_t read_factored(frame_walk *walk)
{
    const int64_t value = read_sleb(&walk->reader);
    const int64_t factor = walk->common->data_factor;
    if (value != (int32_t)value) {
        walk->is_broken = true;
        return 0;
    }
    return value * factor;
}

/* Executes the operations that change the rule of the canonical frame address. */
static void apply_frame_rule(frame_walk *walk, uint8_t operation)
{
    sj_reader *reader = &walk->reader;
    switch (operation) {
    case 0x0a: /* remember_state */
        if (walk->saved_count == sizeof(walk->saved) / sizeof(walk->saved[0])) {
            walk->is_broken = true;
            return;
        }
        walk->saved[walk->saved_count].reg = walk->reg;
        walk->saved[walk->saved_count++].offset = walk->offset;
        return;
    case 0x0b: /* restore_state */
        if (walk->saved_count == 0) {
            walk->is_broken = true;
            return;
        }
        walk->reg = walk->saved[--walk->saved_count].reg;
        walk->offset = walk->saved[walk->saved_count].offset;
        return;
    case 0x0c: /* def_cfa */
        walk->reg = (int32_t)sj_read_varint(reader);
        walk->offset = (int64_t)sj_read_varint(reader);
        return;
    case 0x0d: /* def_cfa_register */
        walk->reg = (int32_t)sj_read_varint(reader);
        return;
    case 0x0e: /* def_cfa_offset */
        walk->offset = (int64_t)sj_read_varint(reader);
        return;
    case 0x0f: /* def_cfa_expression */
        skip_block(reader);
        walk->reg = REGISTER_UNKNOWN;
        return;
    case 0x12: /* def_cfa_sf */
        walk->reg = (int32_t)sj_read_varint(reader);
        walk->offset = read_factored(walk);
        return;
    case 0x13: /* def_cfa_offset_sf */
        walk->offset = read_factored(walk);
        return;
    default:
        walk->is_broken = true;
    }
}

/* Skips the operations that only say where registers are saved. Returns false for other
 * operations. */
static bool skip_register_rule(sj_reader *reader, uint8_t operation)
{
    switch (operation) {
    case 0x00: /* nop */
    case 0x2d: /* AARCH64_negate_ra_state */
        return true;
    case 0x05: /* offset_extended */
    case 0x09: /* register */
    case 0x14: /* val_offset */
        (void)sj_read_varint(reader);
        (void)sj_read_varint(reader);
        return true;
    case 0x06: /* restore_extended */
    case 0x07: /* undefined */
    case 0x08: /* same_value */
    case 0x2e: /* GNU_args_size */
        (void)sj_read_varint(reader);
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        (void)sj_read_varint(reader);
        skip_block(reader);
        return true;
    case 0x11: /* offset_extended_sf */
    case 0x15: /* val_offset_sf */
        (void)sj_read_varint(reader);
        (void)read_sleb(reader);
        return true;
    default:
        return false;
    }
}

static void execute_instruction(frame_walk *walk)
{
    sj_reader *reader = &walk->reader;
    const uint8_t byte = sj_read_u8(reader);
    const uint8_t low = byte & 0x3f;
    switch (byte >> 6) {
    case 1:
        advance_location(walk, low);
        return;
    case 2:
        (void)sj_read_varint(reader);
        return;
    case 3:
        return;
    default:
        break;
    }
    switch (low) {
    case 0x01:
        walk->is_broken = true; /* set_loc: compilers do not write it in .eh_frame */
        return;
    case 0x02:
        advance_location(walk, sj_read_u8(reader));
        return;
    case 0x03:
        advance_location(walk, sj_read_u16(reader));
        return;
    case 0x04:
        advance_location(walk, sj_read_u32(reader));
        return;
    default:
        if (!skip_register_rule(reader, low)) {
            apply_frame_rule(walk, low);
        }
        return;
    }
}

/* Executes instructions until the location changes. Writes the row that ends there. */
static void next_row(frame_walk *walk, sj_cfi_row *row)
{
    const uint64_t start = walk->location;
    while (walk->location == start && sj_reader_left(&walk->reader) > 0 && !walk->reader.bad &&
           !walk->is_broken) {
        execute_instruction(walk);
    }
    walk->is_broken = walk->is_broken || walk->reader.bad;
    row->end = walk->location != start ? walk->location : UINT64_MAX;
    row->distance = (int32_t)walk->offset;
    row->is_known = !walk->is_broken && row->distance == walk->offset &&
                    (walk->reg == REGISTER_RSP || walk->reg == REGISTER_SP);
    /* Both machines' numbers are accepted, because compilers do not base frames on the register
     * that has the other machine's number. */
    row->is_entry = row->is_known && row->distance == (walk->reg == REGISTER_RSP ? 8 : 0);
}

static bool is_same_rule(const sj_cfi_row *left, const sj_cfi_row *right)
{
    return left->distance == right->distance && left->is_known == right->is_known &&
           left->is_entry == right->is_entry;
}

/* Adds the next row of a range. If its rule equals that of the last row, extends the last row. */
static sj_status add_row(sj_eh_frame *unwind, sj_fde *range, const sj_cfi_row *row)
{
    if (range->row_count > 0 && is_same_rule(&unwind->rows[unwind->row_count - 1], row)) {
        unwind->rows[unwind->row_count - 1].end = row->end;
        return SJ_OK;
    }
    SJ_TRY(
        sj_array_reserve(&unwind->rows, &unwind->row_capacity, unwind->row_count, 1, sizeof(*row)));
    unwind->rows[unwind->row_count++] = *row;
    range->row_count++;
    return SJ_OK;
}

/* Initializes a walk and executes the instructions of the common entry, which set the initial
 * rule. */
static void start_walk(frame_walk *walk, const common_entry *common)
{
    walk->common = common;
    walk->location = 0;
    walk->is_broken = false;
    walk->reg = REGISTER_UNKNOWN;
    walk->offset = 0;
    walk->saved_count = 0;
    walk->reader = sj_reader_of(common->initial.data, common->initial.size);
    while (sj_reader_left(&walk->reader) > 0 && !walk->reader.bad && !walk->is_broken) {
        execute_instruction(walk);
    }
    walk->is_broken = walk->is_broken || walk->reader.bad;
}

/* Computes the rows of a range from its instructions and appends them to unwind->rows. */
static sj_status read_rows(sj_eh_frame *unwind, const common_entry *common, sj_slice instructions,
                           sj_fde *range)
{
    frame_walk walk;
    start_walk(&walk, common);
    walk.location = range->start;
    walk.reader = sj_reader_of(instructions.data, instructions.size);
    range->first_row = (uint32_t)unwind->row_count;
    for (uint64_t end = range->start; end < range->end;) {
        sj_cfi_row row;
        next_row(&walk, &row);
        if (row.end > end) { /* skips a row whose location wrapped around */
            SJ_TRY(add_row(unwind, range, &row));
            end = row.end;
        }
    }
    return SJ_OK;
}

static int compare_ranges(const void *left, const void *right)
{
    const sj_fde *a = left;
    const sj_fde *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

sj_status sj_eh_frame_read(sj_slice section, uint64_t address, sj_eh_frame *unwind)
{
    sj_reader reader = sj_reader_of(section.data, section.size);
    common_entry common = {0};
    uint64_t common_offset = UINT64_MAX;
    while (sj_reader_left(&reader) >= sizeof(uint32_t) && !reader.bad) {
        const uint32_t length = sj_read_u32(&reader);
        if (length == 0) {
            /* If sections were merged, more entries can follow the terminator of crtend. */
            continue;
        }
        const uint64_t record = (uint64_t)(reader.at - section.data);
        const uint8_t *body = sj_read_bytes(&reader, length);
        if (body == NULL || length < sizeof(uint32_t)) {
            break;
        }
        sj_reader fields = sj_reader_of(body, length);
        const uint32_t back = sj_read_u32(&fields);
        if (back == 0 || back > record) {
            continue;
        }
        if (record - back != common_offset) {
            common_offset = record - back;
            common = read_common(section, common_offset, address);
        }
        sj_fde range = {0};
        if (common.is_usable && read_range(&common, &fields, section, address, &range)) {
            const sj_slice instructions = {.data = fields.at, .size = sj_reader_left(&fields)};
            SJ_TRY(read_rows(unwind, &common, instructions, &range));
            SJ_TRY(sj_array_reserve(&unwind->ranges, &unwind->capacity, unwind->count, 1,
                                    sizeof(range)));
            unwind->ranges[unwind->count++] = range;
        }
    }
    if (unwind->count > 0) {
        qsort(unwind->ranges, unwind->count, sizeof(*unwind->ranges), compare_ranges);
    }
    return SJ_OK;
}

void sj_eh_frame_free(sj_eh_frame *unwind)
{
    free(unwind->ranges);
    free(unwind->rows);
    *unwind = (sj_eh_frame){0};
}

const sj_fde *sj_eh_frame_find(const sj_eh_frame *unwind, uint64_t address)
{
    const size_t low = SJ_BISECT(0, unwind->count, i, unwind->ranges[i].start <= address);
    if (low == 0 || address >= unwind->ranges[low - 1].end) {
        return NULL;
    }
    return &unwind->ranges[low - 1];
}

const sj_fde *sj_eh_frame_find_near(const sj_eh_frame *unwind, const sj_fde *near, uint64_t address)
{
    const bool is_next = near != NULL && near + 1 < unwind->ranges + unwind->count;
    const bool is_near = near != NULL && address >= near->start && address < near->end &&
                         (!is_next || address < near[1].start);
    return is_near ? near : sj_eh_frame_find(unwind, address);
}

const sj_cfi_row *sj_eh_frame_row(const sj_eh_frame *unwind, const sj_fde *range, uint64_t address)
{
    const sj_cfi_row *rows = &unwind->rows[range->first_row];
    const size_t low = SJ_BISECT(0, range->row_count - 1, i, rows[i].end <= address);
    return &rows[low];
}

/* Returns the address of a range's exception table, or 0 if it is unknown. The stored address of a
 * table is 0 in the file if only the loader writes it. */
static uint64_t table_address(const sj_elf *elf, const sj_fde *range)
{
    if (range->is_landing_unknown || !range->is_landing_indirect) {
        return range->landing;
    }
    const sj_slice stored = sj_elf_at(elf, range->landing);
    sj_reader reader = sj_reader_of(stored.data, stored.size);
    const uint64_t address = sj_read_u64(&reader);
    return reader.bad ? 0 : address;
}

/* Reads the head of an exception table. Returns the call sites. They are empty, and `reader->bad`
 * is set, if the head is damaged. `*base` is where distances of landing pads begin. */
static sj_slice read_sites(sj_reader *reader, const uint8_t *table, uint64_t address,
                           uint64_t *base, uint8_t *encoding)
{
    const uint8_t start_encoding = sj_read_u8(reader);
    if (start_encoding != ENCODING_OMIT) {
        *base = read_encoded(reader, start_encoding, table, address);
        reader->bad = reader->bad || (start_encoding & ENCODING_INDIRECT) != 0;
    }
    if (sj_read_u8(reader) != ENCODING_OMIT) {
        (void)sj_read_varint(reader);
    }
    *encoding = sj_read_u8(reader) & ENCODING_FORMAT_MASK;
    const uint64_t bytes = sj_read_varint(reader);
    const uint8_t *sites = sj_read_bytes(reader, (size_t)bytes);
    return (sj_slice){.data = sites, .size = sites != NULL ? (size_t)bytes : 0};
}

/* If each basic block has its own section, LLVM includes the tables of later parts of the function
 * in the length of a table. The call sites of one table ascend and lie inside its range. The first
 * site that breaks this rule belongs to the next table, so reading stops there. */
bool sj_landing_pads(const sj_elf *elf, const sj_fde *range,
                     void (*visit)(void *context, uint64_t pad), void *context)
{
    if (range->landing == 0 && !range->is_landing_unknown) {
        return true;
    }
    const uint64_t address = table_address(elf, range);
    const sj_slice table = address != 0 ? sj_elf_at(elf, address) : (sj_slice){0};
    sj_reader reader = sj_reader_of(table.data, table.size);
    uint64_t base = range->start;
    uint8_t encoding = 0;
    const sj_slice sites = read_sites(&reader, table.data, address, &base, &encoding);
    if (reader.bad) {
        return false;
    }
    reader = sj_reader_of(sites.data, sites.size);
    const uint64_t range_bytes = range->end - range->start;
    uint64_t end = 0;
    while (sj_reader_left(&reader) > 0) {
        const uint64_t start = read_encoded(&reader, encoding, table.data, 0);
        const uint64_t size = read_encoded(&reader, encoding, table.data, 0);
        const uint64_t pad = read_encoded(&reader, encoding, table.data, 0);
        (void)sj_read_varint(&reader);
        if (reader.bad || start < end || start > range_bytes || size > range_bytes - start) {
            break;
        }
        end = start + size;
        if (pad != 0) {
            visit(context, base + pad);
        }
    }
    return !reader.bad;
}
