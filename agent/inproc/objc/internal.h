/* Internal header of the dispatch technique; not included outside this folder. */
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
    bool has_method_lists; /* True if classes have the structure of GCC's runtime. */
} sj_objc_api;

extern sj_objc_api sj_objc_runtime __attribute__((visibility("hidden")));

/* Fills in sj_objc_runtime. Returns false if the process has no known runtime. */
bool sj_objc_find_api(void);

/* A method as the class of a receiver sees it. */
typedef struct sj_objc_method {
    const void *class;    /* Class of the receiver. NULL: the entry is free. */
    const void *owner;    /* Class that defines the method. */
    const char *selector; /* Name of the selector. The runtime has one copy of each name. */
    uint32_t function;    /* 0: the policy excludes it. */
} sj_objc_method;

/* Returns a registered method, or NULL. The caller holds the lock. */
const sj_objc_method *sj_objc_find_method(const sj_objc_method *key);

/* Returns the class that defines the method that `from` and its subclasses run for `selector`,
 * whose name is `name`. If `*code` is 0, writes the method's code to it. Returns NULL if there is
 * no such method, or if its code differs from `*code`. Sends no message, so the look-up neither
 * resolves nor initialises a class. */
const void *sj_objc_find_owner(const void *from, const void *selector, const char *name,
                               uint64_t *code);

/* True if the class itself defines the method, and does not inherit it. */
bool sj_objc_owns_method(const void *class, const void *method, const void *selector);

/* The names of a method to register. They are written before the lock is taken, because the runtime
 * takes its own. */
typedef struct sj_objc_names {
    uint32_t name_bytes;
    uint32_t lineage_bytes;
    char name[SJ_OBJC_NAME_BYTES];
    char lineage[SJ_OBJC_LINEAGE_BYTES];
} sj_objc_names;

/* Writes the name of a method, at most SJ_OBJC_NAME_BYTES. Returns its bytes with the NUL. The
 * caller does not hold the lock. */
uint32_t sj_objc_write_name(const sj_objc_method *method, char *name);

/* Writes the names of a method. The caller does not hold the lock. */
void sj_objc_describe(const sj_objc_method *method, sj_objc_names *draft);

/* Registers a described method with its code, unless it is known. Returns false if the table is
 * full, or if the recorder refuses the method. The caller holds the lock. */
bool sj_objc_register_method(const sj_objc_method *method, uint64_t code,
                             const sj_objc_names *draft, sj_objc_register registers);

/* Maps the memory for stubs and opens those that were closed. Returns false if out of memory. */
bool sj_objc_stubs_open(void);

/* Makes every stub jump directly to its method, without the agent. Other threads may be in stubs.
 */
void sj_objc_stubs_close(void);

/* Creates the stub of a method, or opens the one of an earlier session. Returns its record, or NULL
 * if all stubs are used. The caller holds the lock. */
const sj_dispatch_record *sj_objc_stub_open(const sj_objc_method *method, uint64_t target);

/* Creates a stub that calls `target` and passes the result through sj_objc_code_behind. It records
 * nothing. Returns NULL and locks as sj_objc_stub_open does. */
const sj_dispatch_record *sj_objc_stub_open_plain(uint64_t target);

/* Returns the record of a stub; NULL for any other address. */
const sj_dispatch_record *sj_objc_record_of(uint64_t code);

/* Returns the method's code behind a stub; returns any other address unchanged. */
uint64_t sj_objc_code_behind(uint64_t code);

/* Entry point of a stub of sj_objc_stub_open_plain, for methods of few arguments that return an
 * address of code (arch/<machine>/message.S). */
void sj_arch_objc_plain(void);

/* Returns the code of a record's stub. */
uint64_t sj_objc_stub_of(const sj_dispatch_record *record);

/* Gives a forked child its own copy of the stubs. Returns false if out of memory: then no stub can
 * be created. */
bool sj_objc_stubs_after_fork(void);

uint32_t sj_objc_stub_count(void);
uint32_t sj_objc_method_count(void);

/* Returns the record of a message, for the assembly of objc_msgSend. Returns NULL if it is not
 * recorded, SJ_OBJC_UNKNOWN if it is new. `target` is the runtime's own dispatcher. Touches no
 * vector register. */
const sj_dispatch_record *sj_objc_message(const void *receiver, const void *selector,
                                          uint64_t target);
#define SJ_OBJC_UNKNOWN ((const sj_dispatch_record *)1)

/* Like sj_objc_message for a new message. It asks the runtime, whose code uses any register. */
const sj_dispatch_record *sj_objc_new_message(const void *receiver, const void *selector,
                                              uint64_t target);

/* Replacements of objc_msgSend and objc_msgSend_stret (arch/<machine>/message.S). The two variables
 * are the runtime's own functions. */
void sj_arch_objc_message(void);
void sj_arch_objc_message_stret(void);
/* True if this machine can save the vector registers. */
bool sj_arch_objc_can_keep_vectors(void);
extern uint64_t sj_objc_real_message __attribute__((visibility("hidden")));
extern uint64_t sj_objc_real_message_stret __attribute__((visibility("hidden")));

#endif
