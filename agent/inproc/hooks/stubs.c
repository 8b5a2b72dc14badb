/* Design notes
 *
 * The stub area of a module has these parts:
 *  1. the trampolines, which jump to the agent's code
 *  2. the sj_stub_area, which describes the map (agent/abi/stub_map.h)
 *  3. the code that probes share
 *  4. the main lines of all stubs
 *  5. the tail-call entries (tail_calls.c)
 *  6. the slow parts of probes: they rarely run, so they do not share cache lines with the main
 *     lines
 *  7. the map
 *
 * Stubs may jump to later stubs, so there are two passes. The first pass measures, and finds every
 * address relative to the area. The second pass writes the code. */
#include "agent/abi/page.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/debugger.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/hooks/stub_notes.h"
#include "agent/inproc/hooks/unwind_table.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"
#include "agent/inproc/recorder/values.h"
#include "proto/base/cursor.h"

#include <sys/mman.h>

enum { STUB_ALIGNMENT = 16, VALUES_TRAMPOLINE = 16, JUMP_TRAMPOLINE = 32, AREA_START = 512 };
_Static_assert(SJ_STUB_AREA_OFFSET >= JUMP_TRAMPOLINE + 16, "behind the trampolines");
_Static_assert(SJ_STUB_AREA_OFFSET + sizeof(sj_stub_area) + SJ_UNWIND_TABLE_BYTES <= AREA_START,
               "in front of all else");

static bool expects_dispatch;

void sj_hooks_expect_dispatch(void)
{
    expects_dispatch = true;
    sj_recorder_true_return = sj_return_slots_true_address;
}

bool sj_hooks_expects_dispatch(void)
{
    return expects_dispatch;
}

/* Returns the address of the thunk to which dispatched calls return, or 0 if no dispatched calls
 * are recorded. */
static uint64_t find_thunk(void)
{
    return expects_dispatch ? (uint64_t)(uintptr_t)&sj_arch_return_thunk : 0;
}

static uint64_t read_target(const sj_application *application, sj_reader *reader)
{
    return application->bias + (uint64_t)sj_read_zigzag(reader);
}

static uint64_t read_stub(const sj_application *application, sj_reader *reader)
{
    const uint64_t index = sj_read_varint(reader);
    if (index >= application->plan->stub_count) {
        reader->bad = true;
        return 0;
    }
    return application->stub_addresses[index];
}

/* Reads the number of a label. Returns where its address is stored. */
static uint64_t *read_label(sj_application *application, sj_reader *reader)
{
    const uint64_t label = sj_read_varint(reader);
    if (label >= SJ_LABELS_PER_STUB) {
        reader->bad = true;
        return &application->labels[0];
    }
    if (label >= application->label_limit) {
        application->label_limit = (uint32_t)label + 1;
    }
    return &application->labels[label];
}

static uint64_t start_of_function(const sj_application *application)
{
    return application->bias + sj_plan_functions(application->plan)[application->function].offset;
}

/* Notes for the stub map the place of an exit's probe. On machines whose calls push the return
 * address, the place is the function's entry, not the exit. At an exit, unwind information may say
 * that saved registers lie below the stack pointer, where the function has popped them. The probe's
 * call overwrites these words. At the entry the frame is the same, and unwind information reads the
 * registers themselves. */
static void begin_exit(const sj_application *application, sj_code_emitter *emitter)
{
    sj_code_begin_place(emitter, SJ_STUB_FIXED,
                        SJ_MACHINE_CALL_PUSHES ? start_of_function(application)
                                               : application->place);
}

/* Notes the place of moved code. Code after an exit's probe has the place of the probe. */
static void begin_moved_code(sj_application *application, sj_code_emitter *emitter,
                             sj_stub_kind kind)
{
    if (application->has_left) {
        begin_exit(application, emitter);
        application->has_left = false;
    } else {
        sj_code_begin_place(emitter, kind, application->place);
    }
}

/* Reads and emits a COPY operation: bytes, and for the relative operations also a field's position
 * and its target. */
