#include "agent/inproc/recorder/values.h"

#include "agent/abi/page.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/memory.h"
#include "agent/inproc/recorder/readable.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

enum { WORD_BYTES = 8, NS_PER_S = 1000000000 };

/* Bits of a code address; the bits above them may hold a signature. */
#define ADDRESS_BITS ((UINT64_C(1) << SJ_MACHINE_ADDRESS_BITS) - 1)

const sj_generated_values *sj_recorder_generated_values;
sj_true_return *sj_recorder_true_return;

_Atomic uint32_t *_Atomic sj_recorder_counts_memory;

/* Reads up to `capacity` bytes by a system call. The kernel copies a part whole or not at all, so
 * the first part ends where a page may end. */
static size_t read_memory(uint64_t address, uint8_t *bytes, size_t capacity)
{
    const size_t in_piece = SJ_PAGE_LEAST_BYTES - (size_t)(address % SJ_PAGE_LEAST_BYTES);
    const size_t first = capacity < in_piece ? capacity : in_piece;
    const struct iovec here = {.iov_base = bytes, .iov_len = capacity};
    const struct iovec there[2] = {
        {.iov_base = (void *)address, .iov_len = first},
        {.iov_base = (void *)(address + first), .iov_len = capacity - first}};
    const long got = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), (long)(uintptr_t)&here, 1,
                            (long)(uintptr_t)there, first < capacity ? 2 : 1, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Reads up to `capacity` bytes directly, or up to a NUL if `ends_at_nul`. Returns 0 if that might
 * fault. */
static size_t read_directly(uint64_t address, uint8_t *bytes, size_t capacity, bool ends_at_nul)
{
    const size_t readable = sj_recorder_readable(address);
    const size_t most = readable < capacity ? readable : capacity;
    for (size_t i = 0; i < most; i++) {
        bytes[i] = ((const volatile uint8_t *)address)[i];
        if (ends_at_nul && bytes[i] == 0) {
            return i + 1;
        }
    }
    return most == capacity ? most : 0;
}

/* Reads up to `capacity` bytes, by a system call if reading directly might fault. */
static size_t read_safely(uint64_t address, uint8_t *bytes, size_t capacity, bool ends_at_nul)
{
    size_t got = read_directly(address, bytes, capacity, ends_at_nul);
    if (got == 0 && sj_recorder_begin_calls()) {
        got = read_memory(address, bytes, capacity);
        sj_recorder_end_calls();
    }
    return got;
}

/* The text that a value points to: NUL-terminated, or of a known length. */
typedef struct text_place {
    uint64_t pointer;
    uint64_t length; /* UINT64_MAX: NUL-terminated */
    size_t most;     /* number of bytes to record at most */
} text_place;

/* Buffer for a text. It is never initialised: that would call memset, which uses vector
 * registers. */
typedef union text_words {
    uint8_t bytes[SJ_VALUE_TEXT_BYTES];
    uint64_t words[SJ_VALUE_TEXT_BYTES / WORD_BYTES];
} text_words;

typedef union long_text_words {
    uint8_t bytes[SJ_VALUE_TEXT_MOST];
    uint64_t words[SJ_VALUE_TEXT_MOST / WORD_BYTES];
} long_text_words;

/* Reads the address and the length stored at `address`. */
static text_place follow(uint64_t address)
{
    uint64_t words[2] = {address, 0};
    const size_t got =
        address != 0 ? read_safely(address, (uint8_t *)words, sizeof(words), false) : 0;
    return got == sizeof(words) ? (text_place){.pointer = words[0], .length = words[1]}
                                : (text_place){.pointer = address, .length = UINT64_MAX};
}

