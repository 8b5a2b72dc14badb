/* Functions with an entry and an exit probe (x86-64). Each leaves out a part of the probe or does
 * it in another way, as its name says. probe_variants.c calls them. */

#define CURSOR %fs:variant_cursor@tpoff

    .text

/* Opens a chunk when the current one is full. Returns the address of the record in %rcx. */
    .type more_space, @function
more_space:
    .irp register, %rax, %rdx, %rdi, %rsi, %r8, %r9, %r10, %r11
    push \register
    .endr
    sub $8, %rsp
    call variant_next_chunk
    mov %rax, %rcx
    add $8, %rsp
    .irp register, %r11, %r10, %r9, %r8, %rsi, %rdi, %rdx, %rax
    pop \register
    .endr
    ret

.macro SAVE
    mov %rax, -16(%rsp)
    mov %rcx, -24(%rsp)
    mov %rdx, -32(%rsp)
.endm

.macro RESTORE
    mov -16(%rsp), %rax
    mov -24(%rsp), %rcx
    mov -32(%rsp), %rdx
.endm

.macro SAVE_FLAGS
    lahf
    seto %al
    mov %eax, -40(%rsp)
.endm

.macro RESTORE_FLAGS
    mov -40(%rsp), %eax
    add $127, %al
    sahf
.endm

/* Reserves a record. xadd: in one instruction, like Sojourn's probes. add: in three instructions,
 * between which a signal handler's probe may run. */
.macro RESERVE by=xadd
    .ifc \by, xadd
    mov $16, %ecx
    xadd %rcx, CURSOR
    .else
    mov CURSOR, %rcx
    lea 16(%rcx), %rcx
    mov %rcx, CURSOR
    .endif
    test $0xf000, %ecx
    jnz 1f
    call more_space
1:
.endm

.macro FETCH
    prefetchw 512(%rcx)
.endm

.macro STORE_TIME
    mov %eax, (%rcx)
    mov %dx, 4(%rcx)
.endm

.macro STORE_REST
    lea 8(%rsp), %rdx
    mov %rdx, 6(%rcx)
    mov -8(%rsp), %eax
    mov %eax, 12(%rcx)
.endm

.macro STORE
    STORE_TIME
    STORE_REST
.endm

/* Writes the time by one store instead of two. */
.macro STORE_WIDE
    shl $32, %rdx
    or %rdx, %rax
    mov %rax, (%rcx)
    STORE_REST
.endm

.macro STORE_INLINE tag
    STORE_TIME
    mov %rsp, 6(%rcx)
    movl $\tag, 12(%rcx)
.endm

.macro BEGIN name
    .globl variant_\name
    .type variant_\name, @function
    .p2align 6
variant_\name:
.endm

/* A function whose probes call shared code, like Sojourn's probes. */
.macro SHARED name, entry:req, exit:req
    .p2align 6
entry_of_\name:
    \entry
    ret
    .p2align 6
exit_of_\name:
    \exit
    ret
BEGIN \name
    movl $5, -16(%rsp)
    call entry_of_\name
    movl $0x40000005, -16(%rsp)
    call exit_of_\name
    ret
.endm

.macro CLOCK
    SAVE
    rdtsc
    RESTORE
.endm

.macro CLOCK_RESERVE
    SAVE
    rdtsc
    RESERVE
    RESTORE
.endm

.macro ALL
    SAVE
    rdtsc
    RESERVE
    STORE
    RESTORE
.endm

.macro ALL_FETCH
    SAVE
    rdtsc
    RESERVE
    FETCH
    STORE
    RESTORE
.endm

.macro ALL_FLAGS
    SAVE
    SAVE_FLAGS
    rdtsc
    RESERVE
    STORE
    RESTORE_FLAGS
    RESTORE
.endm

.macro NO_CLOCK
    SAVE
    RESERVE
    STORE
    RESTORE
.endm

.macro LOAD_ADD_STORE
    SAVE
    rdtsc
    RESERVE add
    STORE
    RESTORE
.endm

.macro WIDE
    SAVE
    rdtsc
    RESERVE
    STORE_WIDE
    RESTORE
.endm

.macro RESERVE_FIRST
    SAVE
    RESERVE
    rdtsc
    STORE
    RESTORE
.endm

.macro ORDERED
    SAVE
    rdtscp
    RESERVE
    STORE
    RESTORE
.endm

.macro IN_PLACE tag
    SAVE
    rdtsc
    RESERVE
    STORE_INLINE \tag
    RESTORE
.endm

.macro IN_PLACE_BARE tag
    rdtsc
    RESERVE
    STORE_INLINE \tag
.endm

BEGIN empty
    ret
BEGIN two_clocks
    rdtsc
    rdtsc
    ret
SHARED clock, CLOCK, CLOCK
SHARED clock_reserve, CLOCK_RESERVE, CLOCK_RESERVE
SHARED all, ALL, ALL
SHARED all_fetch, ALL_FETCH, ALL
SHARED all_fetch_twice, ALL_FETCH, ALL_FETCH
SHARED all_flags, ALL_FLAGS, ALL_FLAGS
SHARED no_clock, NO_CLOCK, NO_CLOCK
SHARED load_add_store, LOAD_ADD_STORE, LOAD_ADD_STORE
SHARED wide_stores, WIDE, WIDE
SHARED reserve_first, RESERVE_FIRST, RESERVE_FIRST
SHARED rdtscp, ORDERED, ORDERED
BEGIN inline
    IN_PLACE 5
    IN_PLACE 0x40000005
    ret
BEGIN inline_unsaved
    IN_PLACE_BARE 5
    IN_PLACE_BARE 0x40000005
    ret

    .section .note.GNU-stack, "", @progbits