static void emit_copy(sj_application *application, sj_reader *reader, sj_code_emitter *emitter,
                      sj_plan_operation operation)
{
    const uint64_t count = sj_read_varint(reader);
    const uint8_t *bytes = sj_read_bytes(reader, (size_t)count);
    if (bytes == NULL) {
        return;
    }
    sj_stub_kind kind = SJ_ARCH_MOVED_KIND;
    if (operation == SJ_OPERATION_COPY) {
        kind = SJ_STUB_COPY;
    }
    begin_moved_code(application, emitter, kind);
    application->place += count;
    if (operation == SJ_OPERATION_COPY) {
        sj_code_emit_bytes(emitter, bytes, (uint32_t)count);
        return;
    }
    const uint64_t position = sj_read_varint(reader);
    uint64_t target = 0;
    if (operation == SJ_OPERATION_COPY_RELATIVE) {
        target = read_target(application, reader);
    } else {
        target = *read_label(application, reader);
        emitter->lacks_label |= target == 0;
    }
    if (reader->bad || count < 4 || position > count - 4) {
        reader->bad = true;
        return;
    }
    sj_code_emit_relative(emitter, bytes, (uint32_t)count, (uint32_t)position, target);
}

/* Emits code that records the values of a function of generated code. Calls no C code if all values
 * can be recorded without it. */
static void emit_generated_values(sj_code_emitter *emitter, uint32_t id, uint64_t address,
                                  bool is_exit)
{
    const sj_generated_values *values = sj_recorder_generated_values;
    const uint32_t number = values != NULL ? values->find(address, is_exit) : 0;
    sj_plain_value plain[SJ_VALUES_PER_FUNCTION];
    const uint32_t count = number != 0 ? values->list_plain(number, is_exit, plain) : 0;
    if (number != 0 && (count == 0 || !sj_code_emit_plain_values(emitter, id, plain, count))) {
        sj_code_emit_values(emitter, number | (is_exit ? (uint32_t)SJ_VALUES_AT_EXIT : 0), 0);
    }
}

/* When values are recorded. */
typedef enum values_moment {
    MOMENT_ENTRY,
    MOMENT_RETURN,
    MOMENT_JUMP /* exit by a jump to another function, where there is no result */
} values_moment;

/* Returns the value descriptor to record at a moment, for one of a function's places. Returns 0 if
 * nothing is recorded. */
static uint8_t place_at(uint8_t place, values_moment moment)
{
    if (place == SJ_PLACE_CPU_ENTRY) {
        return moment == MOMENT_ENTRY ? SJ_PLACE_CPU_ENTRY : SJ_PLACE_CPU_EXIT;
    }
    if (place == SJ_PLACE_MEMORY_ENTRY) {
        return moment == MOMENT_ENTRY ? SJ_PLACE_MEMORY_ENTRY : SJ_PLACE_MEMORY_EXIT;
    }
    const bool is_result = place == SJ_PLACE_ERRNO || sj_value_position(place) == SJ_VALUE_RESULT;
    return moment != MOMENT_JUMP && is_result == (moment == MOMENT_RETURN) ? place : 0;
}

/* Descriptors for one call of sj_recorder_values. */
typedef struct value_word {
    uint32_t descriptors;
    uint32_t count;
    uint8_t limit; /* the latest limit for the length of texts in the word */
} value_word;

enum { WORD_DESCRIPTORS = 4 /* most descriptors in a word */ };

static void emit_word(sj_code_emitter *emitter, uint32_t function, value_word *word)
{
    if (word->count != 0) {
        sj_code_emit_values(emitter, function, word->descriptors);
    }
    *word = (value_word){0};
}

static void add_to_word(value_word *word, uint8_t place)
{
    word->descriptors |= (uint32_t)place << (8 * word->count++);
}

static bool is_text_place(uint8_t place)
{
    const uint32_t kind = sj_value_kind_of(place);
    return kind == SJ_VALUE_STRING || kind >= SJ_PLACE_LENGTH_TEXT;
}

/* Adds a place and the descriptors that precede it: a new limit, and `size` if it is set. Ends the
 * word first if they do not fit. */
