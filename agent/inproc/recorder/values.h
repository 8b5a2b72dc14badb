/* Values: arguments and results of a function that a policy asks for, written by its probes in
 * front of the entry or the exit. Any thread, also in handlers. */
#ifndef SJ_AGENT_INPROC_RECORDER_VALUES_H
#define SJ_AGENT_INPROC_RECORDER_VALUES_H

#include "agent/inproc/recorder/changes.h"
#include "proto/block/value.h"

enum {
    SJ_VALUE_SHIFT_BIT = 30, /* of the first word below: integer arguments before number 1 */
    SJ_VALUE_REGISTERS = 8
};

/* The registers that values are passed in, saved by sj_arch_values_entry. The assembly knows the
 * layout. */
typedef struct sj_value_registers {
    uint64_t whole[SJ_VALUE_REGISTERS];
    uint64_t real[SJ_VALUE_REGISTERS]; /* low halves; the first is a result, too */
    uint64_t result;
    uint64_t result_address; /* that the caller gives for a result, where no argument's register
                                holds it (AArch64: x8); at entries only */
} sj_value_registers;

/* What sj_recorder_values did. The assembly knows the numbers. */
typedef enum sj_values_outcome {
    SJ_VALUES_KEPT = 0,
    SJ_VALUES_CHANGED = 1, /* `registers`, which the function or its caller gets */
    SJ_VALUES_RETURN = 2   /* the same, and the function is not to run; its call is recorded */
} sj_values_outcome;

/* sj_recorder_values records what the descriptors, one a byte, lowest first, ask for, and does what
 * rules make of it. Returns an sj_values_outcome. `function` is
 * its id and, in the two highest bits, the shift; `stack` the stack pointer of the records. A text
 * is read by a system call, so that an invalid pointer does no harm. Async-signal-safe;
 * errno is kept, but for a rule that sets it. */
uint32_t sj_recorder_values(uint32_t function, uint32_t descriptors, uint64_t stack,
                            sj_value_registers *registers);

/* Values at the exits of dispatched calls, which return to a thunk that knows the function alone:
 * it gives SJ_VALUES_OF_RETURN in the place of descriptors. sj_return_values_set says which they
 * are, before calls are dispatched; 0: none. False: there is no room for another function. */
#define SJ_VALUES_OF_RETURN UINT32_MAX
bool sj_return_values_set(uint32_t function, uint32_t descriptors);

/* sj_recorder_change records that a rule has changed a value of a call; `stack` is that of the
 * call's records, SJ_MANAGED_CALL of a managed one. */
void sj_recorder_change(uint32_t function, uint64_t stack, const sj_due_change *due);

/* sj_recorder_skip records the whole call of a function that does not run. */
void sj_recorder_skip(uint32_t function, uint64_t stack, const sj_due_change *due);

/* sj_recorder_value records one value of a call, sj_recorder_text one that is a text: the first of
 * `length` bytes, at most SJ_VALUE_TEXT_BYTES of them. */
void sj_recorder_value(uint32_t function, uint64_t stack, uint8_t descriptor, uint64_t bits);
void sj_recorder_text(uint32_t function, uint64_t stack, uint8_t descriptor, const char *text,
                      uint32_t length, sj_value_note note);

/* sj_recorder_cpu records the CPU time that the calling thread has had so far, for a call that it
 * enters or leaves. */
void sj_recorder_cpu(uint32_t function, uint64_t stack, bool is_entry);

/* Values of generated code, of whose types and registers its runtime knows. The probes of a
 * function with a number call sj_recorder_values with that, SJ_VALUES_AT_EXIT or 0, and without
 * descriptors. */
enum { SJ_VALUES_AT_EXIT = 1 << 30, SJ_VALUES_NUMBER_MASK = SJ_VALUES_AT_EXIT - 1 };

/* A number in a register that its probe can record by itself. */
typedef struct sj_plain_value {
    uint8_t descriptor;
    uint8_t word;      /* of sj_value_registers */
    uint8_t bytes;     /* of the register that are the number: 1, 2, 4 or 8 */
    uint8_t is_signed; /* 1: widened by its sign */
} sj_plain_value;

typedef struct sj_generated_values {
    /* The number of the code that begins at an address; 0: nothing is recorded there. */
    uint32_t (*find)(uint64_t address, bool at_exit);
    /* Lists what the code with a number records, if all of that is plain and no rule is asked about
     * it, and returns how many there are; else 0. */
    uint32_t (*list_plain)(uint32_t number, bool at_exit,
                           sj_plain_value values[SJ_VALUES_PER_FUNCTION]);
    /* As sj_recorder_values; SJ_VALUES_CHANGED also where a function of the runtime was called,
     * which may use vector registers: those of `registers` are given back then. */
    sj_values_outcome (*record)(uint32_t number, bool at_exit, uint64_t stack,
                                sj_value_registers *registers);
} sj_generated_values;

/* Set once, before any code is hooked that has numbers; NULL: there is none. */
extern const sj_generated_values *sj_recorder_generated_values
    __attribute__((visibility("hidden")));

/* Returns the program's return address of the word `word`, which lies at the address `at` of a
 * stack, where calls are dispatched: their return addresses are kept elsewhere. Any thread;
 * async-signal-safe. NULL: no call is dispatched. Set before the program's functions are hooked. */
typedef uint64_t sj_true_return(uint64_t at, uint64_t word);
extern sj_true_return *sj_recorder_true_return __attribute__((visibility("hidden")));

#endif
