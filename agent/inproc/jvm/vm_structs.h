/* Reads offsets from gHotSpotVMStructs, HotSpot's description of its structures for debuggers. */
#ifndef SJ_AGENT_INPROC_JVM_VM_STRUCTS_H
#define SJ_AGENT_INPROC_JVM_VM_STRUCTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_vm_offsets {
    uint64_t method_code;    /* Offset of Method::_code in a Method. */
    uint64_t verified_entry; /* Offset of nmethod::_verified_entry_point in an nmethod. */
} sj_vm_offsets;

/* Writes the offsets. Returns false if the JVM is not HotSpot, or if a field does not exist. */
bool sj_vm_structs_read(sj_vm_offsets *offsets);

#endif
