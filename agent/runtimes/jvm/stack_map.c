#include "agent/runtimes/jvm/stack_map.h"

enum frame_type {
    SAME_LAST = 63,
    SAME_LOCALS_LAST = 127,
    SAME_LOCALS_EXTENDED = 247,
    CHOP_FIRST = 248,
    SAME_EXTENDED = 251,
    APPEND_LAST = 254,
    FULL = 255
};

enum type_tag { TYPE_UNINITIALIZED_THIS = 6, TYPE_OBJECT = 7, TYPE_UNINITIALIZED = 8 };

typedef struct map_move {
    sj_reader reader;
    const sj_code_layout *layout;
    sj_be_output *output;
    int64_t old_at; /* Offset of the previous frame. -1 before the first frame. */
    int64_t new_at;
    bool has_uninitialized_this; /* True if `this` is uninitialized at the current frame. */
    bool is_damaged;
} map_move;

static void move_types(map_move *move, uint32_t count)
{
    for (; count > 0 && !move->reader.bad; count--) {
        const uint8_t tag = sj_read_u8(&move->reader);
        sj_be_put8(move->output, tag);
        if (tag == TYPE_OBJECT) {
            sj_be_put16(move->output, sj_read_be16(&move->reader));
        } else if (tag == TYPE_UNINITIALIZED) {
            const uint16_t at = sj_read_be16(&move->reader); /* Offset of the instruction `new`. */
            const uint16_t place = sj_code_layout_at(move->layout, at);
            move->is_damaged = move->is_damaged || place == SJ_CODE_NOWHERE;
            sj_be_put16(move->output, (uint16_t)(place + sj_code_layout_line(move->layout, at)));
        } else {
            move->is_damaged = move->is_damaged || tag > TYPE_UNINITIALIZED;
            move->has_uninitialized_this |= tag == TYPE_UNINITIALIZED_THIS;
        }
    }
}

/* Computes the old and new position of the current frame from its delta. Returns the new delta.
 * If the delta does not lead to a later instruction, sets is_damaged and returns 0. */
static uint32_t move_delta(map_move *move, uint32_t delta)
{
    const int64_t old_at = move->old_at + (int64_t)delta + 1;
    const uint16_t new_at = sj_code_layout_at(move->layout, (uint64_t)old_at);
    if (new_at == SJ_CODE_NOWHERE || (int64_t)new_at <= move->new_at ||
        (uint64_t)old_at == move->layout->code.size) {
        move->is_damaged = true;
        return 0;
    }
    const uint32_t moved = (uint32_t)(new_at - move->new_at - 1);
    move->old_at = old_at;
    move->new_at = new_at;
    return moved;
}

/* Moves a frame of a type that has a short form, which encodes a small delta in the type byte. */
static void move_short_frame(map_move *move, uint8_t type)
{
    const bool has_stack = type > SAME_LAST && type != SAME_EXTENDED;
    uint32_t delta = type <= SAME_LAST ? type : type - SAME_LAST - 1U;
    if (type > SAME_LOCALS_LAST) {
        delta = sj_read_be16(&move->reader);
    }
    delta = move_delta(move, delta);
    const uint8_t base = has_stack ? SAME_LAST + 1 : 0;
    if (delta <= SAME_LAST) {
        sj_be_put8(move->output, (uint8_t)(base + delta));
    } else {
        sj_be_put8(move->output, has_stack ? SAME_LOCALS_EXTENDED : SAME_EXTENDED);
        sj_be_put16(move->output, (uint16_t)delta);
    }
    move_types(move, has_stack ? 1 : 0);
}

static void move_full_frame(map_move *move)
{
    for (int part = 0; part < 2; part++) { /* Locals, then stack. */
        const uint16_t count = sj_read_be16(&move->reader);
        sj_be_put16(move->output, count);
        move_types(move, count);
    }
}

static void move_frame(map_move *move)
{
    const uint8_t type = sj_read_u8(&move->reader);
    if (type <= SAME_LOCALS_LAST || type == SAME_LOCALS_EXTENDED || type == SAME_EXTENDED) {
        move_short_frame(move, type);
        return;
    }
    if (type < SAME_LOCALS_EXTENDED) {
        move->is_damaged = true;
        return;
    }
    sj_be_put8(move->output, type);
    sj_be_put16(move->output, (uint16_t)move_delta(move, sj_read_be16(&move->reader)));
    if (type == FULL) {
        move->has_uninitialized_this = false;
        move_full_frame(move);
    } else if (type > SAME_EXTENDED) {
        move_types(move, type - SAME_EXTENDED);
    }
}

/* Writes the frame of the label in the added entry code. Locals and stack are as at the method's
 * start. */
static void put_label_frame(map_move *move)
{
    const uint16_t label = move->layout->growth.label;
    if (label <= SAME_LAST) {
        sj_be_put8(move->output, (uint8_t)label);
    } else {
        sj_be_put8(move->output, SAME_EXTENDED);
        sj_be_put16(move->output, label);
    }
    move->new_at = label;
}

static void put_handler_frame(map_move *move, uint16_t throwable)
{
    const uint16_t place = move->layout->new_offset[move->layout->code.size];
    sj_be_put8(move->output, FULL);
    sj_be_put16(move->output, (uint16_t)(place - move->new_at - 1));
    sj_be_put16(move->output, 0); /* Number of locals. */
    sj_be_put16(move->output, 1); /* Size of the stack. */
    sj_be_put8(move->output, TYPE_OBJECT);
    sj_be_put16(move->output, throwable);
}

sj_status sj_stack_map_move(sj_slice old, const sj_code_layout *layout, uint16_t throwable,
                            sj_be_output *output)
{
    map_move move = {.reader = sj_reader_of(old.data, old.size),
                     .layout = layout,
                     .output = output,
                     .old_at = -1,
                     .new_at = -1,
                     .has_uninitialized_this = layout->covered_from > layout->growth.entry};
    const uint16_t count = old.size != 0 ? sj_read_be16(&move.reader) : 0;
    const uint32_t added = (layout->has_handler ? 1U : 0U) + (layout->growth.label != 0 ? 1U : 0U);
    if (count + added > UINT16_MAX) {
        return layout->has_handler ? SJ_EUNSUPPORTED : SJ_ECORRUPT;
    }
    sj_be_put16(output, (uint16_t)(count + added));
    if (layout->growth.label != 0) {
        put_label_frame(&move);
    }
    for (uint32_t i = 0; i < count; i++) {
        move_frame(&move);
        if (move.reader.bad || move.is_damaged) {
            return SJ_ECORRUPT;
        }
        if (layout->has_handler && move.has_uninitialized_this &&
            move.new_at >= layout->covered_from) {
            return SJ_EUNSUPPORTED;
        }
    }
    if (sj_reader_left(&move.reader) != 0) {
        return SJ_ECORRUPT;
    }
    if (layout->has_handler) {
        put_handler_frame(&move, throwable);
    }
    return SJ_OK;
}