static void add_value(sj_code_emitter *emitter, uint32_t function, value_word *word, uint8_t limit,
                      const uint8_t size[2], uint8_t place)
{
    const uint32_t descriptor_count = size[0] != 0 ? 3 : 1;
    if (word->count + descriptor_count + (limit != word->limit ? 1 : 0) > WORD_DESCRIPTORS) {
        emit_word(emitter, function, word);
    }
    if (limit != word->limit) {
        add_to_word(word, limit);
        word->limit = limit;
    }
    if (size[0] != 0) {
        add_to_word(word, size[0]);
        add_to_word(word, size[1]);
    }
    add_to_word(word, place);
}

/* Adds the descriptors that save at the entry the address of a buffer or of a memory result. */
static void add_address(sj_code_emitter *emitter, uint32_t function, value_word *word,
                        const uint8_t filled[2])
{
    if (word->count + 2 > WORD_DESCRIPTORS) {
        emit_word(emitter, function, word);
    }
    add_to_word(word, filled[0]);
    add_to_word(word, filled[1]);
}

/* Adds the descriptors that record at the exit the contents of a buffer or of a memory result. */
static void add_buffer(sj_code_emitter *emitter, uint32_t function, value_word *word, uint8_t limit,
                       uint8_t filled, uint8_t place)
{
    if (word->count + 2 + (limit != word->limit ? 1 : 0) > WORD_DESCRIPTORS) {
        emit_word(emitter, function, word);
    }
    if (limit != word->limit) {
        add_to_word(word, limit);
        word->limit = limit;
    }
    add_to_word(word, filled);
    add_to_word(word, place);
}

/* Adds all nonzero descriptors if they fit. Otherwise adds none and sets `*fits` to false. */
static void add_or_refuse(value_word *word, const uint8_t descriptors[WORD_DESCRIPTORS], bool *fits)
{
    uint32_t needed = 0;
    for (uint32_t i = 0; i < WORD_DESCRIPTORS; i++) {
        needed += descriptors[i] != 0;
    }
    if (word->count + needed > WORD_DESCRIPTORS) {
        *fits = false;
        return;
    }
    for (uint32_t i = 0; i < WORD_DESCRIPTORS; i++) {
        if (descriptors[i] != 0) {
            add_to_word(word, descriptors[i]);
        }
    }
}

uint32_t sj_exit_values(const sj_plan_function *function, bool *fits)
{
    value_word word = {0};
    *fits = true;
    uint8_t limit = 0;
    uint8_t filled = 0;
    uint8_t words = 0; /* parameter of SJ_PLACE_WORDS; results never have SJ_PLACE_LENGTH */
    for (uint32_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        const uint8_t held = function->values[i];
        const uint8_t place = place_at(held, MOMENT_RETURN);
        limit = sj_place_is_limit(held) ? held : limit;
        if (sj_place_is_size(held) && i + 1 < SJ_PLACES_PER_FUNCTION) {
            filled = sj_place_is_filled(held) ? held : 0;
            words = held == SJ_PLACE_WORDS ? function->values[i + 1] : 0;
            i++;
        } else if (words != 0) {
            if (place != 0) {
                const uint8_t text_limit = words == SJ_PLACE_SRET_WORDS ? limit : 0;
                add_or_refuse(&word, (uint8_t[]){text_limit, SJ_PLACE_WORDS, words, place}, fits);
            }
            words = 0;
        } else if (filled != 0) {
            add_or_refuse(&word, (uint8_t[WORD_DESCRIPTORS]){limit, filled, place}, fits);
            filled = 0;
        } else if (place != 0) {
            const uint8_t text_limit = is_text_place(place) ? limit : 0;
            add_or_refuse(&word, (uint8_t[WORD_DESCRIPTORS]){text_limit, place}, fits);
        }
    }
    return word.descriptors;
}