/* Records the part of a text that was read into `words`. Zeroes the rest of the last word. */
static void put_words(uint32_t tag, uint64_t stack, uint8_t descriptor, const text_place *place,
                      size_t most, size_t got, uint64_t *words)
{
    uint8_t *bytes = (uint8_t *)words;
    const bool is_counted = place->length != UINT64_MAX;
    size_t length = is_counted ? got : 0;
    while (!is_counted && length < got && bytes[length] != 0) {
        length++;
    }
    for (size_t i = length; i % WORD_BYTES != 0; i++) {
        ((volatile uint8_t *)bytes)[i] = 0;
    }
    const bool is_whole = is_counted ? got == place->length : length < got;
    sj_value_note note = is_whole ? SJ_VALUE_WHOLE : SJ_VALUE_CUT;
    if (got == 0 && most != 0) {
        note = place->pointer != 0 ? SJ_VALUE_UNREADABLE : SJ_VALUE_NULL;
    }
    sj_recorder_put_value(tag, stack, descriptor, SJ_PART_VALUE, sj_value_text_head(length, note));
    for (size_t i = 0; i * WORD_BYTES < length; i++) {
        sj_recorder_put_value(tag, stack, descriptor, SJ_PART_TEXT, words[i]);
    }
}

static void put_text_within(uint32_t tag, uint64_t stack, uint8_t descriptor,
                            const text_place *place, uint64_t *words, size_t capacity)
{
    const size_t wanted = place->most < capacity ? place->most : capacity;
    const size_t most = place->length < wanted ? place->length : wanted;
    const size_t got =
        place->pointer != 0 && most != 0
            ? read_safely(place->pointer, (uint8_t *)words, most, place->length == UINT64_MAX)
            : 0;
    put_words(tag, stack, descriptor, place, most, got, words);
}

static void put_short_text(uint32_t tag, uint64_t stack, uint8_t descriptor,
                           const text_place *place)
{
    text_words text;
    put_text_within(tag, stack, descriptor, place, text.words, sizeof(text));
}

__attribute__((noinline)) static void put_long_text(uint32_t tag, uint64_t stack,
                                                    uint8_t descriptor, const text_place *place)
{
    long_text_words text;
    put_text_within(tag, stack, descriptor, place, text.words, sizeof(text));
}

/* Records a text. A long text needs a buffer on the program's stack, which may be small. If the
 * stack is not known to have space for it, only the beginning is recorded. */
static void put_text(uint32_t tag, uint64_t stack, uint8_t descriptor, const text_place *place)
{
    enum { NEEDED_BYTES = 8 * SJ_VALUE_TEXT_MOST };
    if (place->most > SJ_VALUE_TEXT_BYTES && sj_recorder_stack_space() >= NEEDED_BYTES) {
        put_long_text(tag, stack, descriptor, place);
    } else {
        put_short_text(tag, stack, descriptor, place);
    }
}

/* The entry or the exit of a call, to which values and conditions of rules refer. */
typedef struct moment {
    const sj_value_registers *registers;
    uint32_t shift;
    uint64_t stack;
} moment;

/* Returns where the words of arguments passed on the stack begin. */
static const uint64_t *stack_words(uint64_t stack)
{
    return (const uint64_t *)stack + SJ_MACHINE_CALL_PUSHES;
}

/* Returns the second half of a pair in which a text is passed or returned. It is the register, or
 * the word on the stack, after the place's own. */
static uint64_t second_of(uint8_t place, const moment *at)
{
    const uint32_t position = sj_value_position(place);
    if (position >= SJ_PLACE_STACK) {
        return stack_words(at->stack)[position - SJ_PLACE_STACK + 1];
    }
    return position == SJ_VALUE_RESULT     ? at->registers->whole[SJ_MACHINE_SECOND_RESULT]
           : position < SJ_VALUE_REGISTERS ? at->registers->whole[position]
                                           : 0;
}

/* Returns the text of a place whose register contains `bits`. */
static text_place text_of(uint8_t place, uint64_t bits, const moment *at)
{
    switch (sj_value_kind_of(place)) {
    case SJ_PLACE_TEXT_AT:
        return follow(bits);
    case SJ_PLACE_TEXT_LENGTH:
        return (text_place){.pointer = bits, .length = second_of(place, at)};
    case SJ_PLACE_LENGTH_TEXT:
        return (text_place){.pointer = second_of(place, at), .length = bits};
    default:
        return (text_place){.pointer = bits, .length = UINT64_MAX};
    }
}

