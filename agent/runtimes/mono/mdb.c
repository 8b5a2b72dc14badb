/* Design notes. The format is undocumented; it is read as Mono writes it
 * (Mono.CompilerServices.SymbolWriter, version 50). The header has the positions of the tables, and
 * each method has the position of its lines. Lines are opcodes like those of DWARF, with signed
 * LEB128 numbers. */
#include "agent/runtimes/mono/source_lines.h"

#include "agent/runtimes/mono/assembly.h"

enum {
    VERSION = 50,
    SOURCE_ROW_BYTES = 8,
    METHOD_ROW_BYTES = 12,
    STEPS_MAX = 1 << 26, /* Opcodes of all methods: several methods may name the same bytes. */
    METHOD_TABLE = 0x06,
    TOKEN_BITS = 24
};

#define MAGIC UINT64_C(0x45e82623fd7fa614)

enum {
    OP_EXTENDED = 0,
    OP_COPY = 1,
    OP_ADVANCE_OFFSET = 2,
    OP_ADVANCE_LINE = 3,
    OP_SET_FILE = 4,
    OP_ADD_MOST = 8,
    EXTENDED_END = 1,
    EXTENDED_HIDDEN = 0x40 /* Begins or ends lines that no source has. */
};

typedef struct mdb_file {
    sj_slice file;
    uint32_t source_count;
    uint32_t source_table;
    uint32_t method_count;
    uint32_t method_table;
    int32_t line_base;
    uint32_t line_range;
    uint32_t opcode_base;
} mdb_file;

static sj_reader reader_at(sj_slice whole, uint64_t offset)
{
    return whole.data != NULL && offset <= whole.size
               ? sj_reader_of(whole.data + offset, whole.size - offset)
               : sj_reader_of(NULL, 0);
}

static int32_t read_signed(sj_reader *reader)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        const uint8_t byte = sj_read_u8(reader);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            const unsigned bits = shift + 7;
            return (int32_t)(bits < 32 && (byte & 0x40) != 0 ? value | ~UINT32_C(0) << bits
                                                             : value);
        }
    }
    reader->bad = true;
    return 0;
}

static sj_status read_head(sj_slice file, sj_slice id, mdb_file *mdb)
{
    sj_reader head = sj_reader_of(file.data, file.size);
    const uint64_t magic = sj_read_u64(&head);
    const uint32_t version = sj_read_u32(&head);
    (void)sj_read_u32(&head); /* Minor version. */
    const uint8_t *guid = sj_read_bytes(&head, SJ_ASSEMBLY_ID_BYTES);
    (void)sj_read_bytes(&head, 3 * 4); /* Sizes of the file and its data. */
    (void)sj_read_bytes(&head, 3 * 4); /* Compile units. */
    *mdb = (mdb_file){.file = file};
    mdb->source_count = sj_read_u32(&head);
    mdb->source_table = sj_read_u32(&head);
    (void)sj_read_u32(&head);
    mdb->method_count = sj_read_u32(&head);
    mdb->method_table = sj_read_u32(&head);
    (void)sj_read_u32(&head);
    (void)sj_read_bytes(&head, 4 * 4); /* Types and scopes. */
    mdb->line_base = (int32_t)sj_read_u32(&head);
    mdb->line_range = sj_read_u32(&head);
    mdb->opcode_base = sj_read_u32(&head);
    if (head.bad || magic != MAGIC || version != VERSION || mdb->line_range == 0 ||
        mdb->line_range > UINT8_MAX || mdb->opcode_base > UINT8_MAX || mdb->line_base < INT8_MIN ||
        mdb->line_base > INT8_MAX) {
        return SJ_ECORRUPT;
    }
    return id.size == SJ_ASSEMBLY_ID_BYTES && memcmp(guid, id.data, id.size) == 0 ? SJ_OK
                                                                                  : SJ_EVERSION;
}

/* Returns false if the file does not exist, or if its name is damaged. */
static bool read_source(const mdb_file *mdb, uint32_t number, char name[SJ_SOURCE_FILE_BYTES])
{
    if (number == 0 || number > mdb->source_count) {
        return false;
    }
    sj_reader row =
        reader_at(mdb->file, mdb->source_table + (uint64_t)(number - 1) * SOURCE_ROW_BYTES + 4);
    sj_reader text = reader_at(mdb->file, sj_read_u32(&row));
    const uint64_t bytes = sj_read_varint(&text);
    const uint8_t *taken =
        bytes < SJ_SOURCE_FILE_BYTES ? sj_read_bytes(&text, (size_t)bytes) : NULL;
    if (row.bad || taken == NULL || bytes == 0 || memchr(taken, '\0', (size_t)bytes) != NULL) {
        return false;
    }
    memcpy(name, taken, (size_t)bytes);
    name[bytes] = '\0';
    return true;
}