/* Emits code that records the function's values at a moment. */
static void emit_values(const sj_application *application, sj_code_emitter *emitter, uint32_t index,
                        values_moment moment)
{
    static const uint8_t result_address[2] = {SJ_PLACE_FILLED, SJ_PLACE_RESULT_ADDRESS};
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    const uint32_t id =
        (uint32_t)function->value_shift << SJ_VALUE_SHIFT_BIT | sj_function_id(application, index);
    value_word word = {0};
    uint8_t limit = 0;
    uint8_t size[2] = {0}; /* SJ_PLACE_LENGTH or SJ_PLACE_WORDS, and its parameter */
    if (function->source == SJ_SYMBOL_GENERATED) {
        if (moment != MOMENT_JUMP) {
            emit_generated_values(emitter, id, application->bias + function->offset,
                                  moment == MOMENT_RETURN);
        }
        return;
    }
    if (!sj_plan_has_values(function)) {
        return;
    }
    for (uint32_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        const uint8_t held = function->values[i];
        if (sj_place_is_limit(held)) {
            limit = held;
        } else if (sj_place_is_size(held) && i + 1 < SJ_PLACES_PER_FUNCTION) {
            size[0] = held;
            size[1] = function->values[++i];
        } else {
            const uint8_t place = place_at(held, moment);
            const bool is_memory_result = sj_place_is_sret(size[0], size[1]);
            if (is_memory_result && moment == MOMENT_ENTRY) {
                add_address(emitter, id, &word, result_address);
            } else if (sj_place_is_filled(size[0])) {
                if (moment == MOMENT_ENTRY) {
                    add_address(emitter, id, &word, size);
                } else if (place != 0) {
                    add_buffer(emitter, id, &word, limit, size[0], place);
                }
            } else if (place != 0) {
                const bool has_words = size[0] == SJ_PLACE_WORDS && size[1] != SJ_PLACE_SRET_WORDS;
                const bool has_limit = is_text_place(place) && !has_words;
                add_value(emitter, id, &word, has_limit ? limit : word.limit, size, place);
            }
            size[0] = 0;
        }
    }
    emit_word(emitter, id, &word);
}

static void emit_tail_call(const sj_application *application, sj_reader *reader,
                           sj_code_emitter *emitter, uint32_t function)
{
    const uint64_t callee = sj_read_varint(reader);
    if (callee >= application->plan->function_count) {
        reader->bad = true;
    } else if (application->heap_entries != NULL) {
        sj_code_emit_jump(emitter,
                          application->bias + sj_plan_functions(application->plan)[callee].offset);
    } else {
        emit_values(application, emitter, function, MOMENT_JUMP);
        sj_code_emit_tail_call(application, emitter, function, (uint32_t)callee);
    }
}

static void emit_enter(const sj_application *application, sj_code_emitter *emitter, uint32_t index)
{
    if (application->heap_entries != NULL) {
        application->heap_entries->emit(application->heap_entries->context, emitter, index);
        return;
    }
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    const uint32_t id = sj_function_id(application, index);
    emit_values(application, emitter, index, MOMENT_ENTRY);
    if (function->receiver != 0) {
        sj_code_emit_receiver_probe(emitter, id, function->receiver);
    } else {
        sj_code_emit_probe(emitter, sj_record_make_tag(SJ_RECORD_ENTER, id));
    }
}

/* True if the next operation is a return. Before a jump to another function, the result register
 * holds no result. */
static bool is_before_return(sj_reader reader)
{
    if (sj_read_u8(&reader) != SJ_OPERATION_COPY) {
        return false;
    }
    const uint64_t count = sj_read_varint(&reader);
    const uint8_t *bytes = sj_read_bytes(&reader, (size_t)count);
    return bytes != NULL && sj_arch_is_return(bytes, (uint32_t)count);
}

static void emit_leave(const sj_application *application, sj_code_emitter *emitter, uint32_t index,
                       const sj_reader *next)
{
    if (application->heap_entries != NULL) {
        return;
    }
    const uint32_t id = sj_function_id(application, index);
    emit_values(application, emitter, index, is_before_return(*next) ? MOMENT_RETURN : MOMENT_JUMP);
    sj_code_emit_probe(emitter, sj_record_make_tag(SJ_RECORD_LEAVE, id));
}