/* Stores the content of the value's register, or of its word on the stack, in `*bits`. Returns
 * false if the place is unknown. */
static bool find_register(uint8_t descriptor, uint32_t shift, uint64_t stack,
                          const sj_value_registers *registers, uint64_t *bits)
{
    const uint32_t position = sj_value_position(descriptor);
    const bool is_real = sj_value_is_real(sj_value_kind_of(descriptor));
    const uint32_t place = is_real ? position - 1 : position - 1 + shift;
    if (position == SJ_VALUE_RESULT) {
        *bits = is_real ? registers->real[0] : registers->result;
        return true;
    }
    if (position >= SJ_PLACE_STACK) {
        *bits = stack_words(stack)[position - SJ_PLACE_STACK];
        return true;
    }
    if (place >= SJ_VALUE_REGISTERS) {
        return false;
    }
    *bits = is_real ? registers->real[place] : registers->whole[place];
    return true;
}

/* Sets the register that a descriptor refers to. */
static void set_register(uint8_t descriptor, uint32_t shift, sj_value_registers *registers,
                         uint64_t bits)
{
    const uint32_t position = sj_value_position(descriptor);
    const bool is_real = sj_value_is_real(sj_value_kind_of(descriptor));
    const uint32_t place = is_real ? position - 1 : position - 1 + shift;
    if (position == SJ_VALUE_RESULT) {
        *(is_real ? &registers->real[0] : &registers->result) = bits;
    } else if (place < SJ_VALUE_REGISTERS) {
        *(is_real ? &registers->real[place] : &registers->whole[place]) = bits;
    }
}

static void put_change(uint32_t tag, uint64_t stack, const sj_due_change *due)
{
    sj_recorder_put_value(tag, stack, due->target, SJ_PART_CHANGED, due->bits);
    sj_recorder_put_value(tag, stack, due->target, SJ_PART_RULE, due->rule);
}

/* Records the whole call of a function that does not run. */
static void return_at_once(uint32_t tag, uint64_t stack, const sj_due_change *due)
{
    const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
    const uint32_t enter = sj_record_make_tag(SJ_RECORD_ENTER, function);
    const uint32_t leave = sj_record_make_tag(SJ_RECORD_LEAVE, function);
    sj_recorder_put(sj_recorder_reserve(enter), sj_arch_ticks(), stack, enter);
    put_change(tag, stack, due);
    sj_recorder_put(sj_recorder_reserve(leave), sj_arch_ticks(), stack, leave);
}

/* Writes a rule's bytes to the program's memory. The kernel copies them, so an invalid address
 * cannot fault: then nothing is written and nothing recorded. */
static sj_values_outcome write_bytes(uint32_t tag, uint64_t stack, uint32_t shift,
                                     const sj_due_change *due, const sj_value_registers *registers)
{
    sj_due_change written = *due;
    uint8_t data[SJ_CHANGE_DATA_BYTES];
    /* read first: bytes that would end in unmapped memory are not written */
    uint8_t old[SJ_CHANGE_DATA_BYTES];
    const size_t bytes = sj_recorder_due_bytes(due, data);
    if (bytes == 0 || !find_register(due->target, shift, stack, registers, &written.bits) ||
        !sj_recorder_begin_calls()) {
        return SJ_VALUES_KEPT;
    }
    if (read_memory(written.bits, old, bytes) != bytes) {
        sj_recorder_end_calls();
        return SJ_VALUES_KEPT;
    }
    const struct iovec here = {.iov_base = data, .iov_len = bytes};
    const struct iovec there = {.iov_base = (void *)written.bits, .iov_len = bytes};
    const long got = SJ_SYS(SYS_process_vm_writev, sj_sys_pid(), (long)(uintptr_t)&here, 1,
                            (long)(uintptr_t)&there, 1, 0);
    sj_recorder_end_calls();
    if (got > 0) {
        put_change(tag, stack, &written);
    }
    return SJ_VALUES_KEPT;
}