/* State of reading the lines of one method. */
typedef struct line_state {
    sj_container_line at; /* Its file points to `name`. */
    uint32_t file;        /* Number of the file whose name is in `name`. 0: none. */
    int32_t offset;
    int32_t line;
    uint32_t wanted_file;
    uint32_t steps;
    bool is_hidden;
    bool is_ended;
    char name[SJ_SOURCE_FILE_BYTES];
} line_state;

static int32_t add(int32_t number, int64_t more)
{
    return (int32_t)(uint32_t)((uint64_t)number + (uint64_t)more); /* Wraps in damaged files. */
}

static sj_status give(const mdb_file *mdb, line_state *state, sj_container_line_sink sink,
                      void *context)
{
    if (state->is_hidden || state->line <= 0 || state->offset < 0) {
        return SJ_OK;
    }
    if (state->file != state->wanted_file) {
        state->file = read_source(mdb, state->wanted_file, state->name) ? state->wanted_file : 0;
    }
    if (state->file == 0) {
        return SJ_OK;
    }
    state->at.file = state->name;
    state->at.offset = (uint32_t)state->offset;
    state->at.line = (uint32_t)state->line;
    return sink(context, &state->at);
}

static void read_extended(sj_reader *lines, line_state *state)
{
    const uint8_t size = sj_read_u8(lines);
    const uint8_t *bytes = sj_read_bytes(lines, size);
    const uint8_t opcode = bytes != NULL && size != 0 ? bytes[0] : EXTENDED_END;
    state->is_ended = opcode == EXTENDED_END;
    state->is_hidden ^= opcode == EXTENDED_HIDDEN;
}

/* Executes an opcode. Returns true if a line is to be reported. */
static bool step(const mdb_file *mdb, sj_reader *lines, line_state *state, uint8_t opcode)
{
    if (opcode >= mdb->opcode_base && opcode != OP_EXTENDED) {
        const uint32_t special = opcode - mdb->opcode_base;
        state->offset = add(state->offset, special / mdb->line_range);
        state->line = add(state->line, mdb->line_base + (int64_t)(special % mdb->line_range));
        return true;
    }
    switch (opcode) {
    case OP_EXTENDED:
        read_extended(lines, state);
        return false;
    case OP_COPY:
        return true;
    case OP_ADVANCE_OFFSET:
        state->offset = add(state->offset, read_signed(lines));
        return false;
    case OP_ADVANCE_LINE:
        state->line = add(state->line, read_signed(lines));
        return false;
    case OP_SET_FILE:
        state->wanted_file = (uint32_t)read_signed(lines);
        return false;
    case OP_ADD_MOST:
        state->offset = add(state->offset, (UINT8_MAX - mdb->opcode_base) / mdb->line_range);
        return false;
    default:
        lines->bad = true;
        return false;
    }
}

static sj_status read_method(const mdb_file *mdb, uint32_t token, uint32_t place, line_state *state,
                             sj_container_line_sink sink, void *context)
{
    sj_reader lines = reader_at(mdb->file, place);
    sj_status status = SJ_OK;
    state->at.token = token;
    state->offset = 0;
    state->line = 1;
    state->wanted_file = 1;
    state->is_hidden = state->is_ended = false;
    while (status == SJ_OK && state->steps++ < STEPS_MAX) {
        const uint8_t opcode = sj_read_u8(&lines);
        const bool is_line = !lines.bad && step(mdb, &lines, state, opcode);
        if (lines.bad || state->is_ended) {
            break;
        }
        status = is_line ? give(mdb, state, sink, context) : SJ_OK;
    }
    return status;
}

sj_status sj_mdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink, void *context)
{
    mdb_file mdb;
    line_state state = {0};
    SJ_TRY(read_head(file, id, &mdb));
    sj_reader rows = reader_at(file, mdb.method_table);
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < mdb.method_count && status == SJ_OK && state.steps < STEPS_MAX; i++) {
        const uint8_t *bytes = sj_read_bytes(&rows, METHOD_ROW_BYTES);
        if (bytes == NULL) {
            break;
        }
        sj_reader row = sj_reader_of(bytes, METHOD_ROW_BYTES);
        const uint32_t token = sj_read_u32(&row);
        (void)sj_read_u32(&row); /* Its variables and name. */
        const uint32_t place = sj_read_u32(&row);
        const uint32_t number = token & ((1U << TOKEN_BITS) - 1);
        if (token >> TOKEN_BITS == METHOD_TABLE && number != 0) {
            status = read_method(&mdb, number, place, &state, sink, context);
        }
    }
    return status;
}
