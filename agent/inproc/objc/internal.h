/* Internal header of objc; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_OBJC_INTERNAL_H
#define SJ_AGENT_INPROC_OBJC_INTERNAL_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/objc/dispatch.h"

#include <stddef.h>

/* Functions that all runtimes have. */
typedef struct sj_objc_api {
    const char *(*class_name)(const void *class);
    const char *(*selector_name)(const void *selector);
    const void *(*superclass)(const void *class);
    bool (*is_meta)(const void *class);
    const void *(*instance_method)(const void *class, const void *selector);
    uint64_t (*implementation)(const void *method);
    bool has_method_lists; /* True if it is GCC's runtime, whose class structure is known. */
} sj_objc_api;

extern sj_objc_api sj_objc_runtime __attribute__((visibility("hidden")));

/* Fills sj_objc_runtime. Returns false if the process has no known runtime. */
bool sj_objc_find_api(void);

/* A method together with the class of its receiver. */
typedef struct sj_objc_method {
    const void *class;    /* Class of the receiver. NULL if the element is free. */
    const void *owner;    /* Class that defines the method. */
    const char *selector; /* Name of the selector. Equal names have equal addresses. */
    uint32_t function;    /* Function id; 0 if the policy excludes the method. */
} sj_objc_method;

/* Returns the registered method with the class, owner and selector of `key`, or NULL. The caller
 * holds the lock. */
const sj_objc_method *sj_objc_find_method(const sj_objc_method *key);

/* Finds the method that the class `from` runs for `selector`, and returns the class that defines
 * the method. `name` is the selector's name. If `*code` is 0, writes the method's code to it.
 * Returns NULL if no class defines the method, or if its code differs from `*code`. Sends no
 * message, so it does not resolve or initialise a class. */
const void *sj_objc_find_owner(const void *from, const void *selector, const char *name,
                               uint64_t *code);

/* True if the class defines the method itself and does not inherit it. */
bool sj_objc_owns_method(const void *class, const void *method, const void *selector);

/* The names of a method to register. The agent writes them before it takes its lock, because the
 * runtime takes its own lock meanwhile. */
typedef struct sj_objc_names {
    uint32_t name_bytes;
    uint32_t lineage_bytes;
    char name[SJ_OBJC_NAME_BYTES];
    char lineage[SJ_OBJC_LINEAGE_BYTES];
} sj_objc_names;

/* Writes "-[Class selector]", or "-[Class:Owner selector]" if the class inherits the method; "+"
 * for class methods. Writes at most SJ_OBJC_NAME_BYTES. Returns the number of bytes, including the
 * NUL. The caller does not hold the lock. */
uint32_t sj_objc_write_name(const sj_objc_method *method, char *name);

/* Writes the name and the lineage of a method. The caller does not hold the lock. */
void sj_objc_describe(const sj_objc_method *method, sj_objc_names *draft);

/* Registers a method unless it is registered already. Returns false if the table is full, or if the
 * recorder refuses the method. The caller holds the lock. */
bool sj_objc_register_method(const sj_objc_method *method, uint64_t code,
                             const sj_objc_names *draft, sj_objc_register registers);

/* Maps the memory for stubs, and opens the stubs that were closed. Returns false if out of memory.
 */
bool sj_objc_stubs_open(void);

/* Makes every stub jump directly to its method, without the agent. Other threads may be in stubs.
 */
void sj_objc_stubs_close(void);

/* Creates the stub of a method, or opens the stub that an earlier session created. Returns its
 * record, or NULL if all stubs are used. The caller holds the lock. */
const sj_dispatch_record *sj_objc_stub_open(const sj_objc_method *method, uint64_t target);

/* Creates a stub that calls `target` and converts its result by sj_objc_code_behind. The stub
 * records nothing. Returns its record, or NULL if all stubs are used. The caller holds the lock. */
const sj_dispatch_record *sj_objc_stub_open_plain(uint64_t target);

/* Returns the record of a stub, or NULL if `code` is not a stub. */
const sj_dispatch_record *sj_objc_record_of(uint64_t code);

/* If `code` is a stub, returns the method's code; otherwise returns `code`. */
uint64_t sj_objc_code_behind(uint64_t code);

/* Code that the stubs of sj_objc_stub_open_plain jump to (arch/<machine>/message.S). It supports
 * methods whose arguments are in registers and whose result is an address. */
void sj_arch_objc_plain(void);

/* Returns the address of a record's stub. */
uint64_t sj_objc_stub_of(const sj_dispatch_record *record);

/* Gives a forked child its own copy of the stubs. Returns false if out of memory; then no stub can
 * be created. */
bool sj_objc_stubs_after_fork(void);

uint32_t sj_objc_stub_count(void);
uint32_t sj_objc_method_count(void);

/* Returns the record of a message, for the assembly code of objc_msgSend. Returns NULL if the
 * message is not recorded, or SJ_OBJC_UNKNOWN if it is new. `target` is the runtime's own
 * dispatcher. Does not change vector registers. */
const sj_dispatch_record *sj_objc_message(const void *receiver, const void *selector,
                                          uint64_t target);
#define SJ_OBJC_UNKNOWN ((const sj_dispatch_record *)1)

/* Adds a new message and returns its record, or NULL if it is not recorded. Calls the runtime,
 * which may change any register. */
const sj_dispatch_record *sj_objc_new_message(const void *receiver, const void *selector,
                                              uint64_t target);

/* Replacements of objc_msgSend and objc_msgSend_stret (arch/<machine>/message.S). */
void sj_arch_objc_message(void);
void sj_arch_objc_message_stret(void);

/* True if the agent can save the vector registers of this processor. */
bool sj_arch_objc_can_keep_vectors(void);

/* Addresses of the runtime's objc_msgSend and objc_msgSend_stret; 0 if it has none. */
extern uint64_t sj_objc_real_message __attribute__((visibility("hidden")));
extern uint64_t sj_objc_real_message_stret __attribute__((visibility("hidden")));

#endif