static bool read_moment(const void *context, uint8_t descriptor, uint64_t *bits)
{
    const moment *at = context;
    if (sj_value_kind_of(descriptor) == SJ_VALUE_ERRNO) {
        *bits = (uint32_t)errno;
        return true;
    }
    if (!find_register(descriptor, at->shift, at->stack, at->registers, bits)) {
        return false;
    }
    *bits = sj_value_narrow(sj_value_kind_of(descriptor), *bits);
    return true;
}

static sj_values_outcome change(uint32_t tag, uint64_t stack, uint32_t shift,
                                const sj_due_change *due, sj_value_registers *registers)
{
    if (due->action == SJ_CHANGE_NOTHING) {
        put_change(tag, stack, due);
        return SJ_VALUES_KEPT;
    }
    if (due->action == SJ_CHANGE_WRITE) {
        return write_bytes(tag, stack, shift, due, registers);
    }
    set_register(due->target, shift, registers, due->bits);
    if (due->action != SJ_CHANGE_RETURN) {
        put_change(tag, stack, due);
        return SJ_VALUES_CHANGED;
    }
    return_at_once(tag, stack, due);
    return SJ_VALUES_RETURN;
}

static uint32_t record_generated(uint32_t number, uint64_t stack, sj_value_registers *registers)
{
    return sj_recorder_generated_values->record(
        number & SJ_VALUES_NUMBER_MASK, (number & SJ_VALUES_AT_EXIT) != 0, stack, registers);
}

static void put_reading(uint32_t tag, uint64_t stack, sj_cost_counter counter, bool at_entry,
                        uint64_t reading)
{
    sj_recorder_put_value(tag, stack,
                          sj_value_descriptor(sj_cost_reading(counter, at_entry), SJ_VALUE_COST),
                          SJ_PART_VALUE, reading);
}

/* Records what the thread has allocated and freed so far. */
static void put_memory(uint32_t tag, uint64_t stack, bool at_entry)
{
    static const sj_cost_counter counters[SJ_SLOT_MEMORY] = {
        [SJ_SLOT_ALLOCATIONS] = SJ_COUNTER_ALLOCATIONS,
        [SJ_SLOT_ALLOCATED_BYTES] = SJ_COUNTER_ALLOCATED_BYTES,
        [SJ_SLOT_FREES] = SJ_COUNTER_FREES,
        [SJ_SLOT_FREED_BYTES] = SJ_COUNTER_FREED_BYTES};
    if (!sj_recorder_is_counting_memory()) {
        return;
    }
    const sj_memory_counters memory = sj_recorder_copy_memory();
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        put_reading(tag, stack, counters[i], at_entry, memory.counters[i] - 1);
    }
}

/* Records the CPU time that the thread has used so far. */
static void put_cpu(uint32_t tag, uint64_t stack, bool at_entry)
{
    struct timespec now;
    if (!sj_recorder_begin_calls()) {
        return;
    }
    const long failed =
        SJ_SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)(uintptr_t)&now, 0, 0, 0, 0);
    sj_recorder_end_calls();
    if (failed == 0) {
        put_reading(tag, stack, SJ_COUNTER_CPU_NS, at_entry,
                    (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec);
    }
}

/* Records a counter or errno, if the place names one. Returns false if the place names a value of
 * the call. */
static bool put_apart(uint32_t tag, uint64_t stack, uint8_t place)
{
    switch (place) {
    case SJ_PLACE_CPU_ENTRY:
    case SJ_PLACE_CPU_EXIT:
        put_cpu(tag, stack, place == SJ_PLACE_CPU_ENTRY);
        return true;
    case SJ_PLACE_MEMORY_ENTRY:
    case SJ_PLACE_MEMORY_EXIT:
        put_memory(tag, stack, place == SJ_PLACE_MEMORY_ENTRY);
        return true;
    case SJ_PLACE_ERRNO:
        sj_recorder_put_value(tag, stack, sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_ERRNO),
                              SJ_PART_VALUE, (uint32_t)errno);
        return true;
    default:
        return false;
    }
}

