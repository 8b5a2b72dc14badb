/* Values: arguments and results of a function that a policy asks for. The function's probes write
 * them before the record of the entry or the exit. Any thread; async-signal-safe. */
#ifndef SJ_AGENT_INPROC_RECORDER_VALUES_H
#define SJ_AGENT_INPROC_RECORDER_VALUES_H

#include "agent/inproc/recorder/changes.h"
#include "proto/block/value.h"

enum {
    /* in `function` of sj_recorder_values: lower bit of the shift, which is the number of integer
     * argument registers before the register of argument 1 */
    SJ_VALUE_SHIFT_BIT = 30,
    SJ_VALUE_REGISTERS = 8
};

/* The registers in which values are passed, saved by sj_arch_values_entry. The assembly code
 * depends on the layout. */
typedef struct sj_value_registers {
    uint64_t whole[SJ_VALUE_REGISTERS];
    /* low halves of vector registers; the first also holds a result */
    uint64_t real[SJ_VALUE_REGISTERS];
    uint64_t result;
    /* Address that the caller passes for a memory result, where no argument's register holds it
     * (AArch64: x8). Valid at entries only. */
    uint64_t result_address;
} sj_value_registers;

/* The outcome of sj_recorder_values. The assembly code depends on the numbers. */
typedef enum sj_values_outcome {
    SJ_VALUES_KEPT = 0,
    /* `registers` has changed; the function or its caller gets the new values */
    SJ_VALUES_CHANGED = 1,
    /* `registers` has changed and the function must not run; its call has been recorded */
    SJ_VALUES_RETURN = 2
} sj_values_outcome;

/* Records the values that the descriptors name, one descriptor per byte from the lowest byte on.
 * Then applies rules to the values. `function` holds the function's id and, in its two highest
 * bits, the shift. `stack` is the stack pointer of the records. Returns an sj_values_outcome.
 *
 * Reads a text by a system call if reading it directly might fault. Async-signal-safe. Keeps
 * errno, unless a rule sets it. */
uint32_t sj_recorder_values(uint32_t function, uint32_t descriptors, uint64_t stack,
                            sj_value_registers *registers);

/* Exits of dispatched calls return to a thunk that knows only the function. The thunk passes
 * SJ_VALUES_OF_RETURN instead of descriptors. sj_return_values_set stores which values those exits
 * record, before calls are dispatched; 0: none. It returns false if the table is full. */
#define SJ_VALUES_OF_RETURN UINT32_MAX
bool sj_return_values_set(uint32_t function, uint32_t descriptors);

/* Records that a rule has changed a value of a call. `stack` is the stack of the call's records;
 * SJ_MANAGED_CALL for a managed call. */
void sj_recorder_change(uint32_t function, uint64_t stack, const sj_due_change *due);

/* Records the whole call of a function that does not run. */
void sj_recorder_skip(uint32_t function, uint64_t stack, const sj_due_change *due);

/* sj_recorder_value records one value of a call. sj_recorder_text records a text: its first
 * `length` bytes, at most SJ_VALUE_TEXT_BYTES. */
void sj_recorder_value(uint32_t function, uint64_t stack, uint8_t descriptor, uint64_t bits);
void sj_recorder_text(uint32_t function, uint64_t stack, uint8_t descriptor, const char *text,
                      uint32_t length, sj_value_note note);

/* Records the CPU time that the calling thread has used so far, for a call that it enters or
 * leaves. */
void sj_recorder_cpu(uint32_t function, uint64_t stack, bool is_entry);

/* Values of generated code, whose types and registers only its runtime knows. The runtime gives
 * generated code a number. The code's probes call sj_recorder_values with this number instead of
 * `function`, plus SJ_VALUES_AT_EXIT at exits, and without descriptors. */
enum { SJ_VALUES_AT_EXIT = 1 << 30, SJ_VALUES_NUMBER_MASK = SJ_VALUES_AT_EXIT - 1 };

/* A number in a register that a probe can record by itself. */
typedef struct sj_plain_value {
    uint8_t descriptor;
    uint8_t word;      /* index in sj_value_registers */
    uint8_t bytes;     /* number of the register's bytes that hold the number: 1, 2, 4 or 8 */
    uint8_t is_signed; /* 1: sign-extended */
} sj_plain_value;

typedef struct sj_generated_values {
    /* Returns the number of the code that begins at an address; 0: its values are not recorded. */
    uint32_t (*find)(uint64_t address, bool at_exit);
    /* Lists the values of the code with a number and returns how many there are. Returns 0 unless
     * all of them are plain and no rule concerns them. */
    uint32_t (*list_plain)(uint32_t number, bool at_exit,
                           sj_plain_value values[SJ_VALUES_PER_FUNCTION]);
    /* Records the values of the code with a number, and returns the same as sj_recorder_values.
     * Also returns SJ_VALUES_CHANGED if it called a function of the runtime, which may use vector
     * registers. The caller then restores the vector registers from `registers`. */
    sj_values_outcome (*record)(uint32_t number, bool at_exit, uint64_t stack,
                                sj_value_registers *registers);
} sj_generated_values;

/* Set once, before code with numbers is hooked; NULL: there is none. */
extern const sj_generated_values *sj_recorder_generated_values
    __attribute__((visibility("hidden")));

/* Returns the program's return address for `word`, which lies at the stack address `at`. Dispatched
 * calls keep their return addresses elsewhere. NULL: no call is dispatched. Set before the
 * program's functions are hooked. Any thread; async-signal-safe. */
typedef uint64_t sj_true_return(uint64_t at, uint64_t word);
extern sj_true_return *sj_recorder_true_return __attribute__((visibility("hidden")));

#endif