static void emit_jump_leave(const sj_application *application, sj_reader *reader,
                            sj_code_emitter *emitter, uint32_t index)
{
    const uint32_t jump_register = (uint32_t)sj_read_varint(reader);
    const uint64_t size = sj_read_varint(reader);
    const uint8_t *bytes = sj_read_bytes(reader, (size_t)size);
    const uint64_t field = sj_read_varint(reader);
    const uint64_t target = read_target(application, reader);
    const uint64_t end = field != 0 ? field + sizeof(int32_t) : 0;
    if (reader->bad || bytes == NULL || end > size) {
        reader->bad = true;
        return;
    }
    if (application->heap_entries != NULL) {
        return;
    }
    emit_values(application, emitter, index, MOMENT_JUMP);
    if (end != 0) {
        sj_code_emit_relative(emitter, bytes, (uint32_t)end, (uint32_t)field, target);
    }
    sj_code_emit_bytes(emitter, bytes + end, (uint32_t)(size - end));
    sj_code_emit_jump_leave(emitter,
                            sj_record_make_tag(SJ_RECORD_LEAVE, sj_function_id(application, index)),
                            jump_register);
}

/* Notes for the stub map the place of an operation's code. */
static void begin_operation(sj_application *application, sj_code_emitter *emitter,
                            sj_plan_operation operation)
{
    switch (operation) {
    case SJ_OPERATION_ENTER:
    case SJ_OPERATION_PUSH_RETURN:
        sj_code_begin_place(emitter, SJ_STUB_FIXED, application->place);
        break;
    case SJ_OPERATION_LEAVE:
    case SJ_OPERATION_JUMP_LEAVE:
        begin_exit(application, emitter);
        application->has_left = true;
        break;
    case SJ_OPERATION_TAIL_CALL:
        begin_exit(application, emitter);
        break;
    case SJ_OPERATION_JUMP:
    case SJ_OPERATION_JUMP_STUB:
    case SJ_OPERATION_JUMP_IF_STUB:
        begin_moved_code(application, emitter, SJ_ARCH_MOVED_KIND);
        break;
    case SJ_OPERATION_DISPATCH:
        sj_code_begin_place(emitter, SJ_STUB_CALLED, 0);
        break;
    default:
        break;
    }
}

static void emit_operation(sj_application *application, sj_reader *reader, sj_code_emitter *emitter,
                           uint32_t function)
{
    const sj_plan_operation operation = (sj_plan_operation)sj_read_u8(reader);
    begin_operation(application, emitter, operation);
    switch (operation) {
    case SJ_OPERATION_ENTER:
        emit_enter(application, emitter, function);
        emitter->frees_flags = false;
        break;
    case SJ_OPERATION_LEAVE:
        emit_leave(application, emitter, function, reader);
        emitter->frees_flags = false;
        break;
    case SJ_OPERATION_FREE_FLAGS:
        emitter->frees_flags = true;
        break;
    case SJ_OPERATION_PLACE:
        application->place = start_of_function(application) + (uint64_t)sj_read_zigzag(reader);
        break;
    case SJ_OPERATION_COPY:
    case SJ_OPERATION_COPY_RELATIVE:
    case SJ_OPERATION_COPY_TO_LABEL:
        emit_copy(application, reader, emitter, operation);
        break;
    case SJ_OPERATION_JUMP:
        sj_code_emit_jump(emitter, read_target(application, reader));
        break;
    case SJ_OPERATION_PUSH_RETURN:
        sj_code_emit_push_return(emitter, read_target(application, reader));
        break;
    case SJ_OPERATION_JUMP_IF_STUB: {
        const uint32_t condition = (uint32_t)sj_read_varint(reader);
        sj_code_emit_jump_if(emitter, condition, read_stub(application, reader));
        break;
    }
    case SJ_OPERATION_JUMP_STUB:
        sj_code_emit_jump(emitter, read_stub(application, reader));
        break;
    case SJ_OPERATION_LABEL:
        *read_label(application, reader) = emitter->at;
        break;
    case SJ_OPERATION_TAIL_CALL:
        emit_tail_call(application, reader, emitter, function);
        break;
    case SJ_OPERATION_JUMP_LEAVE:
        emit_jump_leave(application, reader, emitter, function);
        break;
    case SJ_OPERATION_DISPATCH:
        emit_values(application, emitter, function, MOMENT_ENTRY);
        reader->bad |= !sj_code_emit_dispatch(application, emitter, function);
        break;
    default:
        reader->bad = true;
        break;
    }
}