/* Descriptors of exits by function: a hash table with open addressing. The descriptors are written
 * before the function. */
enum { RETURN_VALUES = 4096 };

typedef struct return_value {
    _Atomic uint32_t function; /* 0: free */
    _Atomic uint32_t descriptors;
} return_value;

static return_value returns[RETURN_VALUES];

_Atomic uint32_t sj_return_values_count; /* read by the thunk */

static uint32_t return_place(uint32_t function)
{
    return function * UINT32_C(0x9e3779b1) % RETURN_VALUES;
}

bool sj_return_values_set(uint32_t function, uint32_t descriptors)
{
    uint32_t place = return_place(function);
    const uint32_t count = atomic_load_explicit(&sj_return_values_count, memory_order_relaxed);
    uint32_t held = atomic_load_explicit(&returns[place].function, memory_order_relaxed);
    while (held != 0 && held != function) {
        place = (place + 1) % RETURN_VALUES;
        held = atomic_load_explicit(&returns[place].function, memory_order_relaxed);
    }
    if (held == 0 && (descriptors == 0 || count >= RETURN_VALUES / 2)) {
        return descriptors == 0;
    }
    atomic_store_explicit(&returns[place].descriptors, descriptors, memory_order_relaxed);
    /* Pairs with return_values. */
    atomic_store_explicit(&returns[place].function, function, memory_order_release);
    if (held == 0) {
        atomic_store_explicit(&sj_return_values_count, count + 1, memory_order_release);
    }
    return true;
}

static uint32_t return_values(uint32_t function)
{
    uint32_t place = return_place(function);
    for (uint32_t i = 0; i < RETURN_VALUES; i++) {
        const uint32_t held = atomic_load_explicit(&returns[place].function, memory_order_acquire);
        if (held == function || held == 0) {
            return held != 0
                       ? atomic_load_explicit(&returns[place].descriptors, memory_order_relaxed)
                       : 0;
        }
        place = (place + 1) % RETURN_VALUES;
    }
    return 0;
}

/* Addresses saved from entry to exit: of a buffer that the function fills, or for a memory result.
 * A function has one or the other. The key is the stack address of the call, which no other open
 * call has.
 *
 * Two calls may share a place; the later one overwrites it. The check rejects another call's
 * address and one that is half written. */
enum { KEPT_BUFFERS = 4096 };

typedef struct kept_buffer {
    _Atomic uint64_t pointer;
    _Atomic uint64_t check; /* pointer XOR stack address */
} kept_buffer;

static kept_buffer kept_buffers[KEPT_BUFFERS];

