/* Hand-written code that returns a result in the carry flag, or gets an argument in the carry flag,
 * in forms that are hard to analyse. Each below_ function must keep its flags at its return,
 * because its asks_ function reads them. x86-64. */
.macro named name
    .p2align 4
    .type \name, @function
    .globl \name
\name:
    .cfi_startproc
.endm

.macro begin name
    .hidden \name
    named \name
.endm

.macro end name
    .cfi_endproc
    .size \name, . - \name
.endm

.macro reply
    cmpq $10, %rdi
    leaq 3(%rdi), %rax
    leaq 1(%rax,%rdi), %rax
.endm

.macro below name
    begin \name
    reply
    ret
    end \name
.endm

.macro frame
    subq $8, %rsp
    .cfi_def_cfa_offset 16
.endm

.macro leave_frame
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
.endm

.macro look
    jb 1f
    addq $200, %rax
1:
    leave_frame
.endm

/* A function that calls `callee` and reads the carry flag. */
.macro asks name, callee:vararg
    begin \name
    frame
    call \callee
    look
    end \name
.endm

    .text

/* Functions that continue in the next function and share its return. */
    begin runs_on
    reply
    leaq 1(%rdi), %rdi
    end runs_on
    .type below_end, @function
below_end:
    .cfi_startproc
    leaq 5(%rdi), %rax
    leaq 1(%rax), %rax
    ret
    end below_end
    asks asks_behind_end, runs_on

    begin runs_far
    reply
    leaq 1(%rdi), %rdi
    end runs_far
    begin below_alignment
    leaq 5(%rdi), %rax
    leaq 1(%rax), %rax
    ret
    end below_alignment
    asks asks_through_alignment, runs_far

/* The flags go into a call, and the callee passes them to its own callee. */
    below below_callee
    begin adds
    leaq (%rax), %rax
    leaq 2(%rax), %rax
    adcq $100, %rax
    ret
    end adds
    begin gives_on
    pushq %rbx
    .cfi_def_cfa_offset 16
    leaq (%rbx), %rbx
    call adds
    popq %rbx
    .cfi_def_cfa_offset 8
    ret
    end gives_on
    begin asks_of_callee
    frame
    call below_callee
    call gives_on
    leave_frame
    end asks_of_callee

/* The flags survive a call. */
    below below_first
    begin keeps
    leaq 7(%rax), %rax
    leaq 2(%rax), %rax
    ret
    end keeps
    begin asks_twice
    frame
    call below_first
    call keeps
    look
    end asks_twice

/* A call and a jump pass the flags on. */
    below below_both
    begin passes
    leaq 1(%rax), %rax
    leaq 1(%rax), %rax
    ret
    end passes
    begin calls_and_jumps
    pushq %rbx
    .cfi_def_cfa_offset 16
    call below_both
    popq %rbx
    .cfi_def_cfa_offset 8
    jmp passes
    end calls_and_jumps
    asks asks_behind_both, calls_and_jumps

/* A function that is called through a pointer reads the flags. */
    below below_pointer
    begin adds_by_pointer
    leaq 5(%rax), %rax
    leaq 5(%rax), %rax
    adcq $100, %rax
    ret
    end adds_by_pointer
    begin asks_by_pointer_behind
    frame
    call below_pointer
    call *pointer_to_adds(%rip)
    leave_frame
    end asks_by_pointer_behind

/* A pointer leads into the middle of a function. */
    begin below_inside
    leaq 1(%rdi), %rdi
    leaq 1(%rdi), %rdi
inside:
    reply
    ret
    end below_inside
    asks asks_inside, *pointer_to_inside(%rip)

/* A return address that is a label, one that is a function, and one that a thunk replaces. */
    below below_label
    begin asks_by_pushed_label
    leaq 2f(%rip), %rax
    pushq %rax
    .cfi_def_cfa_offset 16
    jmp below_label
    .cfi_def_cfa_offset 8
2:
    jb 1f
    addq $200, %rax
1:
    ret
    end asks_by_pushed_label

    below below_function
    begin returns_into
    leaq below_function(%rip), %rax
    pushq %rax
    .cfi_def_cfa_offset 16
    ret
    end returns_into
    asks asks_by_pushed_function, returns_into

    below below_thunk
    begin thunk
    call 1f
2:
    pause
    lfence
    jmp 2b
1:
    .cfi_def_cfa_offset 16
    movq %rax, (%rsp)
    ret
    end thunk
    begin asks_through_thunk
    frame
    leaq below_thunk(%rip), %rax
    call thunk
    look
    end asks_through_thunk

/* Code without a symbol and unwind table calls and jumps. */
    below below_unseen
    .p2align 4
7:
    subq $8, %rsp
    call below_unseen
    jb 1f
    addq $200, %rax
1:
    addq $8, %rsp
    ret
    begin asks_unseen
    frame
    call 7b
    leave_frame
    end asks_unseen

    below below_unseen_jump
    .p2align 4
6:
    leaq (%rdi), %rdi
    jmp below_unseen_jump
    asks asks_unseen_jump, 6b

/* The function is longer than its symbol says. */
    below below_outside
    begin asks_outside
    frame
    call below_outside
    end asks_outside
    jb 1f
    addq $200, %rax
1:
    addq $8, %rsp
    ret

/* A jump that has only a short form, and a distance in a table. */
    begin counts
    leaq (%rdi), %rdi
    leaq (%rdi), %rdi
    xorl %ecx, %ecx
    jrcxz below_count
    ret
    end counts
    .type below_count, @function
below_count:
    .cfi_startproc
    reply
    ret
    end below_count
    asks asks_by_count, counts

    below below_distance
    begin asks_by_distance
    frame
    leaq distances(%rip), %rdx
    movslq (%rdx), %rax
    addq %rdx, %rax
    call *%rax
    look
    end asks_by_distance

/* In a library, calls through the linkage table and the table of imports lead back to the
 * library. */
    named below_name
    reply
    ret
    end below_name
    asks asks_by_name, below_name@PLT

    named below_slot
    reply
    ret
    end below_slot
    asks asks_by_slot, *below_slot@GOTPCREL(%rip)

    .section .rodata
    .p2align 2
distances:
    .long below_distance - distances
    .section .data.rel, "aw"
    .p2align 3
pointer_to_adds:
    .quad adds_by_pointer
pointer_to_inside:
    .quad inside
    .section .note.GNU-stack, "", @progbits