/* Emits one stub. Returns false if its operations are invalid. */
static bool emit_stub(sj_application *application, sj_code_emitter *emitter, uint32_t index)
{
    const sj_plan_stub *stub = sj_plan_stubs(application->plan) + index;
    const uint8_t *operations = (const uint8_t *)application->plan +
                                application->plan->operations_offset + stub->operations;
    sj_reader reader = sj_reader_of(operations, stub->operations_bytes);
    emitter->frees_flags =
        false; /* the previous stub may have ended without a probe and left the member set */
    application->function = stub->function;
    application->place = start_of_function(application);
    application->has_left = false;
    while (!reader.bad && sj_reader_left(&reader) != 0) {
        emit_operation(application, &reader, emitter, stub->function);
    }
    return !reader.bad;
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

/* Sizes and offsets of the parts of a stub area, in bytes. */
typedef struct area_layout {
    uint64_t main_bytes;
    uint64_t cold_bytes;
    uint64_t map; /* offset in the area */
    uint64_t bytes;
    uint32_t main_count; /* number of map entries for the main lines; 0: no map */
    uint32_t cold_count;
} area_layout;

/* Notes for the stub map that the code at the start of an area is called by stubs. */
static void note_trampolines(sj_code_emitter *emitter, uint64_t area)
{
    emitter->at = area;
    sj_code_begin_place(emitter, SJ_STUB_CALLED, 0);
    sj_code_note_stack(emitter, &emitter->cold_at, 0);
    emitter->at = area + AREA_START;
}

/* Computes the address of each stub relative to the area, and the area's layout. */
static area_layout measure_stubs(sj_application *application, uint64_t thunk)
{
    sj_stub_notes notes = {.text = application->bias + application->plan->text_low};
    sj_code_emitter emitter = {.measuring = true,
                               .is_inline = sj_is_generated(application),
                               .thunk = thunk,
                               .counts_calls = sj_recorder_counts_calls(),
                               .notes = &notes};
    note_trampolines(&emitter, 0);
    sj_code_emit_shared(&emitter);
    for (uint32_t i = 0; i < application->plan->stub_count; i++) {
        if (application->function_skips[sj_plan_stubs(application->plan)[i].function] !=
            SJ_SKIP_NONE) {
            continue;
        }
        emitter.at = align_up(emitter.at, STUB_ALIGNMENT);
        application->stub_addresses[i] = emitter.at;
        if (!emit_stub(application, &emitter, i)) {
            application->function_skips[sj_plan_stubs(application->plan)[i].function] =
                SJ_SKIP_UNDECODABLE;
        }
    }
    sj_code_emit_tail_call_entries(application, &emitter);
    area_layout layout = {.main_bytes = emitter.at,
                          .cold_bytes = emitter.cold_at,
                          .map = align_up(emitter.at + emitter.cold_at, sizeof(sj_stub_entry))};
    if (layout.map < SJ_STUB_AREA_MOST_BYTES) {
        layout.main_count = notes.main.count;
        layout.cold_count = notes.cold.count;
    }
    const uint64_t entries = (uint64_t)layout.main_count + layout.cold_count;
    layout.bytes = sj_page_round_up(layout.map + entries * sizeof(sj_stub_entry));
    return layout;
}

/* Writes one stub. Writes it a second time if it used a label before the label's address was
 * known. */
static void write_stub(sj_application *application, sj_code_emitter *emitter, uint32_t index)
{
    const uint32_t function = sj_plan_stubs(application->plan)[index].function;
    while (application->label_limit != 0) {
        application->labels[--application->label_limit] = 0;
    }
    emitter->at = application->stub_addresses[index];
    if (application->function_skips[function] != SJ_SKIP_NONE) {
        return;
    }
    const sj_code_emitter start = *emitter;
    const sj_stub_notes noted = *emitter->notes;
    bool is_valid = emit_stub(application, emitter, index);
    if (is_valid && emitter->lacks_label) {
        *emitter = start;
        *emitter->notes = noted;
        is_valid = emit_stub(application, emitter, index) && !emitter->lacks_label;
    }
    if (!is_valid) {
        application->function_skips[function] = SJ_SKIP_UNDECODABLE;
    } else if (emitter->too_far) {
        application->function_skips[function] = SJ_SKIP_STUB_TOO_FAR;
    }
    emitter->too_far = false;
    emitter->lacks_label = false;
}

void sj_stubs_emit_trampolines(sj_code_emitter *emitter)
{
    emitter->slow_trampoline = emitter->at;
    emitter->values_trampoline = emitter->at + VALUES_TRAMPOLINE;
    emitter->jump_trampoline = emitter->at + JUMP_TRAMPOLINE;
    sj_code_emit_trampoline(emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    emitter->at = emitter->values_trampoline;
    sj_code_emit_trampoline(emitter, (uint64_t)(uintptr_t)&sj_arch_values_entry);
    emitter->at = emitter->jump_trampoline;
    sj_code_emit_trampoline(emitter, (uint64_t)(uintptr_t)&sj_arch_jump_entry);
}

/* Adds the area's address to the relative addresses of stubs and tail-call entries. */
static void place_stubs(sj_application *application, uint64_t area)
{
    for (uint32_t i = 0; i < application->plan->stub_count; i++) {
        application->stub_addresses[i] += area;
    }
    for (uint32_t i = 0; i < application->plan->function_count; i++) {
        application->tail_call_entries[i] += application->tail_call_entries[i] != 0 ? area : 0;
    }
}

/* Writes the code and the map of a stub area. */
static void write_area(sj_application *application, uint64_t thunk, const area_layout *layout,
                       uint64_t area)
{
    sj_stub_entry *entries = (sj_stub_entry *)(uintptr_t)(area + layout->map);
    sj_stub_notes notes = {
        .area = area,
        .text = application->bias + application->plan->text_low,
        .main = {.entries = entries, .capacity = layout->main_count},
        .cold = {.entries = entries + layout->main_count, .capacity = layout->cold_count}};
    sj_code_emitter emitter = {.at = area,
                               .cold_at = area + layout->main_bytes,
                               .is_inline = sj_is_generated(application),
                               .thunk = thunk,
                               .counts_calls = sj_recorder_counts_calls(),
                               .notes = &notes};
    sj_stubs_emit_trampolines(&emitter);
    note_trampolines(&emitter, area);
    sj_code_emit_shared(&emitter);
    for (uint32_t i = 0; i < application->plan->stub_count; i++) {
        write_stub(application, &emitter, i);
    }
    sj_code_emit_tail_call_entries(application, &emitter);
    application->is_movable = !emitter.holds_addresses && thunk == 0;
    if (layout->main_count != 0) {
        sj_stub_notes_finish(&notes, (uint32_t)layout->map,
                             (uint32_t)(layout->main_bytes + layout->cold_bytes));
    }
}

sj_status sj_stubs_build(sj_application *application, sj_hooked_module *module)
{
    const sj_plan_header *plan = application->plan;
    const uint64_t thunk = find_thunk();
    const area_layout layout = measure_stubs(application, thunk);
    const uint64_t low = application->bias + plan->text_low;
    const uint64_t high = application->bias + plan->text_high;
    uint8_t *area = sj_is_generated(application) ? sj_near_allocate(low, high, layout.bytes)
                                                 : sj_near_map(low, high, layout.bytes);
    if (area == NULL) {
        for (uint32_t i = 0; i < plan->function_count; i++) {
            application->function_skips[i] = SJ_SKIP_STUB_TOO_FAR;
        }
        return SJ_OK;
    }
    sj_sys_populate(area, layout.bytes);
    place_stubs(application, (uint64_t)(uintptr_t)area);
    write_area(application, thunk, &layout, (uint64_t)(uintptr_t)area);
    module->stubs = area;
    module->stubs_bytes = layout.bytes;
    sj_stub_areas_add(area, layout.bytes);
    if (!sj_is_generated(application)) {
        sj_debugger_add(area);
    }
    sj_arch_sync_code((uint64_t)(uintptr_t)area, layout.bytes);
    return sj_sys_protect(area, layout.bytes, PROT_READ | PROT_EXEC) == 0 ? SJ_OK : SJ_EPERM;
}