static kept_buffer *buffer_place(uint64_t stack)
{
    return &kept_buffers[(stack >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static void keep_buffer(uint64_t stack, uint64_t pointer)
{
    kept_buffer *place = buffer_place(stack);
    atomic_store_explicit(&place->pointer, pointer, memory_order_relaxed);
    atomic_store_explicit(&place->check, pointer ^ stack, memory_order_relaxed);
}

/* Returns true once for a saved address of a call, and stores it in `*pointer`. */
static bool consume_buffer(uint64_t stack, uint64_t *pointer)
{
    kept_buffer *place = buffer_place(stack);
    *pointer = atomic_load_explicit(&place->pointer, memory_order_relaxed);
    if ((atomic_load_explicit(&place->check, memory_order_relaxed) ^ *pointer) != stack) {
        return false;
    }
    atomic_store_explicit(&place->check, 0, memory_order_relaxed);
    return true;
}

/* Like consume_buffer. If the address was overwritten or never saved, counts a lost value and
 * records it as unreadable. */
static bool consume_or_count(uint32_t tag, uint8_t place, uint64_t stack, uint64_t *pointer)
{
    if (consume_buffer(stack, pointer)) {
        return true;
    }
    sj_recorder_count_lost_value();
    sj_recorder_put_value(tag, stack,
                          sj_value_descriptor(sj_value_position(place), SJ_VALUE_STRING),
                          SJ_PART_VALUE, sj_value_text_head(0, SJ_VALUE_UNREADABLE));
    return false;
}

/* Saves the address of a buffer at the entry of a call. At the exit, records the buffer's content;
 * the call's result is the number of bytes in it. */
static void put_filled(uint32_t tag, uint8_t filled, uint8_t place, size_t most, const moment *at)
{
    text_place text = {.most = most};
    uint64_t bits = 0;
    if (place == SJ_PLACE_RESULT_ADDRESS) {
        keep_buffer(at->stack, at->registers->result_address);
        return;
    }
    if (sj_value_position(place) != SJ_VALUE_RESULT) {
        if (find_register(place, at->shift, at->stack, at->registers, &bits)) {
            keep_buffer(at->stack, bits);
        }
        return;
    }
    if (!consume_or_count(tag, place, at->stack, &text.pointer)) {
        return;
    }
    const uint32_t kind = filled == SJ_PLACE_FILLED_INT ? SJ_VALUE_INT : SJ_VALUE_LONG;
    const int64_t length = (int64_t)sj_value_narrow(kind, at->registers->result);
    text.length = length > 0 ? (uint64_t)length : 0;
    put_text(tag, at->stack, place, &text);
}

/* A description of the text that follows, from the places read so far. */
typedef struct text_size {
    uint8_t filled; /* the next place is a buffer that the function fills */
    size_t most;
    uint64_t length; /* UINT64_MAX: unknown */
    size_t words;    /* length of the text in words, whatever they contain; 0: unknown */
    bool is_length_next;
    bool are_words_next;
} text_size;

/* Reads a place that describes a text. Returns false for any other place. */
static bool read_size(uint8_t place, const moment *at, text_size *size)
{
    uint64_t bits = 0;
    if (size->is_length_next) {
        size->is_length_next = false;
        if (find_register(place, at->shift, at->stack, at->registers, &bits)) {
            bits = sj_value_narrow(sj_value_kind_of(place), bits);
            size->length =
                (int64_t)bits < 0 && sj_value_is_signed(sj_value_kind_of(place)) ? 0 : bits;
        }
        return true;
    }
    if (size->are_words_next) {
        size->are_words_next = false;
        size->words = place;
        return true;
    }
    if (sj_place_is_filled(place)) {
        size->filled = place;
        return true;
    }
    if (place == SJ_PLACE_LENGTH || place == SJ_PLACE_WORDS) {
        size->is_length_next = place == SJ_PLACE_LENGTH;
        size->are_words_next = place == SJ_PLACE_WORDS;
        return true;
    }
    if (sj_place_is_limit(place)) {
        size->most = (size_t)SJ_VALUE_TEXT_BYTES << (place - SJ_PLACE_LIMIT);
        return true;
    }
    return false;
}

/* Copies the registers that may hold a result. Returns how many of these words are available. */
static size_t read_result(const sj_value_registers *registers, size_t count,
                          uint64_t words[SJ_RESULT_WORDS])
{
    words[SJ_RESULT_WHOLE] = registers->result;
    words[SJ_RESULT_SECOND] = registers->whole[SJ_MACHINE_SECOND_RESULT];
    for (size_t i = SJ_RESULT_REAL; i < SJ_RESULT_EXTENDED; i++) {
        words[i] = registers->real[i - SJ_RESULT_REAL];
    }
    return count > SJ_RESULT_EXTENDED &&
                   !sj_arch_extended(SJ_VALUE_RESULT, words + SJ_RESULT_EXTENDED)
               ? (size_t)SJ_RESULT_EXTENDED
               : count;
}

/* Records `count` words that a place itself contains, as a text. */
static void put_own_words(uint32_t tag, uint8_t place, size_t count, const moment *at)
{
    enum { ARGUMENT_MOST = 2 };
    const uint32_t position = sj_value_position(place);
    uint64_t words[SJ_RESULT_WORDS];
    count = count < SJ_RESULT_WORDS ? count : SJ_RESULT_WORDS;
    if (position == SJ_VALUE_RESULT) {
        count = read_result(at->registers, count, words);
    } else if (sj_value_kind_of(place) == SJ_PLACE_VECTOR) {
        if (count != ARGUMENT_MOST || !sj_arch_extended(position, words)) {
            return;
        }
    } else if (position >= SJ_PLACE_STACK && count <= ARGUMENT_MOST) {
        for (size_t i = 0; i < count; i++) {
            words[i] = stack_words(at->stack)[position - SJ_PLACE_STACK + i];
        }
    } else {
        return;
    }
    const size_t bytes = count * WORD_BYTES;
    const text_place text = {.pointer = 1, .length = bytes};
    put_words(tag, at->stack, place, &text, bytes, bytes, words);
}

static void put_value(uint32_t tag, uint8_t place, uint64_t bits, const moment *at, text_size *size)
{
    const uint32_t kind = sj_value_kind_of(place);
    const size_t words = size->words;
    const bool is_given = words >= SJ_PLACE_SRET_WORDS && words <= SJ_PLACE_SRET_MOST;
    const size_t whole = (is_given ? words - SJ_PLACE_SRET_WORDS : words) * WORD_BYTES;
    if (kind < SJ_PLACE_LENGTH_TEXT && kind != SJ_VALUE_STRING && kind != SJ_PLACE_VECTOR) {
        sj_recorder_put_value(tag, at->stack, place, SJ_PART_VALUE, bits);
        return;
    }
    if (words > SJ_PLACE_OWN_WORDS) {
        put_own_words(tag, place, words - SJ_PLACE_OWN_WORDS, at);
        size->words = 0;
        return;
    }
    if (is_given && !consume_or_count(tag, place, at->stack, &bits)) {
        size->words = 0;
        return;
    }
    text_place text = text_of(place, bits, at);
    text.most = whole != 0 ? whole : size->most;
    text.length = whole != 0 ? whole : size->length != UINT64_MAX ? size->length : text.length;
    size->words = 0;
    size->length = UINT64_MAX;
    put_text(tag, at->stack, sj_value_descriptor(sj_value_position(place), SJ_VALUE_STRING), &text);
}

/* True if the only value of a call need not be recorded. Checked first, because most calls match
 * none of the rules about them. */
static bool is_idle(uint32_t function, uint32_t descriptors, uint64_t stack,
                    const sj_value_registers *registers)
{
    const uint8_t descriptor = (uint8_t)descriptors;
    uint64_t bits = 0;
    return descriptors == descriptor && sj_value_kind_of(descriptor) != 0 &&
           find_register(descriptor, function >> SJ_VALUE_SHIFT_BIT, stack, registers, &bits) &&
           sj_recorder_is_idle(function & SJ_RECORD_FUNCTION_MASK, descriptor,
                               sj_value_narrow(sj_value_kind_of(descriptor), bits));
}

/* Returns the return address of the program's function at `stack`. */
static uint64_t find_return(uint64_t stack)
{
    const uint64_t at = stack + SJ_MACHINE_RETURN_WORD * sizeof(uint64_t);
    const uint64_t word = *(const uint64_t *)at;
    return (sj_recorder_true_return != NULL ? sj_recorder_true_return(at, word) : word) &
           ADDRESS_BITS;
}

static __attribute__((noinline)) uint32_t record_values(uint32_t function, uint32_t descriptors,
                                                        uint64_t stack,
                                                        sj_value_registers *registers)
{
    if (descriptors == 0) {
        return record_generated(function, stack, registers);
    }
    if (descriptors == SJ_VALUES_OF_RETURN) {
        descriptors = return_values(function);
    }
    const uint32_t shift = function >> SJ_VALUE_SHIFT_BIT;
    const uint32_t id = function & SJ_RECORD_FUNCTION_MASK;
    const uint32_t tag = sj_record_make_tag(SJ_RECORD_VALUE, id);
    const moment at = {.registers = registers, .shift = shift, .stack = stack};
    const sj_judged_call call = {
        .read = read_moment, .context = &at, .return_address = find_return(stack)};
    sj_values_outcome outcome = SJ_VALUES_KEPT;
    text_size size = {.most = SJ_VALUE_TEXT_BYTES, .length = UINT64_MAX};
    int32_t error = 0;
    for (; descriptors != 0 && outcome != SJ_VALUES_RETURN; descriptors >>= 8) {
        const uint8_t descriptor = (uint8_t)descriptors;
        const uint32_t kind = sj_value_kind_of(descriptor);
        uint64_t bits = 0;
        sj_due_change due;
        if (size.filled != 0) {
            put_filled(tag, size.filled, descriptor, size.most, &at);
            size.filled = 0;
            continue;
        }
        if (read_size(descriptor, &at, &size) || put_apart(tag, stack, descriptor) ||
            descriptor == 0 || !find_register(descriptor, shift, stack, registers, &bits)) {
            continue;
        }
        if (kind == SJ_VALUE_OBJECT && size.words <= SJ_PLACE_OWN_WORDS) {
            continue; /* only runtimes that know its type record it */
        }
        if (sj_recorder_changes != NULL &&
            sj_recorder_is_idle(id, descriptor, sj_value_narrow(kind, bits))) {
            size.words = 0;
            continue;
        }
        put_value(tag, descriptor, bits, &at, &size);
        if (sj_recorder_changes != NULL &&
            sj_recorder_judge(id, descriptor, sj_value_narrow(kind, bits), &call, &due)) {
            const sj_values_outcome changed = change(tag, stack, shift, &due, registers);
            outcome = changed > outcome ? changed : outcome;
            error = due.error != 0 ? due.error : error;
        }
    }
    sj_recorder_set_error(error);
    return outcome;
}

uint32_t sj_recorder_values(uint32_t function, uint32_t descriptors, uint64_t stack,
                            sj_value_registers *registers)
{
    return sj_recorder_changes != NULL && is_idle(function, descriptors, stack, registers)
               ? (uint32_t)SJ_VALUES_KEPT
               : record_values(function, descriptors, stack, registers);
}

void sj_recorder_change(uint32_t function, uint64_t stack, const sj_due_change *due)
{
    put_change(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, due);
}

void sj_recorder_skip(uint32_t function, uint64_t stack, const sj_due_change *due)
{
    return_at_once(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, due);
}

void sj_recorder_cpu(uint32_t function, uint64_t stack, bool is_entry)
{
    put_cpu(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, is_entry);
}

void sj_recorder_value(uint32_t function, uint64_t stack, uint8_t descriptor, uint64_t bits)
{
    sj_recorder_put_value(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, descriptor,
                          SJ_PART_VALUE, bits);
}

/* Returns a word with the last bytes of a text, fewer than 8. */
static uint64_t read_rest(const char *text, uint32_t count)
{
    uint64_t word = 0;
    uint32_t at = 0;
    if ((count & 4) != 0) {
        uint32_t part;
        /* not libc's memcpy, which may be recorded itself */
        __builtin_memcpy(&part, text, sizeof(part));
        word = part;
        at = sizeof(part);
    }
    if ((count & 2) != 0) {
        uint16_t part;
        __builtin_memcpy(&part, text + at, sizeof(part));
        word |= (uint64_t)part << (8 * at);
        at += sizeof(part);
    }
    return (count & 1) != 0 ? word | (uint64_t)(uint8_t)text[at] << (8 * at) : word;
}

void sj_recorder_text(uint32_t function, uint64_t stack, uint8_t descriptor, const char *text,
                      uint32_t length, sj_value_note note)
{
    const uint32_t tag = sj_record_make_tag(SJ_RECORD_VALUE, function);
    sj_recorder_put_value(tag, stack, descriptor, SJ_PART_VALUE, length | (uint64_t)note << 8);
    for (uint32_t at = 0; at < length; at += WORD_BYTES) {
        uint64_t word = 0;
        if (length - at >= WORD_BYTES) {
            __builtin_memcpy(&word, text + at, WORD_BYTES);
        } else {
            word = read_rest(text + at, length - at);
        }
        sj_recorder_put_value(tag, stack, descriptor, SJ_PART_TEXT, word);
    }
}
